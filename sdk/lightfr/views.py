"""What a device was told about who took part in a round: kept, exported, and compared with another device's.

A server must sign every set that it tells a device. Two devices of one roster that hold different sets, both signed,
hold a proof that the server lied to one of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from lightfr.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lightfr.secagg.state import SessionState

# A device keeps those of its last so many rounds.
KEPT_VIEWS = 16
# Name of the value in the store.
_VIEWS = "views"
_FORMAT = "lightfr views v1"


class View(NamedTuple):
    """One round as one device was told of it. Bytes that are empty were never told. Nothing here is about the user."""

    round_id: bytes
    manifest_sha256: bytes
    kind: int
    # The raw Ed25519 key that signed the following.
    server_key: bytes
    roster_digest: bytes
    roster_signature: bytes
    # Bitmaps over the roster.
    included: bytes
    included_signature: bytes
    survivors: bytes
    survivors_signature: bytes

    @classmethod
    def of(cls, state: SessionState) -> View:
        """Take what a session knows."""
        return cls(**{name: getattr(state, name) for name in cls._fields})

    def to_json(self) -> dict[str, str | int]:
        """Return what JSON can carry, with bytes in hexadecimal."""
        return {name: value.hex() if isinstance(value, bytes) else value for name, value in self._asdict().items()}

    @classmethod
    def from_json(cls, exported: object) -> View:
        """Take up what to_json() made; raises InvalidInputError for anything else."""
        try:
            fields = dict(exported)  # type: ignore[call-overload]
            if fields.keys() != set(cls._fields):
                raise ValueError("other fields")
            kind = int(fields.pop("kind"))
            return cls(kind=kind, **{name: bytes.fromhex(value) for name, value in fields.items()})
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidInputError("a view of a round lacks a field, or one is not in hexadecimal") from error


def kept_views(newest: View | None, get: Callable[[str], bytes | None]) -> dict[str, bytes]:
    """Return the value to keep when a round is over. `get` returns a kept value by its name."""
    if newest is None or not newest.roster_digest:
        return {}
    return {_VIEWS: exported([*views_in(get), newest][-KEPT_VIEWS:])}


def views_in(get: Callable[[str], bytes | None]) -> list[View]:
    """Return the views that were kept, oldest first."""
    kept = get(_VIEWS)
    return [] if kept is None else imported(kept)


def exported(views: Sequence[View]) -> bytes:
    """Return the content of a file of views."""
    return json.dumps({"format": _FORMAT, "views": [view.to_json() for view in views]}).encode()


def imported(content: bytes) -> list[View]:
    """Take up what exported() made; raises InvalidInputError for anything else."""
    try:
        fields = json.loads(content)
        if fields["format"] != _FORMAT or not isinstance(fields["views"], list):
            raise ValueError("another format")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInputError("this is no file of views: make one with `lightfr views --export FILE`") from error
    return [View.from_json(view) for view in fields["views"]]
