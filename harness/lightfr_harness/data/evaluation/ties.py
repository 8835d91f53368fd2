"""Expectations under random tie-breaking, in closed form.

Scores of f-bit codes take only f + 1 values, so ties are the rule. With `better` items strictly
above it, an item of a tie group of `group_size` is equally likely on each of the ranks better + 1
.. better + group_size. By linearity of expectation that is all a sum over items needs, however
many wanted items share the group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .errors import EvaluationError

Counts = NDArray[np.int64]
Values = NDArray[np.float64]


def require_cutoff(k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise EvaluationError(f"K is {k!r}; give a whole number of at least 1.")


def require_finite(scores: NDArray[np.floating] | NDArray[np.integer]) -> None:
    if not np.isfinite(scores).all():
        raise EvaluationError("A score is NaN or infinite; ranks would mean nothing. Fix scoring.")


def chance_within(k: int, better: Counts, group_size: Counts) -> Values:
    """The chance that an item ranks among the first k."""
    places: Counts = np.clip(k - better, 0, group_size)
    return places / group_size


def expected_gain(k: int, better: Counts, group_size: Counts) -> Values:
    """The expected discount 1 / log2(rank + 1), counted as 0 beyond rank k."""
    total = discount_sums(k)
    last = np.minimum(better + group_size, k)
    gain: Values = (total[last] - total[np.minimum(better, k)]) / group_size
    return gain


def discount_sums(k: int) -> Values:
    """Element r is the sum of the discounts of ranks 1 .. r."""
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    return np.concatenate(([0.0], np.cumsum(discounts)))
