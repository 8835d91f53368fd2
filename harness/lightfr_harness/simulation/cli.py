"""lightfr-harness train and sweep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from lightfr.rankings import MOST_FOURTHS
from lightfr_harness import records
from lightfr_harness.console import (
    MOST_DEVICES,
    MOST_ITEMS,
    MOST_ROUNDS,
    Bits,
    Json,
    Report,
    Seed,
    choice,
    number,
    output_file,
    output_folder,
    progress_bar,
    terminal,
    whole,
)
from lightfr_harness.data.cli import (
    Format,
    ItemColumn,
    RatingColumn,
    RatingMax,
    RatingMin,
    TimeColumn,
    UserColumn,
    format_of,
    known_size,
    reader_options,
)
from lightfr_harness.errors import errors_as_messages
from lightfr_harness.server.rules import PRIVACY_MODES
from lightfr_harness.simulation.options import (
    AGGREGATES,
    ENGINES,
    MOST_WORKERS,
    OBJECTIVES,
    POSITIVES,
    RECENCIES,
    SPLITS,
    UPLOADS,
    TrainOptions,
)

Data = Annotated[
    Path | None, typer.Option(help="Ratings file, or folder of a prepared split. Default: a synthetic set.")
]
Synthetic = Annotated[
    str,
    typer.Option(
        help="Size of the synthetic set: a name that `data list` shows, or USERSxITEMSxRATINGS.", callback=known_size
    ),
]
Rounds = Annotated[int, whole("Rounds of training, T.", least=0, most=MOST_ROUNDS)]
Epsilon = Annotated[
    float, number("secagg+dp: what a user may lose in all rounds together, with delta 1e-5.", least=0, most=1000)
]


def train(
    data: Data = None,
    format: Format = None,
    synthetic: Synthetic = "ml-100k",
    split: Annotated[
        str, choice(SPLITS, "last-out gives HR and NDCG among candidates, 80-10-10 judges by the whole catalogue.")
    ] = "last-out",
    objective: Annotated[str, choice(OBJECTIVES, "Ours, or the paper's as printed.")] = "catalogue",
    aggregate: Annotated[str, choice(AGGREGATES["paper"], "Objective paper only. Default: grad.")] = "",
    upload: Annotated[str, choice(UPLOADS, "Default: ternary, or exact with objective paper.")] = "",
    gate: Annotated[
        int | None,
        whole(
            "A row learns from devices only if so many rate the item. Default: 10; paper and secagg+dp: 0.",
            least=0,
            most=MOST_DEVICES,
        ),
    ] = None,
    max_rows: Annotated[
        int | None,
        whole("Rows in one upload; 0 sends all. Default: 64 with ternary uploads, else all.", least=0, most=MOST_ITEMS),
    ] = None,
    positives: Annotated[
        str,
        choice(
            POSITIVES,
            "opinions: ratings below the middle of the scale are dislikes. all: every rating is a like of the same "
            "weight, as in the literature.",
        ),
    ] = "opinions",
    recency: Annotated[
        str,
        choice(
            RECENCIES,
            "Fix the ranking: how much more newer ratings weigh. Default: the fleet's evaluation chooses recency, "
            "refinement and prior. Where one of the three is given, the others are off.",
        ),
    ] = "",
    refine: Annotated[
        bool,
        typer.Option("--refine", help="Fix the ranking: refine codes, from 128 bits and 20 liked items on."),
    ] = False,
    prior: Annotated[
        float | None,
        number(
            "Fix the ranking: popularity adds so many times (f / 64) ln(1 + count) to a score of f bits; rounded to "
            "fourths.",
            least=0,
            most=MOST_FOURTHS / 4,
        ),
    ] = None,
    bits: Bits = 64,
    rounds: Rounds = 50,
    fraction: Annotated[float, number("Share of the devices in a round, p.", least=1e-9, most=1)] = 0.6,
    dropout: Annotated[float, number("Share of a round's devices that never upload.", least=0, most=0.99)] = 0.0,
    regularization: Annotated[
        float, number("Objective paper only: the balance weight.", "--lambda", least=0, most=1e6)
    ] = 0.0,
    privacy: Annotated[
        str, choice(PRIVACY_MODES, "What the server sees: everything, sums (really masked) or noisy sums.")
    ] = "clear",
    epsilon: Epsilon = 0.0,
    unmasked: Annotated[
        bool,
        typer.Option(
            "--unmasked", help="Add up without masks. The sums are the same and come much faster; no bytes are counted."
        ),
    ] = False,
    engine: Annotated[
        str, choice(ENGINES, "Where devices live: in this process, or on Ray. The results are the same, bit for bit.")
    ] = "local",
    workers: Annotated[
        int, whole("--engine ray: actors. Default 0: one for each CPU.", least=0, most=MOST_WORKERS)
    ] = 0,
    address: Annotated[
        str, typer.Option(help="--engine ray: address of a cluster, HOST:6379 or auto. Default: this machine.")
    ] = "",
    seed: Seed = 0,
    checkpoint: Annotated[
        Path | None, output_file("File that keeps the state after each round; a stopped run goes on from it.")
    ] = None,
    save: Annotated[
        Path | None, output_folder("Folder for the learned matrix, its model message and item ids.")
    ] = None,
    user: UserColumn = None,
    item: ItemColumn = None,
    rating: RatingColumn = None,
    timestamp: TimeColumn = None,
    rating_min: RatingMin = None,
    rating_max: RatingMax = None,
    json_file: Json = None,
    report: Report = None,
) -> None:
    """Train item codes over a fleet of simulated devices and measure their accuracy.

    Without --data it trains on a synthetic set. After training the fleet evaluates how to rank, on ratings that are not
    in the test, and each group of users is judged by what it chose. The record says the accuracy (expected under random
    tie-breaking, as devices break ties, of liked and disliked items, and by users' number of ratings), that of a
    popularity list on the same items, what every candidate would have given, the bytes of a device round, and the
    seconds by phase.
    """
    from lightfr_harness.reports.pages import save as save_record
    from lightfr_harness.simulation.train import train as run

    with errors_as_messages():
        options = TrainOptions(
            data=data,
            format=format_of(data, format),
            data_options=reader_options(user, item, rating, timestamp, rating_min, rating_max),
            synthetic=synthetic,
            split=split,
            objective=objective,
            aggregate=aggregate,
            upload=upload,
            gate=gate,
            max_rows=max_rows,
            positives=positives,
            recency=recency,
            refine=refine,
            prior=prior,
            bits=bits,
            rounds=rounds,
            fraction=fraction,
            dropout=dropout,
            regularization=regularization,
            privacy=privacy,
            epsilon=epsilon,
            unmasked=unmasked,
            engine=engine,
            workers=workers,
            address=address,
            seed=seed,
            checkpoint=checkpoint,
        )
        with progress_bar() as bar:
            task = bar.add_task("training", total=rounds, detail="")

            def progress(done: float, all_rounds: int, look: records.Look | None) -> None:
                bar.update(task, completed=done, total=all_rounds)
                if look is not None:
                    bar.update(task, detail=f"HR@10 {look['hr']:.3f}  NDCG@10 {look['ndcg']:.3f}")

            trained = run(options, progress)
        if save is not None:
            trained.save(save)
        save_record(trained.record, json_file, report)
    if json_file != "-":
        for table in _summary(trained.record):
            terminal().print(table)


def sweep(
    data: Data = None,
    format: Format = None,
    synthetic: Synthetic = "small",
    rounds: Rounds = 50,
    seeds: Annotated[int, whole("Runs per point, averaged.", least=1, most=100)] = 1,
    user: UserColumn = None,
    item: ItemColumn = None,
    rating: RatingColumn = None,
    timestamp: TimeColumn = None,
    rating_min: RatingMin = None,
    rating_max: RatingMax = None,
    json_file: Json = None,
    report: Annotated[
        Path, output_folder("Folder for the HTML page, the record and the finished runs; a stopped sweep goes on.")
    ] = Path("out/sweep"),
) -> None:
    """Run the paper's sensitivity plots (f, lambda, p) and ablation, with our objective beside the printed one."""
    from lightfr_harness.reports.pages import save as save_record
    from lightfr_harness.simulation import sweep as sweeps

    with errors_as_messages():
        base = TrainOptions(
            data=data,
            format=format_of(data, format),
            data_options=reader_options(user, item, rating, timestamp, rating_min, rating_max),
            synthetic=synthetic,
            rounds=rounds,
        )
        points = sweeps.plan(base, seeds)
        with progress_bar() as bar:
            task = bar.add_task("sweep", total=len(points), detail="")
            record = sweeps.run_all(
                base, seeds, points, report / "runs.jsonl", lambda point: bar.update(task, advance=1, detail=point.key)
            )
        save_record(record, json_file, report)
    if json_file != "-":
        typer.echo(f"page: {report / 'sweep.html'}   record: {report / 'sweep.json'}")


def _workers(record: records.TrainRecord) -> str:
    """What processes of Ray did, if there were any."""
    from lightfr_harness.reports.figures import in_bytes

    engine = record.engine
    if engine is None or not engine["workers"]:
        return ""
    cpu = ", ".join(f"{seconds:,.0f}" for seconds in engine["worker_cpu_seconds"])
    peak = in_bytes(max(engine["worker_peak_bytes"]))
    rate = engine["device_rounds_per_wall_second"] or 0.0
    return (
        f" {engine['workers']} workers did {rate:,.0f} device rounds a second by the clock, with {cpu} CPU seconds; "
        f"at most {peak} in one of them, {in_bytes(engine['peak_bytes'])} here."
    )


def _summary(record: records.TrainRecord) -> Iterator[Table]:
    from lightfr_harness.reports import choices
    from lightfr_harness.reports.training import accuracy_heads, accuracy_rows, left_out

    options = record.options
    title = f"{options['objective']} ({options['aggregate']}), {options['bits']} bits, {options['rounds']} rounds"
    table = Table(*accuracy_heads(record), title=title)
    for name, cells in accuracy_rows(record):
        table.add_row(name, *cells)
    up, down, rate = (
        record.up_bytes_per_device_round,
        record.down_bytes_per_device_round,
        record.device_rounds_per_second,
    )
    speed = f", {rate:,.0f} device rounds a CPU second" if rate else ""
    table.caption = f"{left_out(record)} A device round: {up:,.0f} bytes up, {down:,.0f} down{speed}.{_workers(record)}"
    yield table
    if opinions := choices.opinion_rows(record):
        table = Table(*choices.OPINION_HEADS, title="held-out items that users like and dislike (lower is better)")
        for name, cells in opinions:
            table.add_row(name, *cells)
        yield table
    if candidates := choices.candidate_rows(record):
        table = Table(*choices.candidate_heads(record), title="what the fleet said about each ranking, and the test")
        for name, cells in candidates:
            table.add_row(name, *cells)
        table.caption = f"NDCG@10, disliked items counted negative. {choices.CHOSEN} is used."
        yield table
