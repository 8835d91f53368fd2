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
    goal: Annotated[
        int | None, typer.Option(help="Uploads that a round is made for. Default: 512, in mode clear 64.")
    ] = None,
    over_selection: Annotated[float, typer.Option(help="Places in a round, as a multiple of the goal.")] = 1.3,
    minimum: Annotated[
        int | None,
        typer.Option(help="Devices below which a round is dropped. Default: 256 or the goal, in mode clear 1."),
    ] = None,
    deadline_seconds: Annotated[
        float, typer.Option(help="Length at most of a round, or of each of its phases, from the first place on.")
    ] = 60,
    rounds: Annotated[
        int | None, typer.Option(help="Training rounds that shall finish in all. Default: no end.")
    ] = None,
    gate: Annotated[int, typer.Option(help="A row learns from devices only if at least this many rate the item.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the first codes.")] = 0,
    codes: Annotated[
        Path | None, typer.Option(help="The first codes as a file, packed, instead of drawn ones.")
    ] = None,
    integer_ids: Annotated[bool, typer.Option("--integer-ids", help="Item ids are 64-bit integers.")] = False,
    privacy: Annotated[
        str, typer.Option(help="secagg: the server learns sums alone. secagg+dp: with noise. clear: NOT PRIVATE.")
    ] = "secagg",
    noise_rows: Annotated[float, typer.Option(help="secagg+dp: standard deviation per device, in rows.")] = 0.0,
    noise_sums: Annotated[float, typer.Option(help="secagg+dp: standard deviation per device, in sums.")] = 0.0,
    gate_every: Annotated[int, typer.Option(help="Training rounds until devices count again who rates what.")] = 50,
    tolerance: Annotated[
        float | None, typer.Option(help="Warn when the reported hit rate falls this far below the best.")
    ] = None,
    artifacts_address: Annotated[
        str, typer.Option(help="https://HOST:PORT of a cache that devices fetch new versions from. Default: from here.")
    ] = "",
    allow_clear_uploads: Annotated[
        bool,
        typer.Option("--allow-clear-uploads", help="Serve other machines although uploads reveal what users rated."),
    ] = False,
) -> None:
    """Coordinate training over mutual TLS: rounds, uploads, downloads. It learns sums over cohorts alone."""
    # Here, so that the other commands start without aiohttp.
    from lightfr_harness.server.authority import Authority
    from lightfr_harness.server.coordinator.options import ItemList, Settings
    from lightfr_harness.server.coordinator.rounds import Plan
    from lightfr_harness.server.coordinator.serving import Addresses, serve_until_stopped

    with errors_as_messages():
        items = ItemList.read(catalogue, integer_ids=integer_ids)
        items = items if codes is None else items.with_codes(codes, bits)
        noise = (round(1000 * noise_rows), round(1000 * noise_sums))
        settings = Settings(bits, gate, seed, integer_ids, items.sha256, privacy, *noise, items.codes_sha256)
        settings.require_private(host, allow_clear_uploads=allow_clear_uploads)
        goal = settings.usual_goal if goal is None else goal
        minimum = settings.usual_minimum(goal) if minimum is None else minimum
        plan = Plan(goal, over_selection, minimum, deadline_seconds, rounds, gate_every, tolerance, artifacts_address)
        wanted = Addresses(host, port, enrollment_port, operations_port)
        is_good = asyncio.run(serve_until_stopped(folder, Authority.open(authority), items, settings, plan, wanted))
        raise typer.Exit(0 if is_good else 1)


def rollback(
    folder: Annotated[Path, typer.Argument(help="The folder of a coordinator that is stopped.")],
    to: Annotated[int, typer.Option(help="The version to go back to, one of the last four.")],
) -> None:
    """Publish an older version of the model once more, as the newest one."""
    from lightfr_harness.server.coordinator.publishing import roll_back

    with errors_as_messages():
        typer.echo(f"version {roll_back(folder, to)} is version {to} again")
