"""The baseline every recommender has to pass: how often each item was rated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightfr_harness.data.held_out import Candidates
from lightfr_harness.data.ratings import Ratings


def popularity_scores(train: Ratings) -> NDArray[np.int64]:
    """Train counts, one per item; equal counts stay tied and are judged as ties."""
    return train.item_counts()


def popularity_of_candidates(train: Ratings, candidates: Candidates) -> NDArray[np.int64]:
    """The same, aligned with the candidates."""
    return popularity_scores(train)[candidates.item_index]
