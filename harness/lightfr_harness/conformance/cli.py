"""lightfr-harness conformance and conformance-kit."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from lightfr_harness.console import choice, output_file
from lightfr_harness.errors import CannotRunError, errors_as_messages

# A server that takes longer to start would lose the rounds that the suite has opened.
COMMAND_SECONDS = 30

VectorsOption = Annotated[
    Path | None, typer.Option(help="Folder of the test vectors. By default the harness uses its own copy.")
]


def conformance_kit(
    folder: Annotated[Path, typer.Argument(help="The folder to make for the kit.")],
    privacy: Annotated[str, choice(("clear", "secagg", "secagg+dp"), "What the server will learn.", "--privacy")],
    crowd: Annotated[
        bool,
        typer.Option("--crowd", help="Use secagg with 130 places: not every device is a neighbour of every other."),
    ] = False,
    gate: Annotated[
        bool, typer.Option("--gate", help="Use secagg without counts: devices count who rates what.")
    ] = False,
    uploads: Annotated[
        str,
        choice(
            ("ternary", "exact", "paper", "codes"),
            "With --privacy clear: rows, or as the paper has them, paper (gradients) or codes.",
        ),
    ] = "ternary",
    evaluation: Annotated[
        bool, typer.Option("--evaluation", help="Use secagg with evaluations: devices say how to rank.")
    ] = False,
    host: Annotated[str, typer.Option(help="The host name in the server's certificate.")] = "localhost",
    vectors: VectorsOption = None,
) -> None:
    """Write the files that a server under test starts with: keys, tokens, catalogue, first codes, settings."""
    from lightfr_harness.conformance.kit import UPLOADS, make_kit
    from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors

    with errors_as_messages():
        kinds = {"crowd": crowd, "gate": gate, "evaluation": evaluation}
        special = [name for name, is_wanted in kinds.items() if is_wanted]
        if privacy not in ("clear", "secagg", "secagg+dp") or len(special) > (privacy == "secagg"):
            raise CannotRunError(
                "use --privacy clear, secagg or secagg+dp; "
                "secagg alone, or with one of --crowd, --gate and --evaluation"
            )
        if uploads != "ternary" and (uploads not in UPLOADS or privacy != "clear"):
            raise CannotRunError(f"use --uploads ternary or, with --privacy clear, one of {', '.join(UPLOADS)}")
        kind = special[0] if special else "noise" if privacy == "secagg+dp" else privacy
        kind = uploads if uploads in UPLOADS else kind
        make_kit(folder, kind, host, Vectors.read(vectors or DEFAULT_FOLDER))
        typer.echo(f"The kit {folder} is ready for one run. Start a server with it (docs/conformance.md), then run:")
        typer.echo(f"  lightfr-harness conformance https://{host}:PORT --enrollment https://{host}:PORT --kit {folder}")


def conformance(
    server: Annotated[str, typer.Argument(help="Address of the server for devices: https://host:port.")] = "",
    enrollment: Annotated[str, typer.Option(help="Address of the server for enrolment: https://host:port.")] = "",
    kit: Annotated[Path | None, typer.Option(help="The kit that the server was started with.")] = None,
    json_file: Annotated[
        str | None, output_file("Write the results to FILE; - prints them and nothing else.", "--json")
    ] = None,
    known_failing: Annotated[
        Path | None, typer.Option(help="A file with the ids of cases that may fail, one per line. They still run.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Run only these cases: ids or patterns, 'upload.*'.")] = None,
    list_cases: Annotated[bool, typer.Option("--list", help="List the cases and exit.")] = False,
    restart_command: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Kills the server and starts it again on its state; it must end when the server listens. "
            "Without it the cases 'restart.*' are left out.",
        ),
    ] = "",
    catalogue_command: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Lets the server change its catalogue to the items of a file, which is the command's last argument. "
            "Without it the cases 'catalogue.*' are left out.",
        ),
    ] = "",
    vectors: VectorsOption = None,
) -> None:
    """Test over the wire whether a coordinator, in any language, does what docs/protocol.md says.

    Exit code 0: every case passed. 1: some cases failed. 2: the server could not be tested.
    """
    from rich.console import Console

    from lightfr_harness.conformance import cases, output
    from lightfr_harness.conformance.kit import Kit
    from lightfr_harness.conformance.registry import CATALOGUE, RESTART, read_known_failing, registry
    from lightfr_harness.conformance.runner import require_testable, run_all
    from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors
    from lightfr_harness.conformance.world import World

    cases.load()
    # A report that goes to standard output is alone there.
    console = Console(stderr=json_file == "-")
    with errors_as_messages():
        opened = Kit(kit) if kit else None
        commands = {RESTART: restart_command, CATALOGUE: catalogue_command}
        without = [group for group, command in commands.items() if not command and not list_cases]
        chosen = registry.cases(opened.settings.kind if opened else None, only or (), without)
        if list_cases:
            output.show_list(console, chosen)
            return
        if not server or not enrollment or opened is None:
            raise CannotRunError("name the server, its --enrollment address and the --kit that it was started with")
        _require_address("SERVER", server)
        _require_address("--enrollment", enrollment)
        known = read_known_failing(known_failing, {one.id for one in registry.cases()}) if known_failing else set()
        known_answers = Vectors.read(vectors or DEFAULT_FOLDER)

        def restart() -> None:
            _run("--restart-command", restart_command)

        def change_catalogue(items: Path) -> None:
            _run("--catalogue-command", catalogue_command, str(items.resolve()))

        with World(server, enrollment, opened, known_answers, restart, change_catalogue) as world:
            # Who begins with a new server has TLS before anything else.
            if any(one.group != "tls" for one in chosen):
                require_testable(world)
            results = output.collect(console, run_all(chosen, world, known), len(chosen))
        output.show(console, results)
        if json_file:
            output.write_json(json_file, results, server, opened.settings.kind)
        raise typer.Exit(0 if all(result.is_good for result in results) else 1)


def _run(option: str, command: str, *arguments: str) -> None:
    """Run the command of an option; raises CannotRunError unless it ends well and soon."""
    try:
        words = [*shlex.split(command), *arguments]
        ended = subprocess.run(words, stdout=subprocess.DEVNULL, timeout=COMMAND_SECONDS)
        reason = f"it ended with {ended.returncode}" if ended.returncode else ""
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    if reason:
        raise CannotRunError(f"the {option} {command!r} failed ({reason}): try it by hand")


def _require_address(name: str, address: str) -> None:
    """Raise CannotRunError unless the address can be connected to."""
    try:
        parts = urlsplit(address)
        is_good = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:  # The port is no number, or the brackets of an IPv6 address do not close.
        is_good = False
    if not is_good:
        raise CannotRunError(f"{name} is {address!r}: give an address of the form https://host:port")
