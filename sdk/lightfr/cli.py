"""The lightfr command: what an app does with the SDK, from a shell."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lightfr.errors import EnrollmentError, InvalidInputError, LightFRError, NotSyncedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lightfr.client import Client

_DEFAULT_FOLDER = "~/.lightfr"
_EPILOG = """\
a first session:
  lightfr enroll invitation.json     an operator makes invitations: lightfr-harness ca token
  lightfr sync                       fetch the catalogue and its codes
  lightfr rate "The Third Man" 5
  lightfr recommend
  lightfr participate                help to train; see docs/embedding.md for what leaves the device
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors are one line on stderr and exit code 1."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except LightFRError as error:
        print(f"lightfr: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lightfr",
        description="Recommendations on this device, from binary codes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    folder = os.environ.get("LIGHTFR_FOLDER", _DEFAULT_FOLDER)
    parser.add_argument(
        "--folder", default=folder, help=f"where identity, key and data lie (LIGHTFR_FOLDER; now {folder})"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], None], help: str) -> argparse.ArgumentParser:  # noqa: A002
        added = commands.add_parser(name, help=help, description=help)
        added.set_defaults(run=run)
        return added

    command("enroll", _enroll, "get an identity for this device").add_argument("invitation", help="a JSON file")
    rate = command("rate", _rate, "keep a rating")
    rate.add_argument("item", help="item id")
    rate.add_argument("rating", type=float, help="1 to 5")
    command("unrate", _unrate, "forget a rating").add_argument("item", help="item id")
    command("sync", _sync, "fetch the newest model")
    participate = command("participate", _participate, "take part in training rounds")
    participate.add_argument("--rounds", type=int, default=1, help="how many (1), waiting as the server asks")
    recommend = command("recommend", _recommend, "show the best items; works offline")
    recommend.add_argument("-k", type=int, default=10, help="how many (10)")
    recommend.add_argument("--include-rated", action="store_true", help="do not leave out what is rated already")
    command("status", _status, "show how things stand")
    command("export", _export, "print everything that is kept about you, as JSON")
    forget = command("forget", _forget, "destroy the key, the ratings and the identity")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def _enroll(options: argparse.Namespace) -> None:
    from lightfr import _files
    from lightfr.enrollment import enroll

    folder = _folder(options)
    enrolled = enroll(options.invitation, folder)
    with _files.step("save the server's address"):
        _files.save(folder / "server", enrolled.server.encode())
    print(f"enrolled; the identity is in {folder}. Next: lightfr sync")


def _rate(options: argparse.Namespace) -> None:
    with _client(options) as client:
        client.rate(_item_id(client, options.item), options.rating)


def _unrate(options: argparse.Namespace) -> None:
    with _client(options) as client:
        print("forgotten" if client.unrate(_item_id(client, options.item)) else "there was no such rating")


def _sync(options: argparse.Namespace) -> None:
    with _client(options) as client:
        news = "new" if client.sync() else "unchanged"
        status = client.status()
        print(f"model version {status.model_version} ({news}): {status.item_count:,} items of {status.code_bits} bits")


def _participate(options: argparse.Namespace) -> None:
    with _client(options) as client:
        done = 0
        while done < options.rounds:
            outcome = client.participate()
            done += outcome.took_part
            if outcome.took_part:
                print(f"took part in a round ({done} of {options.rounds})", flush=True)
            elif outcome.reason == "training_finished":
                print("training is finished")
                return
            else:
                print(f"no place now ({outcome.reason}); again in {outcome.retry_after_seconds:.1f} s", flush=True)
            time.sleep(outcome.retry_after_seconds)


def _recommend(options: argparse.Namespace) -> None:
    with _client(options) as client:
        for place, item in enumerate(client.recommend(options.k, exclude_rated=not options.include_rated), start=1):
            print(f"{place:3}  {item.similarity:4.0%}  {item.item_id}")


def _status(options: argparse.Namespace) -> None:
    with _client(options) as client:
        status = client.status()
        for name in status.__slots__:
            print(f"{name.replace('_', ' '):16} {getattr(status, name)}")


def _export(options: argparse.Namespace) -> None:
    with _client(options) as client:
        print(json.dumps(client.export_my_data(), indent=2, ensure_ascii=False))


def _forget(options: argparse.Namespace) -> None:
    from lightfr.keys import FileKey
    from lightfr.store import discard

    folder = _folder(options)
    if not options.yes and not _agrees("destroy the key, all ratings and the identity?"):
        print("nothing was changed")
        return
    discard(folder / "data", FileKey(folder / "key"))
    _remove(folder)
    print("forgotten")


def _agrees(question: str) -> bool:
    try:
        return input(f"{question} [y/N] ").strip().lower() == "y"
    except EOFError:  # nobody is there to ask
        return False


def _remove(folder: Path) -> None:
    """Delete what the command keeps, and the folder if nothing else is in it."""
    models = folder / "data" / "models"
    for file in models.iterdir() if models.is_dir() else ():
        file.unlink()
    for name in ("identity.pem", "trust.pem", "enrolling.pem", "server"):
        (folder / name).unlink(missing_ok=True)
    for emptied in (models, folder / "data", folder):
        try:
            emptied.rmdir()
        except OSError:
            return


def _client(options: argparse.Namespace) -> Client:
    from lightfr.client import Client
    from lightfr.keys import FileKey

    folder = _folder(options)
    try:
        server = (folder / "server").read_text(errors="replace")
    except OSError as error:
        raise EnrollmentError(f"there is no identity in {folder}: lightfr enroll INVITATION first") from error
    return Client.open(
        folder / "data",
        server=server,
        identity=folder / "identity.pem",
        trust=folder / "trust.pem",
        key=FileKey(folder / "key"),
    )


def _folder(options: argparse.Namespace) -> Path:
    return Path(options.folder).expanduser()


def _item_id(client: Client, text: str) -> str | int:
    """An item id as the catalogue has them: text, or a number."""
    kind = client.status().item_id_kind
    if not kind:
        raise NotSyncedError
    if kind == "str":
        return text
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError("this catalogue's item ids are whole numbers") from None
