"""lightfr-harness bench ...: every benchmark prints a table for people, and writes a record with --json."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lightfr.cohorts import MAX_DEVICES, MIN_DEVICES
from lightfr_harness.bench.load_options import SecureLoad
from lightfr_harness.console import (
    MOST_ITEMS,
    Bits,
    Json,
    Report,
    Seed,
    choice,
    number,
    output_folder,
    progress_bar,
    terminal,
    whole,
)
from lightfr_harness.errors import errors_as_messages
from lightfr_harness.records import AccuracyRecord, DeviceRecord, LoadRecord, TopkRecord, from_dict
from lightfr_harness.reports.pages import save

# Items of MovieLens-100K, whose user the fit's benchmark imitates.
FIT_ITEMS = 1682

app = typer.Typer(no_args_is_help=True, help="Time our kernel against contenders, interleaved, by CPU time.")

Seconds = Annotated[float, number("CPU seconds to spend on one configuration.", least=0, most=3600)]
Items = Annotated[int, whole("Items in the catalogue.", least=10, most=MOST_ITEMS)]


@app.command()
def topk(
    items: Items = 1_000_000,
    bits: Bits = 64,
    batch: Annotated[int, whole("Queries per call.", least=1, most=4096)] = 1,
    codes: Annotated[str, choice(("random", "learned"), "learned: clustered as learned codes are.")] = "random",
    seed: Seed = 0,
    seconds: Seconds = 4,
    json_file: Json = None,
    report: Report = None,
) -> None:
    """Exact top-10: ours, faiss IndexBinaryFlat, float64 inner products, and a plain read of the bytes."""
    from lightfr_harness.bench import topk as bench

    with errors_as_messages():
        record = bench.run(items, bits, batch, codes, seed, seconds)
        save(record, json_file, report)
    if json_file != "-":
        terminal().print(_table([record]))


@app.command()
def open_rows(
    items: Items = 1_000_000,
    open_items: Annotated[int, whole("How many of them have a row of their own.", least=1, most=MOST_ITEMS)] = 98_000,
    bits: Bits = 64,
    bitmap: Annotated[str, choice(("prefix", "random"), "prefix: nearly all open items come first.")] = "prefix",
    seed: Seed = 0,
    seconds: Seconds = 4,
    json_file: Json = None,
    report: Report = None,
) -> None:
    """Exact top-10 over the open rows and the one that closed items share, against a row for every item."""
    from lightfr_harness.bench import open_rows as bench

    if open_items > items:
        raise typer.BadParameter(f"there are {items} items", param_hint="--open-items")
    with errors_as_messages():
        record = bench.run(items, open_items, bits, bitmap, seed, seconds)
        save(record, json_file, report)
    if json_file != "-":
        terminal().print(
            f"{open_items:,} of {items:,} items open, {bits} bits: {record.ratio:.1f} times faster than all rows "
            f"(median {record.ratio_median:.1f}), {record.open_ns / 1000:.1f} us a search; with a prior of 64 steps "
            f"{record.prior_ratio:.1f} times (median {record.prior_ratio_median:.1f})"
        )


@app.command()
def fit(
    rated: Annotated[int, whole("Rated items of the user.", least=1, most=FIT_ITEMS)] = 166,
    bits: Bits = 64,
    seed: Seed = 0,
    seconds: Seconds = 2,
    json_file: Json = None,
    report: Report = None,
) -> None:
    """Ten sweeps of the user fit: the kernel against plain numpy, bits asserted equal."""
    from lightfr_harness.bench import fit as bench

    with errors_as_messages():
        record = bench.run(rated, bits, FIT_ITEMS, seed, seconds)
        save(record, json_file, report)
    if json_file != "-":
        terminal().print(
            f"{rated} ratings, {bits} bits: {record.numpy_ratio:.0f} times faster than numpy (median "
            f"{record.numpy_ratio_median:.0f}), {record.ours_ns / 1000:.1f} us a fit"
        )


@app.command()
def rounds(
    bits: Bits = 64,
    seed: Seed = 0,
    seconds: Seconds = 2,
    json_file: Json = None,
    report: Report = None,
) -> None:
    """What a device round costs against the number of ratings, items and devices."""
    from lightfr_harness.bench import rounds as bench

    with errors_as_messages():
        record = bench.run(bits, seed, seconds)
        save(record, json_file, report)
    if json_file == "-":
        return
    table = Table("against", "microseconds of CPU a device round", title=f"{bits} bits, model at hand")
    by_size = {"ratings": record.us_by_ratings, "items": record.us_by_items, "devices": record.us_by_devices}
    for name, times in by_size.items():
        table.add_row(name, "   ".join(f"{n}: {us:.0f}" for n, us in times.items()))
    table.caption = f"grows as ratings ^ {record.exponent_in_ratings:.2f} at the upper end"
    terminal().print(table)


@app.command()
def load(
    privacy: Annotated[
        str, choice(("clear", "secagg"), "clear: uploads on a schedule. secagg: masked rounds.")
    ] = "clear",
    rate: Annotated[
        float, number("clear: new connections a second, each a check-in and an upload.", least=1, most=10_000)
    ] = 160,
    seconds: Annotated[float, number("clear: seconds of load.", least=1, most=3600)] = 60,
    runs: Annotated[
        int, whole("How often to repeat it, or rounds; the machine may be busy with other things.", least=1, most=100)
    ] = 1,
    kept: Annotated[int, whole("clear: connections to hold open at once afterwards.", least=1, most=50_000)] = 2000,
    cohort: Annotated[int, whole("secagg: devices of a round.", least=4, most=MAX_DEVICES)] = 512,
    open_rows: Annotated[int, whole("secagg: rows that each device uploads.", least=1, most=MOST_ITEMS)] = 2000,
    dropout: Annotated[
        float, number("secagg: the share of devices that leave before the upload.", least=0, most=0.25)
    ] = 0.05,
    processes: Annotated[int, whole("secagg: processes of the devices.", least=1, most=64)] = 2,
    deadline_seconds: Annotated[
        float, number("secagg: how long a phase waits for devices that have left.", least=1, most=3600)
    ] = 30,
    database: Annotated[
        str | None,
        typer.Option(help="secagg: an empty PostgreSQL, postgresql://...: replicas on it take turns with SQLite."),
    ] = None,
    replicas: Annotated[int, whole("secagg, with --database: the most replicas.", least=1, most=64)] = 2,
    json_file: Json = None,
    report: Report = None,
) -> None:
    """A coordinator under new mutual-TLS connections that upload, then under many that stay; or in masked rounds."""
    if privacy == "secagg":
        asked = SecureLoad(cohort, open_rows, runs, dropout, processes, deadline_seconds, database, replicas)
        _load_secure(asked, json_file, report)
        return
    from lightfr_harness.bench import load as bench

    with errors_as_messages():
        with bench.started() as running:
            units = [bench.run_units(running, rate, seconds) for _ in range(runs)]
            held = bench.run_held(running, kept, seconds=10)
        record = from_dict(LoadRecord, {"units": units, "held": held})
        save(record, json_file, report)
    if json_file != "-":
        terminal().print(_load_table(record))
        terminal().print(
            f"{held['open_at_the_server']:,} connections open at once, {held['check_ins']:,} check-ins served, "
            f"{held['errors']} errors; the server held {held['server_rss_bytes'] / 1e6:.0f} MB, "
            f"{held['kilobytes_each']:.0f} KB for each"
        )


def _load_secure(load: SecureLoad, json_file: str | None, report: Path | None) -> None:
    from lightfr_harness.bench import load_secure as bench

    with errors_as_messages():
        record = bench.run(load)
        save(record, json_file, report)
    if json_file == "-":
        return
    table = Table(
        title=f"masked rounds of {record.cohort} devices, {record.open_rows:,} rows of {record.bits} bits",
        caption="p50, p99: ms of a delivery; the next three: CPU ms for each device; MB: the most that the server held",
        padding=(0, 0),
    )
    heads = ("uploads", "left", "failed", "p50", "p99", "device", "server", "database", "MB", "seconds")
    table.add_column("", no_wrap=True)
    for name in heads:
        table.add_column(name, justify="right")
    for one in record.rounds:
        table.add_row(
            one["server"],
            *(str(one["uploaded"]), str(one["dropped"]), str(sum(one["errors"].values()))),
            *(f"{one['latency_ms'][name]:.0f}" for name in ("p50", "p99")),
            f"{one['client_cpu_ms_each']:.1f}",
            f"{one['server_cpu_ms_each']:.1f}",
            f"{one['database_cpu_ms_each']:.1f}",
            f"{one['server_peak_rss_bytes'] / 1e6:.0f}",
            f"{one['seconds']:.1f}",
        )
    terminal().print(table)


def _load_table(record: LoadRecord) -> Table:
    title = f"new mutual-TLS connections: a check-in and an upload of {record.units[0]['request_bytes']:,} bytes each"
    table = Table(title=title)
    for name in ("accepted / s", "errors", "min ms", "p50", "p95", "p99", "max", "client CPU ms", "server", "load"):
        table.add_column(name, justify="right")
    for run in record.units:
        table.add_row(
            f"{run['accepted_per_second']:.1f}",
            str(sum(run["errors"].values())),
            *(f"{run['latency_ms'][name]:.0f}" for name in ("min", "p50", "p95", "p99", "max")),
            f"{run['client_cpu_ms_each']:.1f}",
            f"{run['server_cpu_ms_each']:.1f}",
            f"{run['load_average']:.1f}",
        )
    return table


@app.command()
def report(
    seed: Seed = 0,
    seconds: Seconds = 4,
    json_file: Json = None,
    report: Annotated[Path, output_folder("Folder for the HTML page and the record.")] = Path("out/bench"),
) -> None:
    """Time the whole table (10^5 to 10^7 items, 64 and 128 bits, batches) and draw the paper's Figure 1."""
    from lightfr_harness.bench import topk as bench

    single = [(items, bits, 1) for bits in (64, 128) for items in (10**5, 10**6, 10**7)]
    plan = [*single, (10**6, 64, 64), (10**6, 128, 64), (10**3, 64, 1), (10**4, 64, 1)]
    timings: list[TopkRecord] = []
    with errors_as_messages():
        with progress_bar() as bar:
            task = bar.add_task("timing", total=len(plan), detail="")
            for items, bits, batch in plan:
                timings.append(bench.run(items, bits, batch, "random", seed, seconds))
                bar.advance(task)
        record = bench.figure_1_record(timings, 64)
        save(record, json_file, report)
    if json_file != "-":
        terminal().print(_table(timings[:8]))
        typer.echo(f"page: {report / record.kind}.html   record: {report / record.kind}.json")


@app.command()
def accuracy(
    data: Annotated[Path, typer.Option(help="ML-100K ratings; `lightfr-harness data fetch ml-100k` brings them.")],
    json_file: Json = None,
    report: Report = None,
) -> None:
    """Train the rows of docs/accuracy.md on ML-100K, seeds 0 to 2; exit code 1 when a required figure is missed."""
    from lightfr_harness.bench import accuracy as bench

    with errors_as_messages():
        with progress_bar() as bar:
            task = bar.add_task("training", total=len(bench.ROWS), detail="")
            record = bench.run(data, bench.ROWS, lambda row: bar.advance(task))
        save(record, json_file, report)
    if json_file != "-":
        terminal().print(_accuracy_table(record))
    if any(not row["reached"] and not row["is_goal"] for row in record.rows):
        raise typer.Exit(code=1)


def _accuracy_table(record: AccuracyRecord) -> Table:
    popularity = record.rows[0]["popularity"]
    table = Table(title="ML-100K, leave-last-out, 49 negatives, expected ties, mean of seeds 0-2")
    for name in ("", "HR@10", "NDCG@10", "needed", "reached", "device rounds / CPU s"):
        table.add_column(name, justify="right")
    table.add_row("popularity list", f"{popularity['hr']:.4f}", f"{popularity['ndcg']:.4f}", "", "", "")
    for r in record.rows:
        needed, reached = f"{r['needed_hr']:.3f} / {r['needed_ndcg']:.3f}", "yes" if r["reached"] else "NO"
        rate = f"{r['device_rounds_per_second']:,.0f}"
        table.add_row(r["row"], f"{r['hr']:.4f}", f"{r['ndcg']:.4f}", needed, reached, rate)
    return table


def _table(timings: list[TopkRecord]) -> Table:
    table = Table(title=f"top-10, one thread, {timings[0].isa}; ratios of minima (medians)")
    for name in ("items", "bits", "batch", "codes", "ours", "faiss / ours", "float64 / ours", "ours / floor"):
        table.add_column(name, justify="right")
    for t in timings:
        table.add_row(
            f"{t.items:,}",
            str(t.bits),
            str(t.batch),
            t.codes,
            f"{t.ours_ns / 1000:,.1f} us",
            f"{t.faiss_ratio:.2f} ({t.faiss_ratio_median:.2f})",
            f"{t.float64_ratio:.2f} ({t.float64_ratio_median:.2f})",
            f"{t.floor_ratio:.2f} ({t.floor_ratio_median:.2f})",
        )
    return table


@app.command()
def device(
    items: Annotated[int, whole("Items in the catalogue.", least=1000, most=MOST_ITEMS)] = 1_000_000,
    bits: Bits = 64,
    ratings: Annotated[int, whole("Ratings on the device.", least=1, most=MOST_ITEMS)] = 166,
    cohort: Annotated[
        int, whole("Devices in the round of secure aggregation.", least=MIN_DEVICES, most=MAX_DEVICES)
    ] = 512,
    open_rows: Annotated[
        int,
        whole("Rows that the device trains. With 0 it counts who rates what, for all items.", least=0, most=MOST_ITEMS),
    ] = 2000,
    open_items: Annotated[
        int, whole("Open items in the session in the clear. With 0 all are open.", least=0, most=MOST_ITEMS)
    ] = 0,
    json_file: Json = None,
    report: Report = None,
) -> None:
    """One real device from outside: memory, CPU time, threads, and bytes at the TLS socket, phase by phase.

    Exit code 1 when one of the limits is broken.
    """
    from lightfr_harness.bench import device as bench
    from lightfr_harness.reports.bench import device_rows

    for name, value in (("--ratings", ratings), ("--open-rows", open_rows), ("--open-items", open_items)):
        if value > items:
            raise typer.BadParameter(f"{value} are more than the {items} items", param_hint=name)
    with errors_as_messages(), Console(stderr=True).status("starting") as status:

        def progress(phase: str) -> None:
            status.update(f"measuring: {phase}")

        measured = bench.run_all(items, bits, ratings, open_items, progress)
        measured["secure"] = bench.run_secure(items, bits, ratings, open_rows, cohort, progress)
        record = from_dict(DeviceRecord, measured)
        save(record, json_file, report)
    rows = device_rows(record)
    if json_file != "-":
        table = Table("", "measured", "limit", "", title=f"one device, {record.items:,} items of {record.bits} bits")
        for cells in rows:
            table.add_row(*cells)
        terminal().print(table)
    if any(verdict == "broken" for *_, verdict in rows):
        raise typer.Exit(code=1)
