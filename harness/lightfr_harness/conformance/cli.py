"""lightfr-harness conformance and conformance-kit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lightfr_harness.conformance.vectors import DEFAULT_FOLDER
from lightfr_harness.errors import errors_as_messages

if TYPE_CHECKING:
    from rich.console import Console

    from lightfr_harness.conformance.registry import Case
    from lightfr_harness.conformance.runner import Result
    from lightfr_harness.conformance.world import World

VectorsOption = Annotated[Path, typer.Option(help="Folder of the test vectors: vectors/v1 of the source tree.")]


def conformance_kit(
    folder: Annotated[Path, typer.Argument(help="The kit's new folder.")],
    privacy: Annotated[str, typer.Option(help="clear or secagg.")],
    crowd: Annotated[
        bool, typer.Option("--crowd", help="secagg with 70 places: a graph that is not complete.")
    ] = False,
    host: Annotated[str, typer.Option(help="What the server's certificate names.")] = "localhost",
    vectors: VectorsOption = DEFAULT_FOLDER,
) -> None:
    """Write what a server under test is started with: keys, tokens, catalogue, first codes, settings."""
    from lightfr_harness.conformance.kit import KitError, make_kit
    from lightfr_harness.conformance.vectors import Vectors

    with errors_as_messages():
        if privacy not in ("clear", "secagg") or (crowd and privacy != "secagg"):
            raise KitError("there are kits for --privacy clear, for --privacy secagg, and for --privacy secagg --crowd")
        make_kit(folder, "crowd" if crowd else privacy, host, Vectors.read(vectors))
        typer.echo(f"{folder} is ready, for one run. Start a server with it (docs/conformance.md), then:")
        typer.echo(f"  lightfr-harness conformance https://{host}:PORT --enrollment https://{host}:PORT --kit {folder}")


def conformance(
    server: Annotated[str, typer.Argument(help="Where devices reach the server: https://host:port.")] = "",
    enrollment: Annotated[str, typer.Option(help="Where devices enrol: https://host:port.")] = "",
    kit: Annotated[Path | None, typer.Option(help="The kit that the server was started with.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the results here too.")] = None,
    known_failing: Annotated[
        Path | None, typer.Option(help="Ids of cases, one per line, that may fail. They run all the same.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Cases to run: an id or a pattern, 'upload.*'.")] = None,
    list_cases: Annotated[bool, typer.Option("--list", help="List the cases and leave.")] = False,
    vectors: VectorsOption = DEFAULT_FOLDER,
) -> None:
    """Try a coordinator, in whatever language, over the wire: is it what docs/protocol.md says?

    Exit code 0: it is. 1: some cases are not as they should be. 2: the server could not be tried.
    """
    from rich.console import Console

    from lightfr_harness.conformance import cases, output
    from lightfr_harness.conformance.kit import Kit
    from lightfr_harness.conformance.registry import SelectionError, registry
    from lightfr_harness.conformance.vectors import Vectors
    from lightfr_harness.conformance.world import World

    cases.load()
    console = Console()
    with errors_as_messages():
        opened = Kit(kit) if kit else None
        chosen = registry.cases(opened.settings.kind if opened else None, only or ())
        if list_cases:
            output.show_list(console, chosen)
            return
        if not server or not enrollment or opened is None:
            raise SelectionError("name the server, its --enrollment address and the --kit that it was started with")
        results = _try(console, World(server, enrollment, opened, Vectors.read(vectors)), chosen, known_failing)
        output.show(console, results)
        if json_file:
            output.write_json(json_file, results, server, opened.settings.kind)
        raise typer.Exit(0 if all(result.is_good for result in results) else 1)


def _try(console: Console, world: World, chosen: list[Case], known_failing: Path | None) -> list[Result]:
    """Run the cases; leaves with exit code 2 when the server cannot be tried."""
    from lightfr_harness.conformance import output
    from lightfr_harness.conformance.registry import read_known_failing, registry
    from lightfr_harness.conformance.runner import Untestable, require_testable, run_all

    with world:
        known = read_known_failing(known_failing, {one.id for one in registry.cases()}) if known_failing else set()
        try:
            require_testable(world)
        except Untestable as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(2) from error
        return output.collect(console, run_all(chosen, world, known), len(chosen))
