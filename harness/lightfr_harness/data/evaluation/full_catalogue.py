"""Recall@K and NDCG@K of held-out sets among the whole catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lightfr_harness.data.held_out import HeldOut
from lightfr_harness.data.ratings import Index

from .errors import EvaluationError
from .ties import (
    Counts,
    Values,
    chance_within,
    discount_sums,
    expected_gain,
    require_cutoff,
    require_finite,
)

ScoreUsers = Callable[[Index], NDArray[np.floating]]
"""Scores of every item for a few users: an array of shape (users given, n_items)."""

SCORES_AT_ONCE = 1 << 22
"""Bounds memory: 32 MiB of float64 scores, however large the catalogue."""


@dataclass(frozen=True)
class CatalogueMetrics:
    """Means over users. Recall divides by all held-out items of a user, even if more than K.

    The optimistic figures let held-out items win every tie against the rest.
    """

    recall: float
    ndcg: float
    recall_optimistic: float
    ndcg_optimistic: float
    n_users: int
    k: int


def evaluate_catalogue(held_out: HeldOut, score_users: ScoreUsers, *, n_items: int, k: int = 10) -> CatalogueMetrics:
    """Rank everything a user has not seen; the scorer is asked for a block of users at a time."""
    require_cutoff(k)
    if len(held_out) == 0:
        raise EvaluationError("There is no user to evaluate. Use data with longer histories.")
    rows = [
        _user_metrics(held_out, position, scores, k)
        for position, scores in _scores_by_user(held_out, score_users, n_items)
    ]
    recall, ndcg, recall_optimistic, ndcg_optimistic = np.mean(rows, axis=0).tolist()
    return CatalogueMetrics(recall, ndcg, recall_optimistic, ndcg_optimistic, n_users=len(held_out), k=k)


def _scores_by_user(held_out: HeldOut, score_users: ScoreUsers, n_items: int) -> Iterator[tuple[int, Values]]:
    block = max(1, SCORES_AT_ONCE // n_items)
    for start in range(0, len(held_out), block):
        users = held_out.user_index[start : start + block]
        scores = np.asarray(score_users(users))
        if scores.shape != (len(users), n_items):
            raise EvaluationError(
                f"The scorer gave shape {scores.shape} for {len(users)} users and {n_items} items. "
                "Return one row per user and one column per item."
            )
        require_finite(scores)
        for offset, row in enumerate(scores):
            yield start + offset, row.astype(np.float64)


def _user_metrics(held_out: HeldOut, position: int, scores: Values, k: int) -> list[float]:
    wanted = scores[held_out.held_out[position]]
    # Scores are finite, so seen items fall below and out of every tie group.
    scores[held_out.seen[position]] = -np.inf
    better, tied = _better_and_tied(np.sort(scores), wanted)
    _, wanted_tied = _better_and_tied(np.sort(wanted), wanted)
    ideal = discount_sums(k)[min(k, len(wanted))]
    return [
        float(chance_within(k, better, tied).mean()),
        float(expected_gain(k, better, tied).sum() / ideal),
        # Held-out items first: they share only the first ranks of the group among themselves.
        float(chance_within(k, better, wanted_tied).mean()),
        float(expected_gain(k, better, wanted_tied).sum() / ideal),
    ]


def _better_and_tied(ascending: Values, wanted: Values) -> tuple[Counts, Counts]:
    """How many of the sorted scores are above each wanted score, and how many equal it."""
    not_above = np.searchsorted(ascending, wanted, side="right")
    below = np.searchsorted(ascending, wanted, side="left")
    return len(ascending) - not_above, not_above - below
