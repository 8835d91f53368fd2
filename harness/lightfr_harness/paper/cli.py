"""lightfr-harness paper: the paper's tables and figures, measured anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from lightfr_harness.audits.cost.cli import INTERRUPTED_EXIT, print_findings
from lightfr_harness.audits.cost.formulas import DATASETS
from lightfr_harness.console import MOST_ITEMS, Json, Seed, choice, output_folder, progress_bar, terminal, whole
from lightfr_harness.data.cli import (
    Format,
    ItemColumn,
    RatingColumn,
    RatingMax,
    RatingMin,
    TimeColumn,
    UserColumn,
    format_of,
    reader_options,
)
from lightfr_harness.data.readers import READERS
from lightfr_harness.errors import errors_as_messages
from lightfr_harness.paper.accuracy import CHOICES
from lightfr_harness.paper.protocols import PROTOCOLS
from lightfr_harness.paper.sources import Source, sources
from lightfr_harness.simulation.baselines.registry import METHODS
from lightfr_harness.simulation.cli import Data, Rounds, Synthetic

if TYPE_CHECKING:
    from lightfr_harness.records import PaperAccuracyRecord, Record

Files = Annotated[
    list[Path] | None,
    typer.Option(help="A file of ratings; may be given more than once. Default: a synthetic set."),
]
Formats = Annotated[
    list[str] | None,
    choice(
        READERS, "Format of all files, or one for each in their order. Default: what each looks like, which is shown."
    ),
]
Folder = Annotated[
    Path, output_folder("Folder for pages, records and finished runs; a stopped command goes on from there.")
]

app = typer.Typer(name="paper", help="Measure the paper's tables and figures anew.", no_args_is_help=True)


@app.callback()
def paper() -> None:
    """Measure the paper's tables and figures anew, beside what it states."""


@app.command()
def accuracy(
    data: Data = None,
    format: Format = None,
    synthetic: Synthetic = "small",
    method: Annotated[list[str] | None, choice(METHODS, "A method; may be given more than once. Default: all.")] = None,
    protocol: Annotated[
        list[str] | None, choice(PROTOCOLS, "May be given more than once. Default: last-out-49.")
    ] = None,
    settings: Annotated[
        str, choice(CHOICES, "The authors' constants, the best of a grid on validation, or both.")
    ] = "both",
    seeds: Annotated[
        int | None, whole("Final runs of each row, averaged. Default: 3; quick: 1.", least=1, most=100)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="At most 10 steps, two settings to tune by, one seed: to see that it works.")
    ] = False,
    user: UserColumn = None,
    item: ItemColumn = None,
    rating: RatingColumn = None,
    timestamp: TimeColumn = None,
    rating_min: RatingMin = None,
    rating_max: RatingMax = None,
    json_file: Json = None,
    report: Folder = Path("out/paper"),
) -> None:
    """Train every system of the paper and judge all by one protocol: Tables 4 and 6.

    Constants are the authors', and the best of a grid on validation, with the number of steps chosen there too. HR@10
    and NDCG@10 are expectations under random tie-breaking. Where the data set is one of the paper's four, what it
    states stands beside; differences are information, not failures.
    """
    from lightfr_harness.paper.accuracy import SEEDS, AccuracyOptions, measure
    from lightfr_harness.reports.pages import save

    with errors_as_messages():
        options = AccuracyOptions(
            methods=tuple(method or ()),
            protocols=tuple(dict.fromkeys(protocol or ["last-out-49"])),
            settings=settings,
            seeds=seeds if seeds is not None else 1 if quick else SEEDS,
            quick=quick,
        )
        read_by = reader_options(user, item, rating, timestamp, rating_min, rating_max)
        [source] = _sources([data] if data else [], [format] if format else [], synthetic, read_by)
        ratings = source.load()
        with progress_bar() as bar:
            task = bar.add_task("paper accuracy", total=options.n_runs, detail="")
            record = measure(
                ratings,
                source.name,
                source.stated,
                options,
                report / "accuracy.jsonl",
                lambda label, done: bar.update(task, completed=done, detail=label),
            )
        save(record, json_file, report)
    if json_file != "-":
        _print(record)
        _say_where(record, report)


@app.command()
def costs(
    dataset: Annotated[str, choice(DATASETS, "Whose shape; no data is needed.")] = "ciao",
    open_rows: Annotated[
        int,
        whole(
            "Items with a row of their own where only open ones have one. Default: Ciao's.", least=0, most=MOST_ITEMS
        ),
    ] = 0,
    seed: Seed = 0,
    json_file: Json = None,
    report: Folder = Path("out/paper"),
) -> None:
    """Measure what a device of each federated method stores, sends and computes: Tables 1 and 5, Figure 3.

    Formulas, ticks and the text's factors stand beside, each confirmed or refuted, which is no failure. LightFR is an
    emulated device with the SDK; the others exchange encoded messages. Times are CPU time of a top 10, in turns.
    """
    from lightfr_harness.paper.costs import PARTS, CostsOptions, measure
    from lightfr_harness.reports.pages import save
    from lightfr_harness.reports.paper_costs import BYTE_HEADS, TIME_HEADS, about, byte_rows, time_rows

    with errors_as_messages():
        options = CostsOptions(dataset, open_rows, seed)
        with progress_bar() as bar:
            task = bar.add_task("paper costs", total=len(PARTS), detail="")
            record = measure(
                options, report / "costs.jsonl", lambda label, done: bar.update(task, completed=done, detail=label)
            )
        save(record, json_file, report)
    if json_file != "-":
        terminal().print(about(record))
        for heads, rows in ((BYTE_HEADS, byte_rows(record)), (TIME_HEADS, time_rows(record))):
            table = Table(*heads)
            for name, cells in rows:
                table.add_row(name, *cells)
            terminal().print(table)
        print_findings(record.findings)
        _say_where(record, report)


@app.command()
def figures(
    data: Files = None,
    format: Formats = None,
    synthetic: Synthetic = "small",
    rounds: Rounds = 50,
    seeds: Annotated[int, whole("Runs per point of Figures 4 to 6, averaged.", least=1, most=100)] = 1,
    user: UserColumn = None,
    item: ItemColumn = None,
    rating: RatingColumn = None,
    timestamp: TimeColumn = None,
    rating_min: RatingMin = None,
    rating_max: RatingMax = None,
    json_file: Json = None,
    report: Folder = Path("out/paper"),
) -> None:
    """Draw the paper's Figures 1, 4, 5 and 6 anew, the last three for each data set, beside what its text says."""
    from lightfr_harness.paper.figures import FiguresOptions, measure
    from lightfr_harness.reports.pages import save

    with errors_as_messages():
        read_by = reader_options(user, item, rating, timestamp, rating_min, rating_max)
        options = FiguresOptions(_sources(data or [], format or [], synthetic, read_by), rounds, seeds)
        with progress_bar() as bar:
            task = bar.add_task("paper figures", total=options.n_runs, detail="")
            record = measure(
                options, report / "figures.jsonl", lambda label, done: bar.update(task, completed=done, detail=label)
            )
        save(record, json_file, report)
    if json_file != "-":
        print_findings(record.findings)
        _say_where(record, report)


@app.command("all")
def everything(
    data: Files = None,
    format: Formats = None,
    synthetic: Synthetic = "small",
    quick: Annotated[
        bool, typer.Option("--quick", help="Few rounds and steps, one seed: to see that it works, in minutes.")
    ] = False,
    user: UserColumn = None,
    item: ItemColumn = None,
    rating: RatingColumn = None,
    timestamp: TimeColumn = None,
    rating_min: RatingMin = None,
    rating_max: RatingMax = None,
    report: Folder = Path("out/paper"),
) -> None:
    """Measure every table and figure of the paper, and put all on one page, each with its claim and what we make of it.

    The page is written anew after each part. Ctrl-C keeps what is there, and the same command goes on.
    """
    from lightfr_harness.paper.everything import PAGE, measure

    with errors_as_messages():
        read_by = reader_options(user, item, rating, timestamp, rating_min, rating_max)
        chosen = _sources(data or [], format or [], synthetic, read_by)
        try:
            with progress_bar() as bar:
                task = bar.add_task("paper all", total=1.0, detail="")
                measure(chosen, report, lambda what, share: bar.update(task, completed=share, detail=what), quick=quick)
        except KeyboardInterrupt:
            typer.echo(f"Interrupted: {report / PAGE} has what is there. The same command goes on.", err=True)
            raise typer.Exit(code=INTERRUPTED_EXIT) from None
    typer.echo(f"page: {report / PAGE}")


def _sources(
    files: Sequence[Path], formats: Sequence[str], synthetic: str, read_by: dict[str, str | float]
) -> list[Source]:
    """What is measured on; the format of a file is guessed where none is named."""
    return sources(files, formats or [format_of(file, None) for file in files], synthetic, read_by)


def _say_where(record: Record, report: Path) -> None:
    typer.echo(f"page: {report / f'{record.kind}.html'}   record: {report / f'{record.kind}.json'}")


def _print(record: PaperAccuracyRecord) -> None:
    from lightfr_harness.reports.paper import accuracy_heads, accuracy_rows

    for protocol in record.held_out:
        table = Table(*accuracy_heads(record), title=f"{protocol}, {record.data}")
        table.columns[0].min_width = 15
        rows = [each for each in record.rows if each["protocol"] == protocol]
        for name, cells in accuracy_rows(record, rows):
            table.add_row(name, *cells)
        terminal().print(table)
