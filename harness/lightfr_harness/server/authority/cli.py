"""`lightfr-harness ca`: make an authority, run it, invite devices, revoke them."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from lightfr_harness.console import Port, output_folder, whole
from lightfr_harness.errors import errors_as_messages

from .authority import Authority
from .errors import AuthorityError
from .keys import PRIVATE

HOUR_SECONDS = 3600

app = typer.Typer(
    name="ca",
    no_args_is_help=True,
    help="Decide who may speak with the coordinator: a small certificate authority. "
    "First `init`, then one `token` for each device; `list` shows them, and `revoke` works while the coordinator runs. "
    "`serve` runs the authority alone, `server` is for caches.",
)

Folder = Annotated[Path, typer.Argument(help="The authority's folder, as given to `ca init`.")]


@app.command("init")
def init_command(
    folder: Annotated[
        Path, typer.Argument(help="A folder that does not exist yet. Keep it private: it holds the keys.")
    ],
    host: Annotated[
        list[str],
        typer.Option(help="DNS name or IP address by which devices reach the coordinator; repeat for several."),
    ],
    enrollment_host: Annotated[
        list[str] | None,
        typer.Option(help="The same for the authority, when it runs on another machine. Default: those of --host."),
    ] = None,
    database: Annotated[
        str, typer.Option(help="postgresql://... of a database for what it remembers. Default: SQLite in FOLDER.")
    ] = "",
) -> None:
    """Make a new authority, and in it the folder `coordinator`, all that a coordinator needs.

    Example: lightfr-harness ca init authority --host localhost --host 127.0.0.1
    """
    with errors_as_messages():
        Authority.init(folder, host, enrollment_host or (), database).close()
        typer.echo(f"{folder} is ready for {', '.join(host)}. Keep a copy: without it every device must enrol again.")


@app.command("serve")
def serve_command(
    folder: Folder,
    host: Annotated[str, typer.Option(help="Address for devices.")] = "127.0.0.1",
    port: Port = 8444,
    until_input_ends: Annotated[bool, typer.Option("--until-input-ends", hidden=True)] = False,
) -> None:
    """Run the authority alone: devices enrol here and renew their certificates.

    `lightfr-harness serve --authority FOLDER` starts it by itself. Run it alone when the coordinator is elsewhere.
    """
    # Here, so that the other commands start without aiohttp.
    from .serving import open_and_serve

    with errors_as_messages():
        open_and_serve(folder, host, port, until_input_ends=until_input_ends)


@app.command("token")
def token_command(
    folder: Folder,
    server: Annotated[str, typer.Option(help="Where devices find the coordinator: https://HOST:PORT.")],
    enrollment: Annotated[str, typer.Option(help="Where devices enrol, a port of its own: https://HOST:PORT.")],
    valid_hours: Annotated[int, whole("Hours for which the invitation can be used.", least=1, most=8760)] = 24,
    count: Annotated[int, whole("Number of invitations; more than one needs --out.", least=1, most=1_000_000)] = 1,
    out: Annotated[Path | None, output_folder("Folder for invitation-1.json and so on.")] = None,
) -> None:
    """Invite devices: print an invitation as JSON, or write several to a folder.

    An invitation holds a secret that enrols one device, once. Hand it over as you would a password.

    Example: lightfr-harness ca token authority --server https://localhost:8443 --enrollment https://localhost:8444
    """
    with errors_as_messages():
        if count > 1 and out is None:
            raise AuthorityError(f"{count} invitations do not fit on the screen. Name a folder for them: --out FOLDER")
        with closing(Authority.open(folder)) as authority:
            for number in range(1, count + 1):
                invitation = authority.invite(server, enrollment, valid_hours * HOUR_SECONDS)
                _hand_over(json.dumps(invitation, indent=2), out and out / f"invitation-{number}.json")


@app.command("list")
def list_command(folder: Folder) -> None:
    """List all devices: id, when it enrolled, when the authority last saw it enrol or renew, and whether it is revoked.

    Times are in UTC. A device comes to the authority to enrol and, about once a year, to renew.
    """
    with errors_as_messages():
        with closing(Authority.open(folder)) as authority:
            devices = authority.devices()
        typer.echo(f"{'id':32}  {'enrolled':16}  {'last seen':16}")
        for device in devices:
            times = f"{device.enrolled:%Y-%m-%d %H:%M}  {device.last_seen:%Y-%m-%d %H:%M}"
            typer.echo(f"{device.device_id}  {times}  {'revoked' if device.is_revoked else ''}".rstrip())


@app.command("revoke")
def revoke_command(
    folder: Folder,
    device_id: Annotated[list[str], typer.Argument(help="Ids of devices: 32 hexadecimal digits each.")],
) -> None:
    """Revoke devices, all or none. A running coordinator refuses them within seconds.

    `ca list` shows the ids of all devices, `lightfr status` that of one. A revocation is final: the
    device must enrol again.
    """
    with errors_as_messages():
        with closing(Authority.open(folder)) as authority:
            authority.revoke(*device_id)
        typer.echo(f"Revoked: {', '.join(device_id)}")


@app.command("server")
def server_command(
    folder: Folder,
    host: Annotated[
        list[str], typer.Option(help="DNS name or IP address by which devices reach it; repeat for several.")
    ],
    out: Annotated[Path, typer.Option(help="A folder that does not exist yet. Keep it private: it holds the key.")],
) -> None:
    """Make what another server shows to devices, such as a cache of artifacts: a key and a certificate for a year.

    Beside them lie the authority's certificate and its revocation list as it is now.

    Example: lightfr-harness ca server authority --host cache.example --out cache
    """
    with errors_as_messages():
        with closing(Authority.open(folder)) as authority:
            authority.certify_server(out, host)
        typer.echo(f"{out} is ready for {', '.join(host)}")


def _hand_over(invitation: str, path: Path | None) -> None:
    if path is None:
        typer.echo(invitation)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Private from its first moment, and never in place of an invitation that may still be on its way.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with os.fdopen(descriptor, "w") as file:
            file.write(invitation + "\n")
    except OSError as error:
        raise AuthorityError(f"Cannot write {path} ({error.strerror}). Name a new folder: --out FOLDER") from error
    typer.echo(path)
