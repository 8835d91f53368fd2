"""lightfr-harness serve."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from lightfr_harness.errors import errors_as_messages


def serve(
    folder: Annotated[Path, typer.Argument(help="Where the coordinator keeps everything. Made if it is not there.")],
    authority: Annotated[Path, typer.Option(help="Folder that `ca init` made.")],
    catalogue: Annotated[
        Path, typer.Option(help="One item per line, most popular first: ID, or ID<TAB>number of devices that rate it.")
    ],
    bits: Annotated[int, typer.Option(help="Code length, 8 to 1024 in steps of 8.")] = 64,
    host: Annotated[str, typer.Option(help="Address for devices.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port for devices; 0 picks a free one.")] = 8443,
    enrollment_port: Annotated[int, typer.Option(help="Port for enrolment.")] = 8444,
    operations_port: Annotated[int, typer.Option(help="Loopback port for /metrics and the status page.")] = 8445,
    goal: Annotated[int, typer.Option(help="Uploads that end a round.")] = 64,
    over_selection: Annotated[float, typer.Option(help="Places in a round, as a multiple of the goal.")] = 1.3,
    minimum: Annotated[int, typer.Option(help="Uploads below which a round is dropped at its deadline.")] = 1,
    deadline_seconds: Annotated[float, typer.Option(help="Length of a round at most, from its first place on.")] = 60,
    rounds: Annotated[int | None, typer.Option(help="Rounds that shall finish in all. Default: no end.")] = None,
    gate: Annotated[int, typer.Option(help="A row learns from devices only if at least this many rate the item.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the first codes.")] = 0,
    integer_ids: Annotated[bool, typer.Option("--integer-ids", help="Item ids are 64-bit integers.")] = False,
    not_private: Annotated[
        bool, typer.Option("--not-private", help="Serve other machines although uploads reveal what users rated.")
    ] = False,
) -> None:
    """Coordinate training over mutual TLS: rounds, uploads, downloads. Uploads are in the clear: NOT PRIVATE."""
    # Here, so that the other commands start without aiohttp.
    from lightfr_harness.authority import Authority
    from lightfr_harness.coordinator.options import ItemList, Settings, require_private
    from lightfr_harness.coordinator.rounds import Plan
    from lightfr_harness.coordinator.serving import Addresses, serve_until_stopped

    with errors_as_messages():
        require_private(host, not_private=not_private)
        items = ItemList.read(catalogue, integer_ids=integer_ids)
        settings = Settings(bits, gate, seed, integer_ids, items.sha256)
        plan = Plan(goal, over_selection, minimum, deadline_seconds, rounds)
        wanted = Addresses(host, port, enrollment_port, operations_port)
        is_good = asyncio.run(serve_until_stopped(folder, Authority.open(authority), items, settings, plan, wanted))
        raise typer.Exit(0 if is_good else 1)
