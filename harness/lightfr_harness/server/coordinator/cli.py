"""lightfr-harness serve."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lightfr_harness.console import MOST_DEVICES, Bits, Port, Seed, choice, number, whole
from lightfr_harness.errors import errors_as_messages


def serve(
    folder: Annotated[Path, typer.Argument(help="Folder for the coordinator's data. It is made if it does not exist.")],
    catalogue: Annotated[
        Path | None,
        typer.Option(
            help="One item per line, most popular first: ID, or ID<TAB>number of devices that rate it. Needed to begin"
            " a folder; later `catalogue update` changes its items."
        ),
    ] = None,
    authority: Annotated[
        Path | None,
        typer.Option(help="The folder that `ca init` made. The authority is started too, as a process of its own."),
    ] = None,
    credentials: Annotated[
        Path | None,
        typer.Option(help="The folder `coordinator` of an authority that runs elsewhere, or a copy of that folder."),
    ] = None,
    bits: Bits = 64,
    host: Annotated[str, typer.Option(help="Address for devices.")] = "127.0.0.1",
    port: Port = 8443,
    enrollment_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the authority.")] = 8444,
    operations_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Loopback port for /metrics and the status page.")
    ] = 8445,
    web_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port for web pages: manifests and artifacts, read-only. Default: none."),
    ] = None,
    web_origin: Annotated[
        str, typer.Option(help="https://HOST[:PORT] of the pages that may read the answers of --web-port.")
    ] = "",
    web_certificate: Annotated[
        Path | None, typer.Option(help="PEM file of a certificate that browsers trust. Default: the coordinator's own.")
    ] = None,
    web_key: Annotated[Path | None, typer.Option(help="PEM file of the key of --web-certificate.")] = None,
    goal: Annotated[
        int | None, whole("Uploads that a round waits for. Default: 512; in mode clear 64.", least=1, most=MOST_DEVICES)
    ] = None,
    over_selection: Annotated[float, number("Places in a round, as a multiple of the goal.", least=1, most=100)] = 1.3,
    minimum: Annotated[
        int | None,
        whole(
            "A round with fewer devices is dropped. Default: 256 or the goal; in mode clear 1.",
            least=1,
            most=MOST_DEVICES,
        ),
    ] = None,
    deadline_seconds: Annotated[
        float,
        number(
            "Longest time of a round, or of each of its phases, from the first check-in on.", least=0.001, most=86_400
        ),
    ] = 60,
    rounds: Annotated[
        int | None, whole("Stop training after this many finished rounds. Default: never.", least=1, most=10**9)
    ] = None,
    gate: Annotated[
        int, whole("A row learns from devices only if at least this many rate the item.", least=0, most=2**31 - 1)
    ] = 10,
    seed: Seed = 0,
    codes: Annotated[
        Path | None, typer.Option(help="A file with the first codes, packed. Default: random codes.")
    ] = None,
    public_counts: Annotated[
        bool,
        typer.Option(
            "--public-counts",
            help="The catalogue's counts are of plays or sales: they rank, and devices count who rates what.",
        ),
    ] = False,
    integer_ids: Annotated[bool, typer.Option("--integer-ids", help="Item ids are 64-bit integers.")] = False,
    privacy: Annotated[
        str,
        choice(
            ("secagg", "secagg+dp", "clear"),
            "secagg: the server learns only sums. secagg+dp: sums with noise. clear: NOT PRIVATE.",
        ),
    ] = "secagg",
    noise_rows: Annotated[
        float, number("secagg+dp: standard deviation per device, in rows.", least=0, most=1000)
    ] = 0.0,
    noise_sums: Annotated[
        float, number("secagg+dp: standard deviation per device, in user sums.", least=0, most=1000)
    ] = 0.0,
    noise_counts: Annotated[
        float, number("secagg+dp: standard deviation per device, in counts.", least=0, most=1000)
    ] = 0.0,
    uploads: Annotated[
        str,
        choice(
            ("ternary", "exact", "paper", "codes"),
            "Mode clear only: rows, ternary or exact; or the paper's gradients or codes.",
        ),
    ] = "ternary",
    regularization: Annotated[
        float, number("Uploads paper and codes only: the paper's balance weight.", "--lambda", least=0, most=1e6)
    ] = 0.0,
    gate_every: Annotated[
        int, whole("Training rounds between two counts of each item's devices.", least=1, most=10**9)
    ] = 50,
    evaluate_every: Annotated[
        int,
        whole("Training rounds between two in which devices evaluate how to rank; 0: never.", least=0, most=10**9),
    ] = 10,
    tolerance: Annotated[
        float | None, number("Warn when the hit rate falls this far below the best.", least=0, most=1)
    ] = None,
    artifacts_address: Annotated[
        str, typer.Option(help="https://HOST:PORT of a cache that serves new versions to devices. Default: none.")
    ] = "",
    cohorts: Annotated[
        int,
        whole(
            "Cohorts that a training round waits for, each of --goal devices and summed in secret.", least=1, most=1024
        ),
    ] = 1,
    database: Annotated[
        str,
        typer.Option(
            help="postgresql://... of a database that several coordinators share. Default: SQLite in FOLDER, for one."
        ),
    ] = "",
    allow_clear_uploads: Annotated[
        bool,
        typer.Option(
            "--allow-clear-uploads",
            help="Serve other machines in mode clear: uploads reveal what users rated.",
        ),
    ] = False,
) -> None:
    """Coordinate training over mutual TLS: rounds, uploads, downloads. By default it learns only sums over cohorts."""
    # Here, so that the other commands start without aiohttp.
    from lightfr_harness.server.authority import Credentials
    from lightfr_harness.server.authority.keys import COORDINATOR
    from lightfr_harness.server.coordinator.browsers import BrowserPort
    from lightfr_harness.server.coordinator.options import ItemList, Settings, SettingsError, read_codes
    from lightfr_harness.server.coordinator.plan import Plan
    from lightfr_harness.server.coordinator.serving import Addresses, serve_until_stopped

    with errors_as_messages():
        items = None if catalogue is None else ItemList.read(catalogue, integer_ids=integer_ids)
        first_codes = None if codes is None else read_codes(codes)
        items = None if items is None else replace(items, first_codes=first_codes)
        in_rows, in_sums, in_counts = (round(1000 * level) for level in (noise_rows, noise_sums, noise_counts))
        settings = Settings(
            bits, gate, seed, integer_ids, privacy, in_rows, in_sums, in_counts,
            "" if first_codes is None else hashlib.sha256(first_codes).hexdigest(), uploads, regularization,
            public_counts,
        )  # fmt: skip
        settings.require_private(host, allow_clear_uploads=allow_clear_uploads)
        goal = settings.usual_goal if goal is None else goal
        minimum = settings.usual_minimum(goal) if minimum is None else minimum
        plan = Plan(
            goal, over_selection, minimum, deadline_seconds, rounds, gate_every, tolerance, artifacts_address,
            evaluate_every, cohorts,
        )  # fmt: skip
        place = credentials if authority is None else authority / COORDINATOR
        if place is None or (authority and credentials):
            raise SettingsError("name --authority to start both, or --credentials to start the coordinator alone")
        shown = Credentials(place)
        if web_port is None and (web_origin or web_certificate or web_key):
            raise SettingsError("--web-origin, --web-certificate and --web-key need --web-port")
        browsers = None if web_port is None else BrowserPort(web_port, web_origin, web_certificate, web_key)
        wanted = Addresses(host, port, operations_port, enrollment_port, browsers)
        is_good = asyncio.run(
            serve_until_stopped(
                folder,
                shown,
                items,
                settings,
                plan,
                wanted,
                authority=authority,
                database=database,
            )
        )
        raise typer.Exit(0 if is_good else 1)


def _is_database(place: str) -> bool:
    """Whether a place is the address of a database, and not a folder."""
    return place.startswith(("postgresql://", "postgres://"))


def rollback(
    place: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="The folder of a coordinator that is stopped, or postgresql://... of replicas, running or stopped.",
        ),
    ],
    to: Annotated[
        int,
        whole(
            "The version to go back to: one of the last four, or one of the last 16 that was evaluated.",
            "--to",
            least=1,
            most=2**31 - 1,
        ),
    ],
    number: Annotated[
        int | None,
        whole(
            "What it is called from now on. After a restore: more than devices have seen. Default: the next number.",
            "--number",
            least=2,
            most=2**31 - 1,
        ),
    ] = None,
) -> None:
    """Publish an older version of the model once more, as the newest one."""
    from lightfr_harness.server.coordinator.rollback import roll_back, roll_back_replicas

    with errors_as_messages():
        made = roll_back_replicas(place, to, number) if _is_database(place) else roll_back(Path(place), to, number)
        typer.echo(f"Version {made} is published; it repeats version {to}.")


catalogue_app = typer.Typer(no_args_is_help=True, help="The items of a coordinator.")


@catalogue_app.callback()
def _catalogue() -> None:
    """Keep `update` a command of its own, though it is the only one."""


@catalogue_app.command()
def update(
    place: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER", help="The folder of a coordinator, or postgresql://... of replicas, running or stopped."
        ),
    ],
    items: Annotated[
        Path, typer.Argument(help="The whole new list, as for `serve --catalogue`. Items that it lacks leave.")
    ],
) -> None:
    """Give a coordinator another list of items, which it takes up between two rounds."""
    from lightfr_harness.server.coordinator.catalogue_update import offer, offer_to_replicas

    with errors_as_messages():
        content = items.read_bytes()
        change = offer_to_replicas(place, content) if _is_database(place) else offer(Path(place), content)
        typer.echo(f"By now: {change}.")
        typer.echo(
            "A running coordinator takes the list up when its round has ended, one that is stopped when it starts."
            " The status page and the event catalogue_changed in the log say so."
        )
