"""lightfr-harness paper: the paper's tables and figures, measured anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from lightfr_harness.console import Json, progress_bar
from lightfr_harness.errors import CannotRunError, errors_as_messages
from lightfr_harness.simulation.cli import Data, Format, Synthetic

if TYPE_CHECKING:
    from lightfr_harness.data import Ratings
    from lightfr_harness.records import PaperAccuracyRecord

app = typer.Typer(name="paper", help="Measure the paper's tables and figures anew.", no_args_is_help=True)


@app.callback()
def paper() -> None:
    """Measure the paper's tables and figures anew, beside what it states."""


@app.command()
def accuracy(
    data: Data = None,
    format: Format = "ml-100k",
    synthetic: Synthetic = "small",
    method: Annotated[
        list[str] | None, typer.Option(help="A method, by its name; may be given more than once. Default: all.")
    ] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            help="last-out-49, last-out-99 or 80-10-10-sampled; may be given more than once. Default: last-out-49."
        ),
    ] = None,
    settings: Annotated[
        str, typer.Option(help="authors (their constants), tuned (the best of a grid on validation) or both.")
    ] = "both",
    seeds: Annotated[int | None, typer.Option(help="Final runs of each row, averaged. Default: 3; quick: 1.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="At most 10 steps, two settings to tune by, one seed: to see that it works.")
    ] = False,
    json_file: Json = None,
    report: Annotated[
        Path, typer.Option(help="Folder for the HTML page, the record and the finished runs; a stopped table goes on.")
    ] = Path("out/paper"),
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
        ratings = _ratings(data, format, synthetic)
        name = str(data) if data else f"synthetic {synthetic}"
        with progress_bar() as bar:
            task = bar.add_task("paper accuracy", total=options.n_runs, detail="")
            record = measure(
                ratings,
                name,
                format if data else "",
                options,
                report / "accuracy.jsonl",
                lambda label, done: bar.update(task, completed=done, detail=label),
            )
        save(record, json_file, report)
    if json_file != "-":
        _print(record)
        Console().print(f"page: {report / f'{record.kind}.html'}   record: {report / f'{record.kind}.json'}")


def _ratings(data: Path | None, format: str, synthetic: str) -> Ratings:
    from lightfr_harness.data import Ratings, generate, load

    loaded = generate(synthetic) if data is None else load(data, format)
    if not isinstance(loaded, Ratings):
        raise CannotRunError("a prepared split has its own test: name a file of ratings, which the protocols can split")
    return loaded


def _print(record: PaperAccuracyRecord) -> None:
    from lightfr_harness.reports.paper import accuracy_heads, accuracy_rows

    for protocol in record.held_out:
        table = Table(*accuracy_heads(record), title=f"{protocol}, {record.data}")
        table.columns[0].min_width = 15
        for name, cells in accuracy_rows(record, protocol):
            table.add_row(name, *cells)
        Console().print(table)
