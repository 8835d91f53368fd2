"""The sums of several cohorts as one: docs/protocol.md, "Rounds of many cohorts".

Each cohort has one sum, and one device can have put anything plausible into it. What the other cohorts of the round say
about the same number is the best that is known of how much of it is true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lightfr_harness.server.rules.plausible import Numbers

# Clamping two cohorts by each other cost .014 HR@10 in honest rounds.
_FEWEST_TO_COMPARE = 3
# What a device says on the average is compared in parts of 2^20.
_PARTS_SHIFT = 20
_NUMBERS_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class CohortSum:
    """What one cohort of a round added up in secret: numbers by block, and how many devices are in them."""

    sums: Mapping[str, Numbers]
    survivors: int


@dataclass(frozen=True)
class Combined:
    """What became of the cohorts of a round."""

    # Rows that stay as they are, because no cohort says anything plausible about them.
    held: int
    # By cohort: how many of its rows say more than its devices can. None: its sum was left out as a whole.
    implausible: tuple[int | None, ...]

    @property
    def left_out(self) -> tuple[int, ...]:
        """The places of the cohorts whose sums were left out."""
        return tuple(place for place, rows in enumerate(self.implausible) if rows is None)


def combined(sums: Sequence[Numbers], survivors: Sequence[int]) -> Numbers:
    """Add up cohorts, number by number: none goes further from zero, to either side, than another one goes.

    What counts is what a device of a cohort says on the average. One cohort stays as it is, and two, of which nobody
    can say which one goes too far, are merely added.
    """
    if len(sums) < _FEWEST_TO_COMPARE:
        return np.asarray(np.sum(sums, axis=0, dtype=np.int64))
    sizes = np.array(survivors, np.int64)[:, None]
    result = np.empty_like(sums[0])
    for first in range(0, len(result), _NUMBERS_AT_A_TIME):
        part = slice(first, first + _NUMBERS_AT_A_TIME)
        means = ((np.stack([one[part] for one in sums]) << _PARTS_SHIFT) + sizes // 2) // sizes
        ordered = np.sort(means, axis=0)
        clamped = np.clip(means, np.minimum(ordered[1], 0), np.maximum(ordered[-2], 0))
        result[part] = ((sizes * clamped).sum(axis=0) + (1 << (_PARTS_SHIFT - 1))) >> _PARTS_SHIFT
    return result
