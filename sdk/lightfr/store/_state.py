"""What a store holds, and the changes of it, which are what its records carry."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from lightfr._secret import secret
from lightfr.errors import InvalidInputError, RatingError
from lightfr.interactions import HIDDEN, LEVELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

ItemId = str | int

# Ratings in one record of a snapshot: some 3 MB at most, so that a rewrite needs little memory.
_RATINGS_PER_RECORD = 10_000
_MAX_NAME_BYTES = 255


@secret
class Change(NamedTuple):
    """What one record does, all of it or nothing. `unfinished` says that the next record belongs to it too."""

    rated: Sequence[tuple[ItemId, int]] = ()
    unrated: Sequence[ItemId] = ()
    values: Mapping[str, bytes | None] = MappingProxyType({})
    unfinished: bool = False

    def __repr__(self) -> str:
        return f"<Change of {len(self.rated) + len(self.unrated)} ratings and {len(self.values)} values>"

    def encode(self) -> bytes:
        """Return compact JSON, without the parts that are empty."""
        body: dict[str, Any] = {"rate": self.rated, "unrate": self.unrated, "more": self.unfinished}
        body["values"] = {
            name: None if value is None else b64encode(value).decode() for name, value in self.values.items()
        }
        return json.dumps({k: v for k, v in body.items() if v}, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, plaintext: bytes) -> Change | None:
        """Read what encode() wrote; None for anything else."""
        try:
            body = json.loads(plaintext)
            rated = [(item_id, level) for item_id, level in body.get("rate", ())]
            values = {
                name: None if text is None else b64decode(text, validate=True)
                for name, text in body.get("values", {}).items()
            }
            return cls(rated, body.get("unrate", ()), values, body.get("more", False))
        except (ValueError, TypeError, AttributeError):
            return None


@secret
class State:
    """Levels by item id, oldest first, and named values."""

    __slots__ = ("ratings", "values")

    def __init__(self) -> None:
        self.ratings: dict[ItemId, int] = {}
        self.values: dict[str, bytes] = {}

    def apply(self, change: Change) -> None:
        """Do what a change says. Rating again makes the rating the newest."""
        for item_id, level in change.rated:
            self.ratings.pop(item_id, None)
            self.ratings[item_id] = level
        for item_id in change.unrated:
            self.ratings.pop(item_id, None)
        for name, value in change.values.items():
            if value is None:
                self.values.pop(name, None)
            else:
                self.values[name] = value

    def snapshot(self) -> list[Change]:
        """Return the changes that make this state of an empty one: one at least, each but the last unfinished."""
        rated = list(self.ratings.items())
        slices = range(0, len(rated), _RATINGS_PER_RECORD)
        parts = [Change(rated=rated[start : start + _RATINGS_PER_RECORD]) for start in slices]
        parts += [Change(values={name: value}) for name, value in self.values.items()]
        return [part._replace(unfinished=True) for part in parts[:-1]] + (parts[-1:] or [Change()])


def require_level(level: int) -> int:
    """Return the level if it is an int in 0 .. LEVELS, or HIDDEN."""
    if type(level) is int and HIDDEN <= level <= LEVELS:
        return level
    raise RatingError(0, LEVELS)


def require_name(name: str) -> str:
    """Return the name of a value if it is a str of 1 to 255 UTF-8 bytes."""
    if type(name) is str and _is_short_text(name):
        return name
    raise InvalidInputError(f"the name of a value is not a str of 1 to {_MAX_NAME_BYTES} UTF-8 bytes")


def require_value(value: bytes | None) -> bytes | None:
    """Return the value if it is bytes, or None."""
    if value is None or type(value) is bytes:
        return value
    raise InvalidInputError(f"a value is of type {type(value).__name__}, expected bytes")


def _is_short_text(text: str) -> bool:
    # A lone surrogate has no UTF-8, and the error of encode() would repeat the text.
    is_text = text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
    return is_text and 1 <= len(text.encode()) <= _MAX_NAME_BYTES
