"""The lightfr-harness command: one sub-command per room."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lightfr import __version__
from lightfr.errors import InvalidInputError
from lightfr_harness.audits.cli import app as audit_app
from lightfr_harness.bench.cli import app as bench_app
from lightfr_harness.conformance.cli import conformance, conformance_kit
from lightfr_harness.console import Json, output_folder
from lightfr_harness.data.cli import app as data_app
from lightfr_harness.errors import errors_as_messages
from lightfr_harness.paper.cli import app as paper_app
from lightfr_harness.reports import cli as reports_cli
from lightfr_harness.server.authority.cli import app as authority_app
from lightfr_harness.server.coordinator.cli import catalogue_app, rollback, serve
from lightfr_harness.simulation import cli as runs_cli
from lightfr_harness.simulation.scale_cli import app as simulate_app

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"lightfr-harness {__version__}")
        raise typer.Exit


@app.callback()
def lightfr_harness(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the release and exit.")
    ] = False,
) -> None:
    """Train, simulate, audit and benchmark recommendation with binary codes.

    Exit codes: 0 all is well, 1 a limit is broken or a case failed, 2 the command could not be tried.
    """


@app.command()
def demo(
    data: Annotated[
        Path | None, typer.Option(help="Your own ratings; the format is guessed. Default: a made-up catalogue.")
    ] = None,
    titles: Annotated[
        Path | None,
        typer.Option(help="What the items of --data are called: lines of id, title and perhaps genres, or MovieLens."),
    ] = None,
    json_file: Json = None,
    report: Annotated[Path, output_folder("Folder for the pages, the record and the learned matrix.")] = Path(
        "out/demo"
    ),
) -> None:
    """See it work: train a fleet of devices in private, and play with what they learned in a page of your own."""
    from lightfr_harness import demo as demos

    with errors_as_messages():
        if titles and not data:
            raise InvalidInputError("--titles names the items of --data: give both")
        raise typer.Exit(demos.main(report, json_file, demos.Scene(data=data, titles=titles)))


app.command()(runs_cli.train)
app.command()(runs_cli.sweep)
app.command()(serve)
app.command()(reports_cli.compare)
app.command()(reports_cli.report)
app.command()(conformance)
app.command("conformance-kit")(conformance_kit)
app.command()(rollback)
app.add_typer(authority_app, name="ca")
app.add_typer(catalogue_app, name="catalogue")
app.add_typer(data_app, name="data")
app.add_typer(bench_app, name="bench")
app.add_typer(audit_app, name="audit")
app.add_typer(paper_app, name="paper")
app.add_typer(simulate_app, name="simulate")
