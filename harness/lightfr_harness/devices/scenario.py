"""What every device of a run does, and among whom."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isqrt
from typing import Any

from lightfr.cohorts import DEFAULT_MINIMUM_COHORT, MAX_DEVICES, MIN_DEVICES
from lightfr.errors import CodeLengthError, InvalidInputError, OutOfRangeError
from lightfr.training.model import MOST_NOISE
from lightfr_harness.server.rules import PRIVACY_MODES

# More items would not fit the row numbers of the wire.
MOST_ITEMS = 2**32 - 1
CLEAR, SECAGG, SECAGG_DP = "clear", "secagg", "secagg+dp"
USUAL_OPEN_ROWS = 2_000
# What the coordinator writes beside its folder: a line of JSON for each message of a device.
JOURNAL = "messages.jsonl"
# Standard deviations of a device's noise in mode secagg+dp: as much as six devices of 128 bits insist on.
NOISE = {"noise_rows": 210.0, "noise_sums": 25.0, "noise_counts": 2.0}


def noise_of(bits: int, cohort: int) -> dict[str, float]:
    """The noise of a scenario: more in the rows where the devices of its cohort insist on it (docs/secagg.md)."""
    least = isqrt(max(12, bits // 8) * bits**2 // cohort) + 1
    return {**NOISE, "noise_rows": max(NOISE["noise_rows"], float(least))}


@dataclass(frozen=True)
class Scenario:
    """A catalogue of `items` codes of `bits`, and `ratings` of each device. `dataset` says whose sizes these are.

    The codes have a row for each of the `open_rows`, and one that the other items share. In the secure modes a device
    takes part among `cohort` devices, and its upload has all open rows. With no open rows the round is one that counts
    who rates what, for all items; in the clear there is then no gate, and all items are open.
    """

    items: int = 10_000
    ratings: int = 64
    bits: int = 64
    dataset: str = ""
    privacy: str = SECAGG
    cohort: int = DEFAULT_MINIMUM_COHORT
    open_rows: int = USUAL_OPEN_ROWS

    def __post_init__(self) -> None:
        if not 1 <= self.items <= MOST_ITEMS:
            raise OutOfRangeError("number of items", self.items, 1, MOST_ITEMS)
        if not 1 <= self.ratings <= self.items:
            raise OutOfRangeError("number of ratings", self.ratings, 1, self.items)
        if not 8 <= self.bits <= 1024 or self.bits % 8:
            raise CodeLengthError(self.bits)
        if self.privacy not in PRIVACY_MODES:
            raise InvalidInputError(f"--privacy is {self.privacy}, choose one of {', '.join(PRIVACY_MODES)}")
        if not MIN_DEVICES <= self.cohort <= MAX_DEVICES:
            raise OutOfRangeError("cohort", self.cohort, MIN_DEVICES, MAX_DEVICES)
        most = MOST_NOISE / 1000
        if self.privacy == SECAGG_DP and noise_of(self.bits, self.cohort)["noise_rows"] > most:
            raise InvalidInputError(
                f"--privacy secagg+dp: {self.cohort} devices would have to add more noise to codes of {self.bits} bits "
                f"than the {most:g} that a model may ask for: take a larger --cohort or fewer --bits"
            )
        if self.open_rows < 0:
            raise OutOfRangeError("number of open rows", self.open_rows, 0, self.items)
        # A small catalogue is open as a whole.
        object.__setattr__(self, "open_rows", min(self.open_rows, self.items))

    @property
    def is_secure(self) -> bool:
        return self.privacy != CLEAR

    @property
    def codes_bytes(self) -> int:
        """A row for each open item and the shared one; without a gate, for each item."""
        has_gate = self.is_secure or self.open_rows > 0
        return (self.open_rows + 1 if has_gate else self.items) * self.bits // 8

    @property
    def rated_items(self) -> int:
        """Items that devices may have rated. In the clear they are open ones: an upload is then as large as it can be.

        A masked one always is.
        """
        return self.items if self.is_secure or not self.open_rows else max(self.open_rows, self.ratings)

    @property
    def download_bytes(self) -> int:
        """The codes, and a catalogue of integer ids: three bytes each, or a little more."""
        return self.codes_bytes + 3 * self.items

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)
