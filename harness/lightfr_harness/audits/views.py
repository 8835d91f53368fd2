"""Whether two devices of a round were told the same: the views that they exported go in, Findings come out.

A server signs what it tells. Two different sets of one roster, both signed, are a proof that it lied to one of the two
devices, for anybody who knows the server's key. So are two rosters of one round for the devices themselves; to others a
roster's digest does not show of which round it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from lightfr.errors import InvalidInputError
from lightfr.secagg.agreement import KEY_BYTES
from lightfr.secagg.views import included_message, is_signed, roster_message, survivors_message
from lightfr.views import View, imported
from lightfr_harness.audits.finding import Finding, at_most, counted
from lightfr_harness.errors import CannotRunError

SOURCE = "docs/secagg.md, What the device keeps"
_ONLY_THEY_KNOW = "that both rosters are of one round, only the two devices can tell"
# What a server states in a round: the field of a view, what it signs with it, and how people call it.
_STATEMENTS: tuple[tuple[str, Callable[[View], bytes], str], ...] = (
    ("roster_digest", lambda view: roster_message(view.roster_digest), "the roster"),
    ("included", lambda view: included_message(view.roster_digest, view.included), "who is included"),
    (
        "survivors",
        lambda view: survivors_message(view.roster_digest, view.included, view.survivors),
        "who uploaded",
    ),
)


def read_views(path: Path) -> list[View]:
    """The views of an exported file."""
    try:
        return imported(path.read_bytes())
    except InvalidInputError as error:
        raise CannotRunError(f"{path}: {error}") from error


def compare_views(one: Sequence[View], other: Sequence[View], trusted: Collection[bytes] = ()) -> list[Finding]:
    """One finding for each thing that a server states: in how many rounds it provably stated two.

    `trusted` are raw keys of servers; without them, both devices must have had the same key. Raises CannotRunError
    when the two have no round in common, or differ where a signature does not fit.
    """
    others = {view.round_id: view for view in other}
    pairs = [(view, others[view.round_id]) for view in one if view.round_id in others]
    if not pairs:
        raise CannotRunError("the two devices have no round in common: compare devices that took part together")
    lies: dict[str, list[str]] = {name: [] for name, _, _ in _STATEMENTS}
    for pair in pairs:
        name = _first_difference(*pair)
        if name is not None:
            _require_signed(name, pair, trusted)
            lies[name].append(pair[0].round_id.hex())
    return [
        at_most(
            f"rounds in which two devices were told different things about {about}",
            SOURCE,
            counted(0, len(lies[name]), _note(name, lies[name])),
            "rounds",
            limit=0,
            mode=f"{len(pairs)} in common",
        )
        for name, _, about in _STATEMENTS
    ]


def _note(name: str, rounds: Sequence[str]) -> str:
    """In which rounds, and what the signatures do not say."""
    return ", ".join([*rounds, _ONLY_THEY_KNOW] if rounds and name == "roster_digest" else rounds)


def _first_difference(one: View, other: View) -> str | None:
    """The first statement in which the two differ, as far as both heard it: later ones follow from it."""
    for name, _, _ in _STATEMENTS:
        told = getattr(one, name), getattr(other, name)
        if all(told) and told[0] != told[1]:
            return name
    return None


def _require_signed(name: str, pair: tuple[View, View], trusted: Collection[bytes]) -> None:
    """Raise CannotRunError unless both statements are a trusted server's: then the files prove nothing."""
    message = next(message for field, message, _ in _STATEMENTS if field == name)
    signature = name.removesuffix("_digest") + "_signature"
    for view in pair:
        known = view.server_key in trusted if trusted else view.server_key == pair[0].server_key
        is_key = len(view.server_key) == KEY_BYTES
        if not (known and is_key and is_signed(view.server_key, getattr(view, signature), message(view))):
            raise CannotRunError(
                f"the files differ in round {view.round_id.hex()}, but a signature there is not the server's, so they "
                "prove nothing: export both again"
            )
