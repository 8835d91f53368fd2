"""What every device of a run does."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lightfr.errors import CodeLengthError, OutOfRangeError

# More would not fit the row numbers of the wire.
MOST_ITEMS = 2**32 - 1
PRIVACY = "clear"
# What the coordinator of an emulation writes beside its folder: a line of JSON per message.
JOURNAL = "messages.jsonl"


@dataclass(frozen=True)
class Scenario:
    """A catalogue of `items` codes of `bits`, and `ratings` of each device. `dataset` says whose sizes these are."""

    items: int = 10_000
    ratings: int = 64
    bits: int = 64
    dataset: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.items <= MOST_ITEMS:
            raise OutOfRangeError("number of items", self.items, 1, MOST_ITEMS)
        if not 1 <= self.ratings <= self.items:
            raise OutOfRangeError("number of ratings", self.ratings, 1, self.items)
        if not 8 <= self.bits <= 1024 or self.bits % 8:
            raise CodeLengthError(self.bits)

    @property
    def codes_bytes(self) -> int:
        return self.items * self.bits // 8

    @property
    def download_bytes(self) -> int:
        """The codes, and a catalogue of integer ids: 12 bytes each."""
        return self.codes_bytes + 12 * self.items

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "privacy": PRIVACY}
