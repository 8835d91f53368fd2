"""The lightfr command: what an app does with the SDK, from a shell."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lightfr import __version__
from lightfr.errors import EnrollmentError, InvalidInputError, LightFRError, NotSyncedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lightfr.client import Client
    from lightfr.device import Device
    from lightfr.participation import RoundStage
    from lightfr.results import Recommendation

_DEFAULT_FOLDER = "~/.lightfr"
_EPILOG = """\
a first session:
  lightfr enroll invitation.json     an operator makes the invitation with: lightfr-harness ca token
  lightfr sync                       fetch the catalogue and its codes
  lightfr rate "The Third Man" 5
  lightfr recommend
  lightfr participate                help to train; docs/embedding.md lists what leaves the device
"""
# Each is a method of the client.
_OPINIONS = {
    "like": "keep that you like an item",
    "dislike": "keep that you dislike an item: less of it will be recommended",
    "seen": "keep that you have seen an item, and no more than that",
    "hide": "never show an item again; that says nothing about your taste",
}

# What a device has done, by the stage that it has reached.
_STAGES = {
    "placed": "has a place in a round",
    "keys_sent": "sent its keys; waiting until the cohort is there",
    "shares_sent": "sent shares of its secrets",
    "shares_acknowledged": "confirmed the shares of others",
    "included_signed": "signed who takes part",
    "uploaded": "uploaded",
    "survivors_signed": "signed whose uploads arrived",
    "revealed": "revealed what takes the masks off",
}
_MOST, _MOST_DIGITS = 1_000_000, 7


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors are one line on stderr and exit code 2, as bad arguments are."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except LightFRError as error:
        print(f"lightfr: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        print(f"lightfr: {place}{error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _whole(text: str) -> int:
    """A number of rounds or items."""
    try:
        number = int(text) if len(text) <= _MOST_DIGITS else 0
    except ValueError:
        number = 0
    if not 1 <= number <= _MOST:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {_MOST:,}")
    return number


def _parser() -> argparse.ArgumentParser:
    """Return all commands and options; numbers are checked here, before anything is opened."""
    parser = argparse.ArgumentParser(
        prog="lightfr",
        description="Recommendations on this device, from binary codes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # An unset variable of a unit or compose file comes as an empty one, which is not the working directory.
    folder = os.environ.get("LIGHTFR_FOLDER") or _DEFAULT_FOLDER
    parser.add_argument(
        "--folder",
        default=folder,
        help=f"the folder of the identity, the key and the data (default: {folder}; LIGHTFR_FOLDER sets another)",
    )
    parser.add_argument("--version", action="version", version=f"lightfr {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")

    def command(name: str, run: Callable[[argparse.Namespace], None], help: str) -> argparse.ArgumentParser:  # noqa: A002
        added = commands.add_parser(name, help=help, description=help)
        added.set_defaults(run=run)
        return added

    command("enroll", _enroll, "get an identity for this device").add_argument(
        "invitation", help="the JSON file of the invitation"
    )
    rate = command("rate", _rate, "keep a rating of an item")
    rate.add_argument("item", help="the item's id")
    rate.add_argument("rating", type=float, help="a number from 1 to 5")
    for verb, help_text in _OPINIONS.items():
        command(verb, _opinion, help_text).add_argument("item", help="the item's id")
    command("unrate", _unrate, "forget what you think of an item").add_argument("item", help="the item's id")
    command("sync", _sync, "fetch the newest model")
    participate = command("participate", _participate, "take part in training rounds")
    participate.add_argument("--rounds", type=_whole, default=1, help="how many rounds to take part in (default: 1)")
    participate.add_argument(
        "--allow-clear-uploads",
        action="store_true",
        help="upload in the clear if the server asks for it, which reveals your ratings to it: for trials only",
    )
    recommend = command("recommend", _recommend, "show the best items for you; works offline")
    recommend.add_argument("-k", type=_whole, default=10, help="how many items to show (default: 10)")
    recommend.add_argument("--include-rated", action="store_true", help="show items that you have rated, too")
    similar = command("similar", _similar, "show the items that are most like an item")
    explain = command("explain", _explain, "show which items that you like are most like an item")
    for shown, usual in ((similar, 10), (explain, 3)):
        shown.add_argument("item", help="the item's id")
        shown.add_argument("-k", type=_whole, default=usual, help=f"how many items to show (default: {usual})")
    command("status", _status, "show the identity, the model and the counts of this device")
    command("export", _export, "print everything that this device keeps about you, as JSON")
    views = command("views", _views, "write what the server told this device in its last rounds, for comparison")
    views.add_argument("--export", required=True, metavar="FILE", help="the JSON file to write")
    forget = command("forget", _forget, "destroy the key, the ratings and the identity of this device")
    forget.add_argument("--yes", action="store_true", help="do not ask first")
    return parser


def _enroll(options: argparse.Namespace) -> None:
    from lightfr.device import Device

    folder = _folder(options)
    identity = folder / "identity.pem"
    before = identity.read_bytes() if identity.exists() else b""
    device = Device.enroll(options.invitation, folder)
    if identity.read_bytes() == before:
        # The server may have revoked it, which only a call would show.
        print(
            f"This device was enrolled with {device.server} before, so the invitation was not used. If the server "
            f"refuses the device, remove {identity} and enroll again: your ratings stay."
        )
        return
    print(f"This device is enrolled with {device.server}; its identity is in {folder}. Next: lightfr sync")


def _rate(options: argparse.Namespace) -> None:
    with _client(options) as client:
        client.rate(_item_id(client, options.item), options.rating)


def _opinion(options: argparse.Namespace) -> None:
    with _client(options) as client:
        getattr(client, options.command)(_item_id(client, options.item))


def _unrate(options: argparse.Namespace) -> None:
    with _client(options) as client:
        there_was_one = client.unrate(_item_id(client, options.item))
        print("It was forgotten." if there_was_one else "There was nothing to forget.")


def _sync(options: argparse.Namespace) -> None:
    with _client(options) as client:
        news = "new" if client.sync() else "unchanged"
        status = client.status()
        print(f"Model version {status.model_version} ({news}): {status.item_count:,} items of {status.code_bits} bits")


def _participate(options: argparse.Namespace) -> None:
    with _client(options, allow_clear_uploads=options.allow_clear_uploads) as client:
        done = 0
        while done < options.rounds:
            outcome = client.participate(lambda stage: _show_stage(client, stage))
            done += outcome.took_part
            if outcome.took_part:
                print(f"Took part in a round ({done} of {options.rounds}).", flush=True)
            elif outcome.reason == "training_finished":
                print("Training is finished.")
                return
            elif outcome.reason == "budget":
                hours = outcome.retry_after_seconds / 3600
                print(f"This device has given what its budget allows; it may take part again in {hours:.1f} hours.")
                return
            else:
                print(
                    f"There is no place now ({outcome.reason}); trying again in {outcome.retry_after_seconds:.1f} s",
                    flush=True,
                )
            time.sleep(outcome.retry_after_seconds)


def _show_stage(client: Client, stage: RoundStage) -> None:
    """Say how far the device has come, and for how many others it waits."""
    others = client.status().others_in_round
    waiting = "" if others is None else f"; waiting for {others:,} others"
    print(f"  {_STAGES[stage]}{waiting}", flush=True)


def _recommend(options: argparse.Namespace) -> None:
    with _client(options) as client:
        _show(client.recommend(options.k, exclude_rated=not options.include_rated))


def _similar(options: argparse.Namespace) -> None:
    with _client(options) as client:
        _show(client.similar(_item_id(client, options.item), options.k))


def _explain(options: argparse.Namespace) -> None:
    with _client(options) as client:
        _show(client.explain(_item_id(client, options.item), options.k))


def _show(items: list[Recommendation]) -> None:
    for place, item in enumerate(items, start=1):
        print(f"{place:3}  {item.similarity:4.0%}  {item.item_id}")


def _status(options: argparse.Namespace) -> None:
    device = _device(options)
    with _client(options) as client:
        for status in (device.status(), client.status()):
            for name, value in status._asdict().items():
                print(f"{name.replace('_', ' '):16} {'-' if value is None else value}")


def _export(options: argparse.Namespace) -> None:
    with _client(options) as client:
        print(json.dumps(client.export_my_data(), indent=2, ensure_ascii=False))


def _views(options: argparse.Namespace) -> None:
    with _client(options) as client:
        n_rounds = client.export_views(options.export)
        print(f"Wrote what the server told in {n_rounds} rounds to {options.export}.")


def _forget(options: argparse.Namespace) -> None:
    from lightfr import _files, device
    from lightfr.keys import FileKey
    from lightfr.model.folder import remove_models
    from lightfr.store import discard

    folder = _folder(options)
    data = folder / "data"
    # Elsewhere `key`, `server` and `data` are the names of somebody else's files.
    if not (device.is_in(folder) or (data / "store.lfr").exists()):
        print(f"There is no device in {folder}: nothing was changed.")
        return
    if not options.yes:
        try:
            reply = input(f"Destroy the key, all ratings and the identity in {folder}? [y/N] ")
        except EOFError:  # nobody is there to ask
            reply = ""
        if reply.strip().lower() != "y":
            print("Nothing was changed.")
            return
    discard(data, FileKey(folder / "key"))
    if data.is_dir():
        remove_models(data / "models")
        with _files.step(f"remove {data}"):
            _files.remove_folder_if_empty(data)
    device.forget(folder)
    left = f" Other files are left in {folder}." if folder.exists() else ""
    print(f"Everything about this device and its user was removed.{left}")


def _device(options: argparse.Namespace) -> Device:
    from lightfr.device import Device

    folder = _folder(options)
    if not (folder / "identity.pem").exists():
        raise EnrollmentError(f"there is no identity in {folder}: run `lightfr enroll INVITATION` first")
    return Device.load(folder)


def _client(options: argparse.Namespace, *, allow_clear_uploads: bool = False) -> Client:
    from lightfr.keys import FileKey

    folder = _folder(options)
    key = FileKey(folder / "key")
    return _device(options).client(folder / "data", key=key, allow_clear_uploads=allow_clear_uploads)


def _folder(options: argparse.Namespace) -> Path:
    if not options.folder:  # a shell's unset variable, which is not the working directory
        raise InvalidInputError("--folder is empty: name a folder")
    try:
        return Path(options.folder).expanduser()
    except RuntimeError:
        raise InvalidInputError(f"--folder {options.folder}: there is no such user") from None


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
