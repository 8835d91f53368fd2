"""Items that training takes for disliked: drawn from everything that a user has not rated in train.

The held-out item may be drawn like any other. A sampler that spares it tells the model which item is held out: see
`tests/harness/simulation/baselines/test_negatives.py`, where a model that learns nothing else ranks it first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index

Positions = npt.NDArray[np.int64]


def draw_unrated(
    rated: Index, n_items: int, count: int, draws: np.random.Generator, *, distinct: bool = False
) -> Positions:
    """So many items outside `rated`, which is sorted; fewer if they must be distinct and there are not so many.

    None if everything is rated.
    """
    free = n_items - len(rated)
    if not free:
        return np.empty(0, np.int64)
    if distinct:
        ranks = draws.choice(free, min(count, free), replace=False, shuffle=False)
    else:
        ranks = draws.integers(free, size=count)
    # The rank among the unrated, moved up by one for every rated item before it.
    return ranks + np.searchsorted(rated - np.arange(len(rated)), ranks, side="right")


def rated_by_user(train: Ratings) -> list[Index]:
    """The items of each user, sorted."""
    order = np.lexsort((train.item_index, train.user_index))
    counts = np.bincount(train.user_index, minlength=train.n_users)
    return np.split(train.item_index[order], np.cumsum(counts)[:-1])


def positions_by_user(users: Index) -> Iterator[tuple[int, Positions]]:
    """Every user that occurs, and where."""
    order = np.argsort(users, kind="stable")
    starts = np.flatnonzero(np.diff(users[order].astype(np.int64))) + 1
    for positions in np.split(order, starts):
        if len(positions):
            yield int(users[positions[0]]), positions
