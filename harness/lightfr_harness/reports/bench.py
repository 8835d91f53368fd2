"""Benchmarks as pages: ratios to the contenders, times against sizes, load, one device, and the paper's Figure 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lightfr_harness.records import (
    DeviceRecord,
    Figure1Record,
    FitRecord,
    LoadRecord,
    OpenRowsRecord,
    RoundsRecord,
    SecureLoadRecord,
    TopkRecord,
)
from lightfr_harness.reports.figures import MIB, bytes_tick, figure, in_bytes, in_mib, in_time
from lightfr_harness.reports.page import Facts, Panels, Part, Row, Section, Table, Text, Verdict, document, table
from lightfr_harness.reports.svg import Plot, Series, bars, log_axis

SHARED_MACHINE = "Only ratios within one run are worth quoting: on a shared machine times move by a factor of two."


def _page(title: str, verdict: Verdict, about: str, *parts: Part) -> str:
    return document(title, verdict, [Text(about), *parts])


def _timed(title: str, verdict: Verdict, about: str, of_what: str, times: Mapping[str, Sequence[float]]) -> str:
    """A page of shortest times, and perhaps medians: drawn, and in numbers."""
    drawn = bars(f"CPU time of one {of_what}, minimum", [(name, ns[0], in_time(ns[0])) for name, ns in times.items()])
    heads = ("", "minimum", "median")[: 1 + len(next(iter(times.values())))]
    rows = [(name, [in_time(each) for each in ns]) for name, ns in times.items()]
    return _page(title, verdict, f"{about} {SHARED_MACHINE}", drawn, table(f"CPU time of one {of_what}", heads, rows))


def topk_page(record: TopkRecord) -> str:
    """One top-10 search against its contenders."""
    verdict = Verdict(
        f"{record.faiss_ratio:.1f} times as fast as faiss,",
        rest=f"{record.float64_ratio:.0f} times as fast as float64, {record.floor_ratio:.2f} times what reading the "
        "codes takes.",
    )
    about = (
        f"{record.items:,} {record.codes} codes of {record.bits} bits, {record.batch} "
        f"{'query' if record.batch == 1 else 'queries'} at a time, top {record.k}, one thread, {record.isa}, seed "
        f"{record.seed}."
    )
    times = {
        "a plain read": (record.floor_ns, record.floor_median_ns),
        "ours": (record.ours_ns, record.ours_median_ns),
        "faiss": (record.faiss_ns, record.faiss_median_ns),
        "float64": (record.float64_ns, record.float64_median_ns),
    }
    return _timed("Top-K benchmark", verdict, about, "call", times)


def figure_1_page(record: Figure1Record) -> str:
    """The whole table of top-10 searches, and the three panels of the paper's Figure 1."""
    timings = [TopkRecord(**timing) for timing in record.timings]
    ratios = [timing.faiss_ratio for timing in timings]
    heads = ("items", "bits", "batch", "ours", "faiss / ours", "float64 / ours", "ours / floor")
    rows = [
        (
            f"{t.items:,}",
            [
                str(t.bits),
                str(t.batch),
                in_time(t.ours_ns),
                f"{t.faiss_ratio:.2f} ({t.faiss_ratio_median:.2f})",
                f"{t.float64_ratio:.1f} ({t.float64_ratio_median:.1f})",
                f"{t.floor_ratio:.2f} ({t.floor_ratio_median:.2f})",
            ],
        )
        for t in timings
    ]
    chosen = sorted(
        (t for t in timings if t.bits == record.figure_bits and t.batch == 1), key=lambda timing: timing.items
    )
    inference = [
        Series(name, [(t.items, ns / 1e6, f"{t.items:,} items: {in_time(ns)}") for t, ns in points])
        for name, points in (
            ("codes, our kernel", [(t, t.ours_ns) for t in chosen]),
            ("codes, faiss", [(t, t.faiss_ns) for t in chosen]),
            ("real values, numpy", [(t, t.float64_ns) for t in chosen]),
        )
    ]
    panels = Panels(
        [
            bytes_panel("Storage on the device", record.storage_bytes),
            bytes_panel("Communication of one round", record.communication_bytes),
            against_items("Inference, one top 10, CPU time", "ms", inference),
        ]
    )
    return _page(
        "Benchmark of the kernel",
        Verdict(f"{min(ratios):.1f} to {max(ratios):.1f} times as fast as faiss."),
        f"{timings[0].isa}, seed {timings[0].seed}. {SHARED_MACHINE}",
        Section(f"Figure 1: {record.figure_bits}-bit codes against real values", [panels]),
        Section("In numbers", [table("Top 10, one thread; ratios of minima (of medians)", heads, rows)]),
    )


def bytes_panel(title: str, points: Sequence[Mapping[str, float]]) -> Plot:
    """Bytes against items; each point has `items`, and beside it the bytes of each method by name."""
    series = [
        Series(name, [(at["items"], at[name], f"{at['items']:,} items: {in_bytes(at[name])}") for at in points])
        for name in points[0]
        if name != "items"
    ]
    return against_items(title, "bytes", series)


def against_items(title: str, unit: str, series: Sequence[Series]) -> Plot:
    """A figure with two logarithmic axes."""
    counts, values = ([x for one in series for x, _, _ in one.points], [y for one in series for _, y, _ in one.points])
    up = log_axis(unit, values, bytes_tick) if unit == "bytes" else log_axis(unit, values)
    return Plot(title, log_axis("items", counts), up, series)


def fit_page(record: FitRecord) -> str:
    """The user fit against plain numpy."""
    verdict = Verdict(
        f"{record.numpy_ratio:,.0f} times as fast as numpy", rest=f"(median {record.numpy_ratio_median:,.0f})."
    )
    about = f"Ten sweeps over {record.rated} ratings at {record.bits} bits; both fit the same bits."
    times = {"ours": [record.ours_ns], "numpy": [record.ours_ns * record.numpy_ratio]}
    return _timed("Benchmark of the user fit", verdict, about, "fit", times)


def open_rows_page(record: OpenRowsRecord) -> str:
    """A search of the open rows against one of all rows."""
    verdict = Verdict(f"{record.ratio:.1f} times as fast as all rows", rest=f"(median {record.ratio_median:.1f}).")
    about = (
        f"Top-{record.k} of {record.items:,} items of {record.bits} bits, {record.open_items:,} of them open; both "
        "give the same ranking."
    )
    times = {
        "open rows": [record.open_ns],
        "all rows": [record.full_ns],
        "open rows, with a prior": [record.prior_open_ns],
        "all rows, with a prior": [record.prior_full_ns],
    }
    return _timed("Benchmark of open rows", verdict, about, "search", times)


def rounds_page(record: RoundsRecord) -> str:
    """A device round against sizes."""
    sizes = (("ratings", record.us_by_ratings), ("items", record.us_by_items), ("devices", record.us_by_devices))
    drawn = [
        bars(f"Against the {name}", [(f"{int(n):,}", us, in_time(1000 * us)) for n, us in by.items()], kind)
        for kind, (name, by) in enumerate(sizes)
    ]
    figures = [
        (f"{int(n):,} {name}", [in_time(1000 * us), in_time(1000 * us / int(n)) if name == "ratings" else "-"])
        for name, by in sizes
        for n, us in by.items()
    ]
    verdict = Verdict(f"The time grows as ratings ^ {record.exponent_in_ratings:.2f}", rest="at the upper end.")
    steps = "fit, choice of rows, ternary rounding and encoding, with the model at hand"
    told = table("CPU time of a device round", ("", "in all", "for each rating"), figures)
    about = f"CPU time of a device round with {record.bits} bits: {steps}. {SHARED_MACHINE}"
    return _page("Benchmark of a device round", verdict, about, Panels(drawn), told)


def load_page(record: LoadRecord) -> str:
    """A coordinator under load."""
    units, held = record.units, record.held
    failed = sum(sum(run["errors"].values()) for run in units)
    verdict = Verdict(
        f"{min(run['accepted_per_second'] for run in units):.0f} uploads a second accepted,",
        rest=f"{failed:,} failed; {held['open_at_the_server']:,} connections held at once.",
    )
    about = (
        f"Each upload is a new mutual-TLS connection, a check-in and {units[0]['request_bytes']:,} bytes. The time "
        "of an upload counts from when it was due."
    )
    quantiles = ("min", "p50", "p95", "p99", "max")
    heads = ("", "accepted a second", "failed", *quantiles, "client CPU", "server CPU", "load")
    rows = [
        (
            f"run {place}",
            [
                f"{run['accepted_per_second']:.1f}",
                f"{sum(run['errors'].values()):,}",
                *(figure(run["latency_ms"][name], "ms") for name in quantiles),
                figure(run["client_cpu_ms_each"], "ms"),
                figure(run["server_cpu_ms_each"], "ms"),
                f"{run['load_average']:.1f}",
            ],
        )
        for place, run in enumerate(units, start=1)
    ]
    latencies = bars(
        "Latency of the last run",
        [(name, units[-1]["latency_ms"][name], figure(units[-1]["latency_ms"][name], "ms")) for name in quantiles],
    )
    kept = {
        "connections open at the server": f"{held['open_at_the_server']:,}",
        "check-ins served": f"{held['check_ins']:,}",
        "errors": f"{held['errors']:,}",
        "resident memory of the server": in_mib(held["server_rss_bytes"]),
        "memory of one connection": in_mib(1000 * held["kilobytes_each"]),
    }
    parts = (latencies, table("New connections", heads, rows), Section("Kept connections", [Facts(kept)]))
    return _page("Coordinator under load", verdict, about, *parts)


def secure_load_page(record: SecureLoadRecord) -> str:
    """A coordinator in masked rounds."""
    each = [one["server_cpu_ms_each"] for one in record.rounds]
    failed = sum(sum(one["errors"].values()) for one in record.rounds)
    verdict = Verdict(
        f"A device costs the server {figure(min(each), 'ms')} of CPU at least,",
        rest=f"{figure(max(each), 'ms')} at most; {failed:,} failed. The server's resident memory was "
        f"{in_mib(max(one['server_peak_rss_bytes'] for one in record.rounds))} at most.",
    )
    about = (
        f"Cohorts of {record.cohort:,} devices in {record.processes} processes, {record.open_rows:,} open rows of "
        f"{record.bits} bits; a share of {record.dropout:g} leaves before the upload. Times are those of deliveries."
    )
    quantiles = ("p50", "p95", "p99")
    heads = ("", "uploaded", "left", "failed", *quantiles, "client CPU", "server CPU", "database", "written", "load")
    rows = [
        (
            f"{one['server']}, round {place}",
            [
                f"{one['uploaded']:,}",
                f"{one['dropped']:,}",
                f"{sum(one['errors'].values()):,}",
                *(figure(one["latency_ms"][name], "ms") for name in quantiles),
                figure(one["client_cpu_ms_each"], "ms"),
                figure(one["server_cpu_ms_each"], "ms"),
                figure(one["database_cpu_ms_each"], "ms"),
                in_bytes(one["server_written_bytes_each"]),
                f"{one['load_average']:.1f}",
            ],
        )
        for place, one in enumerate(record.rounds, start=1)
    ]
    return _page("Coordinator in masked rounds", verdict, about, table("Rounds", heads, rows))


def device_rows(record: DeviceRecord) -> list[tuple[str, str, str, str]]:
    """What was measured of one device: name, figure, limit, and whether the limit holds or is broken."""
    secure: Mapping[str, Any] = record.secure
    kind = f"{secure['open_rows']:,} open rows" if secure["open_rows"] else "counting who rates what"
    calls = [
        (f"{name}, {call['count']} times", f"{call['request_bytes']:,} and {call['answer_bytes']:,}", "", "")
        for name, call in secure["calls"].items()
    ]
    return [
        _limited("import lightfr, CPU ms over bare Python, minimum", record.import_cpu_ms_min, 30, ".1f"),
        _limited("the same, median", record.import_cpu_ms_median, 30, ".1f"),
        _limited("peak resident memory, MiB", record.peak_rss_bytes / MIB, 48, ".1f"),
        ("bare Python, MiB", f"{record.bare_rss_bytes / MIB:.1f}", "", ""),
        _limited("threads", record.most_threads, 1),
        _none_of("numpy, grpc, aiohttp, sqlite3, asyncio, x509 loaded", record.loaded),
        _limited(
            "first sync above codes and catalogue, bytes",
            record.first_sync_over_codes_bytes,
            record.first_sync_limit_bytes,
        ),
        (f"codes, {record.open_items:,} items open, bytes", f"{record.codes_bytes:,}", "", ""),
        ("catalogue of item ids, bytes", f"{record.catalogue_bytes:,}", "", ""),
        # The rows, which of them changed, and the signed manifest.
        _limited("delta sync, bytes", record.delta_sync_bytes, record.changed_rows_bytes * 115 // 100 + 2048),
        _limited("upload overhead, bytes", record.upload_overhead_bytes, 600),
        ("delta sync / changed rows", f"{record.delta_ratio:.3f}", "", ""),
        _limited(
            f"among {secure['cohort']} devices, {kind}: peak resident memory, MiB",
            secure["peak_rss_bytes"] / MIB,
            48,
            ".1f",
        ),
        ("CPU ms of the round", f"{secure['cpu_ms']:.0f}", "", ""),
        _limited("threads of the round", secure["most_threads"], 1),
        _none_of("modules as above loaded in the round", secure["loaded"]),
        ("bytes sent and received, in all", f"{secure['up_bytes']:,} and {secure['down_bytes']:,}", "", ""),
        *calls,
    ]


def _limited(name: str, measured: float, limit: float, shown: str = ",") -> tuple[str, str, str, str]:
    return name, f"{measured:{shown}}", f"{limit:,}", "holds" if measured <= limit else "broken"


def _none_of(name: str, loaded: Sequence[str]) -> tuple[str, str, str, str]:
    return name, ", ".join(loaded) or "none", "none", "broken" if loaded else "holds"


def device_page(record: DeviceRecord) -> str:
    """One real device, seen from outside."""
    clear, secure = in_mib(record.peak_rss_bytes), in_mib(record.secure["peak_rss_bytes"])
    rows = device_rows(record)
    broken = [f"{name}: {measured}, at most {limit}" for name, measured, limit, verdict in rows if verdict == "broken"]
    judged = sum(bool(verdict) for *_, verdict in rows)
    rest = f"Peak memory is {clear} in the clear, and {secure} in a secure round."
    said = Verdict(f"All {judged} limits hold.", "holds", rest)
    if broken:
        said = Verdict(f"{len(broken)} of {judged} limits are broken.", "broken", rest, broken)
    calls = [
        (name, n := call["request_bytes"] + call["answer_bytes"], in_bytes(n))
        for name, call in record.secure["calls"].items()
    ]
    heads = ("", "measured", "limit", "verdict")
    told = [Row(name, [measured, limit], verdict or "-") for name, measured, limit, verdict in rows]
    about = f"{record.items:,} items of {record.bits} bits, {record.ratings} ratings."
    drawn = bars("Bytes of a secure round's messages", calls)
    return _page("One device", said, about, Table("Measured from outside", heads, told), drawn)
