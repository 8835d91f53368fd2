"""lightfr-harness bench ...: every benchmark prints a table for people or JSON for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

app = typer.Typer(no_args_is_help=True, help="Time our kernel against contenders, interleaved, by CPU time.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Seed = Annotated[int, typer.Option(help="Seed of the generated codes and queries.")]
Seconds = Annotated[float, typer.Option(help="CPU seconds to spend on one configuration.")]


@app.command()
def topk(
    items: Annotated[int, typer.Option(min=10, help="Items in the catalogue.")] = 1_000_000,
    bits: Annotated[int, typer.Option(help="Code length, 8 to 1024 in steps of 8.")] = 64,
    batch: Annotated[int, typer.Option(min=1, help="Queries per call.")] = 1,
    codes: Annotated[str, typer.Option(help="random, or learned: clustered as learned codes are.")] = "random",
    seed: Seed = 0,
    seconds: Seconds = 4,
    as_json: Json = False,
) -> None:
    """Exact top-10: ours, faiss IndexBinaryFlat, float64 inner products, and a plain read of the bytes."""
    from lightfr_harness.bench import topk as bench

    if codes not in ("random", "learned"):
        raise typer.BadParameter(f"'{codes}' is neither random nor learned", param_hint="--codes")
    record = bench.run(items, bits, batch, codes, seed, seconds)
    if as_json:
        print(json.dumps(record))
    else:
        Console().print(_table([record]))


@app.command()
def fit(
    rated: Annotated[int, typer.Option(min=1, help="Rated items of the user.")] = 166,
    bits: Annotated[int, typer.Option(help="Code length.")] = 64,
    seed: Seed = 0,
    seconds: Seconds = 2,
    as_json: Json = False,
) -> None:
    """Ten sweeps of the user fit: the kernel against plain numpy, bits asserted equal."""
    from lightfr_harness.bench import fit as bench

    record = bench.run(rated, bits, 1682, seed, seconds)
    if as_json:
        print(json.dumps(record))
    else:
        Console().print(f"{rated} ratings, {bits} bits: {record['numpy_ratio']:.0f} times faster than numpy (median "
                        f"{record['numpy_ratio_median']:.0f}), {record['ours_ns'] / 1000:.1f} us a fit")  # fmt: skip


@app.command()
def rounds(
    bits: Annotated[int, typer.Option(help="Code length.")] = 64,
    seed: Seed = 0,
    seconds: Seconds = 2,
    as_json: Json = False,
) -> None:
    """What a device round costs against the number of ratings, items and devices."""
    from lightfr_harness.bench import rounds as bench

    record = bench.run(bits, seed, seconds)
    if as_json:
        print(json.dumps(record))
        return
    table = Table("against", "microseconds of CPU a device round", title=f"{bits} bits, model at hand")
    for name in ("ratings", "items", "devices"):
        cells = (f"{n}: {us:.0f}" for n, us in record[f"us_by_{name}"].items())
        table.add_row(name, "   ".join(cells))
    table.caption = f"grows as ratings ^ {record['exponent_in_ratings']:.2f} at the upper end"
    Console().print(table)


@app.command()
def load(
    rate: Annotated[float, typer.Option(min=1, help="New connections a second, each a check-in and an upload.")] = 160,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds that they come for.")] = 60,
    runs: Annotated[int, typer.Option(min=1, help="How often; the machine may be busy with other things.")] = 1,
    kept: Annotated[int, typer.Option(min=1, help="Connections held at once afterwards.")] = 2000,
    as_json: Json = False,
) -> None:
    """A coordinator under new mutual-TLS connections that upload, then under many that stay."""
    from lightfr_harness.bench import load as bench
    from lightfr_harness.errors import errors_as_messages

    with errors_as_messages(), bench.started() as running:
        units = [bench.run_units(running, rate, seconds) for _ in range(runs)]
        held = bench.run_held(running, kept, seconds=10)
    if as_json:
        print(json.dumps({"units": units, "held": held}))
        return
    Console().print(_load_table(units))
    Console().print(f"{held['open_at_the_server']:,} connections open at once, {held['check_ins']:,} check-ins served, "
                    f"{held['errors']} errors; the server held {held['server_rss_bytes'] / 1e6:.0f} MB, "
                    f"{held['kilobytes_each']:.0f} KB for each")  # fmt: skip


def _load_table(runs: list[dict[str, Any]]) -> Table:
    table = Table(
        title=f"new mutual-TLS connections: a check-in and an upload of {runs[0]['request_bytes']:,} bytes each"
    )
    for name in ("accepted / s", "errors", "min ms", "p50", "p95", "p99", "max", "client CPU ms", "server", "load"):
        table.add_column(name, justify="right")
    for r in runs:
        latencies = (f"{r['latency_ms'][name]:.0f}" for name in ("min", "p50", "p95", "p99", "max"))
        cpu = (f"{r[f'{side}_cpu_ms_each']:.1f}" for side in ("client", "server"))
        errors = str(sum(r["errors"].values()))
        table.add_row(f"{r['accepted_per_second']:.1f}", errors, *latencies, *cpu, f"{r['load_average']:.1f}")
    return table


@app.command()
def report(
    out: Annotated[Path, typer.Option(help="Folder for the figure and the records.")] = Path("out/bench"),
    seed: Seed = 0,
    seconds: Seconds = 4,
) -> None:
    """Print the whole table (10^5 to 10^7 items, 64 and 128 bits, batches) and draw the paper's Figure 1."""
    from lightfr_harness.bench import figure1
    from lightfr_harness.bench import topk as bench

    single = [(items, bits, 1) for bits in (64, 128) for items in (10**5, 10**6, 10**7)]
    plan = [*single, (10**6, 64, 64), (10**6, 128, 64), (10**3, 64, 1), (10**4, 64, 1)]
    records: list[dict[str, Any]] = []
    with Progress(transient=True) as progress:
        for items, bits, batch in progress.track(plan, description="timing"):
            records.append(bench.run(items, bits, batch, "random", seed, seconds))
    Console().print(_table(records[:8]))
    out.mkdir(parents=True, exist_ok=True)
    (out / "topk.json").write_text(json.dumps(records, indent=1) + "\n")
    figure1.draw([r for r in records if r["bits"] == 64 and r["batch"] == 1], 64, out / "figure1.png")
    Console().print(f"records: {out / 'topk.json'}   figure: {out / 'figure1.png'}")


@app.command()
def accuracy(
    data: Annotated[Path, typer.Option(help="ML-100K ratings; `lightfr-harness data fetch ml-100k` brings them.")],
    as_json: Json = False,
) -> None:
    """Train the rows of docs/accuracy.md on ML-100K, seeds 0 to 2; exit code 1 when a required figure is missed."""
    from lightfr_harness.bench import accuracy as bench
    from lightfr_harness.errors import errors_as_messages

    with errors_as_messages(), Progress(transient=True, console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=len(bench.ROWS))
        results = bench.run(data, bench.ROWS, lambda row: progress.advance(task))
    if as_json:
        print(json.dumps(results))
    else:
        Console().print(_accuracy_table(results))
    if any(not result["reached"] and not result["is_goal"] for result in results):
        raise typer.Exit(code=1)


def _accuracy_table(results: list[dict[str, Any]]) -> Table:
    popularity = results[0]["popularity"]
    table = Table(title="ML-100K, leave-last-out, 49 negatives, expected ties, mean of seeds 0-2")
    for name in ("", "HR@10", "NDCG@10", "needed", "reached", "device rounds / CPU s"):
        table.add_column(name, justify="right")
    table.add_row("popularity list", f"{popularity['hr']:.4f}", f"{popularity['ndcg']:.4f}", "", "", "")
    for r in results:
        needed, reached = f"{r['needed_hr']:.3f} / {r['needed_ndcg']:.3f}", "yes" if r["reached"] else "NO"
        rate = f"{r['device_rounds_per_second']:,.0f}"
        table.add_row(r["row"], f"{r['hr']:.4f}", f"{r['ndcg']:.4f}", needed, reached, rate)
    return table


def _table(records: list[dict[str, Any]]) -> Table:
    table = Table(title=f"top-10, one thread, {records[0]['isa']}; ratios of minima (medians)")
    for name in ("items", "bits", "batch", "codes", "ours", "faiss / ours", "float64 / ours", "ours / floor"):
        table.add_column(name, justify="right")
    for r in records:
        ratios = (_cell(r, "faiss_ratio"), _cell(r, "float64_ratio"), _cell(r, "floor_ratio"))
        table.add_row(
            f"{r['items']:,}", str(r["bits"]), str(r["batch"]), r["codes"], f"{r['ours_ns'] / 1000:,.1f} us", *ratios
        )
    return table


def _cell(record: dict[str, Any], key: str) -> str:
    if record[key] is None:
        return "faiss not installed"
    return f"{record[key]:.2f} ({record[key + '_median']:.2f})"


@app.command()
def device(
    items: Annotated[int, typer.Option(min=1000, help="Items in the catalogue.")] = 1_000_000,
    bits: Annotated[int, typer.Option(help="Code length.")] = 64,
    ratings: Annotated[int, typer.Option(min=1, help="Ratings on the device.")] = 166,
    cohort: Annotated[int, typer.Option(min=2, help="Devices in the round of secure aggregation.")] = 512,
    open_rows: Annotated[
        int, typer.Option(min=0, help="Rows that it trains; 0: it counts who rates what, for all items.")
    ] = 2000,
    as_json: Json = False,
) -> None:
    """One real device from outside: memory, CPU time, threads, and bytes at the TLS socket, phase by phase."""
    from lightfr_harness.bench import device as bench

    console = Console(stderr=True)
    with console.status("starting") as status:

        def progress(phase: str) -> None:
            status.update(f"measuring: {phase}")

        record = bench.run_all(items, bits, ratings, progress)
        record["secure"] = bench.run_secure(items, bits, ratings, open_rows, cohort, progress)
    if as_json:
        print(json.dumps(record))
    else:
        Console().print(_device_table(record))


def _device_table(record: dict[str, Any]) -> Table:
    mib = 2**20
    rows = {
        "import lightfr, CPU ms over bare Python, min": (f"{record['import_cpu_ms_min']:.1f}", "30"),
        "the same, median": (f"{record['import_cpu_ms_median']:.1f}", "30"),
        "peak memory, MiB": (f"{record['peak_rss_bytes'] / mib:.1f}", "48"),
        "bare Python, MiB": (f"{record['bare_rss_bytes'] / mib:.1f}", ""),
        "threads": (str(record["most_threads"]), "1"),
        "numpy, grpc, aiohttp, sqlite3, asyncio, x509 loaded": (", ".join(record["loaded"]) or "none", "none"),
        "first sync above codes and catalogue, bytes": (
            f"{record['first_sync_over_codes_bytes']:,}",
            f"{record['first_sync_limit_bytes']:,}",
        ),
        "catalogue of item ids, bytes": (f"{record['catalogue_bytes']:,}", ""),
        "upload overhead, bytes": (f"{record['upload_overhead_bytes']:,}", "600"),
        "delta sync / changed rows": (f"{record['delta_ratio']:.3f}", "1.2"),
        **_secure_rows(record["secure"]),
    }
    table = Table("", "measured", "limit", title=f"one device, {record['items']:,} items of {record['bits']} bits")
    for name, (measured, limit) in rows.items():
        table.add_row(name, measured, limit)
    return table


def _secure_rows(record: dict[str, Any]) -> dict[str, tuple[str, str]]:
    kind = f"{record['open_rows']:,} open rows" if record["open_rows"] else "counting who rates what"
    return {
        f"among {record['cohort']} devices, {kind}: peak memory, MiB": (
            f"{record['peak_rss_bytes'] / 2**20:.1f}",
            "48",
        ),
        "CPU ms of the round": (f"{record['cpu_ms']:.0f}", ""),
        "threads, modules as above": (f"{record['most_threads']}, {', '.join(record['loaded']) or 'none'}", "1, none"),
        "bytes sent and received, in all": (f"{record['up_bytes']:,} and {record['down_bytes']:,}", ""),
        **{
            f"{name}, {call['count']} times, bytes inside": (
                f"{call['request_bytes']:,} and {call['answer_bytes']:,}",
                "",
            )
            for name, call in record["calls"].items()
        },
    }
