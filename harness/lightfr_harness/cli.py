"""The lightfr-harness command: one sub-command per room."""

from __future__ import annotations

import sys
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lightfr import __version__
from lightfr.errors import InvalidInputError
from lightfr_harness.console import Json, output_folder
from lightfr_harness.errors import errors_as_messages

# Where each command is. A room is imported when its command is asked for: servers start without what audits load.
ROOMS = {
    "demo": "cli:demo",
    "train": "simulation.cli:train",
    "sweep": "simulation.cli:sweep",
    "serve": "server.coordinator.cli:serve",
    "compare": "reports.cli:compare",
    "report": "reports.cli:report",
    "conformance": "conformance.cli:conformance",
    "conformance-kit": "conformance.cli:conformance_kit",
    "rollback": "server.coordinator.cli:rollback",
    "ca": "server.authority.cli:app",
    "catalogue": "server.coordinator.cli:catalogue_app",
    "data": "data.cli:app",
    "bench": "bench.cli:app",
    "audit": "audits.cli:app",
    "paper": "paper.cli:app",
    "simulate": "simulation.scale_cli:app",
}


class Rooms(TyperGroup):
    """The commands of ROOMS, each made when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(ROOMS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # All of them for a name that is none: the error suggests those that look like it.
        for name in [cmd_name] if cmd_name in ROOMS else ROOMS:
            if name not in self.commands:
                self.commands[name] = _command(name)
        return super().get_command(ctx, cmd_name)


def _command(name: str) -> Any:
    module, _, attribute = ROOMS[name].partition(":")
    found = getattr(import_module(f"lightfr_harness.{module}"), attribute)
    room = typer.Typer()
    if isinstance(found, typer.Typer):
        room.add_typer(found, name=name)
    else:
        room.command(name)(found)
    return typer.main.get_group(room).commands[name]


app = typer.Typer(
    cls=Rooms,
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
    # A letter that the terminal's encoding lacks must not end a command that has done its work.
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


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
