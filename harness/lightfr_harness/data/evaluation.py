"""Accuracy, as the expectation under random tie-breaking, with the optimistic rule beside it.

Scores of f-bit codes take only f + 1 values, so ties are the rule. With `better` items strictly above it, an item of a
tie group of `group_size` is equally likely on each of the ranks better + 1 .. better + group_size. By linearity of
expectation that is all a sum over items needs, however many wanted items share the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lightfr.errors import InvalidInputError
from lightfr_harness.data.held_out import Candidates, HeldOut
from lightfr_harness.data.ratings import Index, Ratings

Counts = NDArray[np.int64]
Values = NDArray[np.float64]
Scores = NDArray[np.floating] | NDArray[np.integer]
ScoreUsers = Callable[[Index], Scores]
"""Scores of every item for a few users: an array of shape (users given, n_items)."""

SCORES_AT_ONCE = 1 << 22
"""Bounds memory: 32 MiB of float64 scores, however large the catalogue."""


@dataclass(frozen=True)
class Metrics:
    """Means over users; `hr` and `ndcg` are expectations under random tie-breaking.

    The optimistic figures let the positive win every tie. They are for comparison with published
    numbers only.
    """

    hr: float
    ndcg: float
    hr_optimistic: float
    ndcg_optimistic: float
    n_users: int
    k: int


def evaluate_candidates(
    candidates: Candidates,
    scores: Scores,
    *,
    k: int = 10,
) -> Metrics:
    """Judge a flat array of scores, aligned with `candidates.item_index`; higher is better."""
    require_cutoff(k)
    _require_scores(candidates, scores)
    better, tied = count_better_and_tied(candidates, scores)
    alone = np.ones_like(better)
    return Metrics(
        hr=float(chance_within(k, better, tied + 1).mean()),
        ndcg=float(expected_gain(k, better, tied + 1).mean()),
        hr_optimistic=float(chance_within(k, better, alone).mean()),
        ndcg_optimistic=float(expected_gain(k, better, alone).mean()),
        n_users=len(candidates),
        k=k,
    )


def count_better_and_tied(candidates: Candidates, scores: Scores) -> tuple[Counts, Counts]:
    """For each user, how many negatives score above the positive and how many equal it."""
    starts = candidates.offsets[:-1]
    positive = np.repeat(scores[starts], candidates.groups.sizes)
    better = np.add.reduceat((scores > positive).astype(np.int64), starts)
    equal = np.add.reduceat((scores == positive).astype(np.int64), starts)
    return better, equal - 1  # The positive equals itself.


def _require_scores(candidates: Candidates, scores: Scores) -> None:
    if len(candidates) == 0:
        raise InvalidInputError("There is no user to evaluate. Use data with longer histories.")
    if scores.shape != candidates.item_index.shape:
        raise InvalidInputError(
            f"{scores.shape} scores for {candidates.item_index.shape} candidates. "
            "Give one score per candidate, in the same order."
        )
    require_finite(scores)


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
        raise InvalidInputError("There is no user to evaluate. Use data with longer histories.")
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
            raise InvalidInputError(
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


def popularity_scores(train: Ratings) -> NDArray[np.int64]:
    """Train counts, one per item; equal counts stay tied and are judged as ties."""
    return train.item_counts()


def popularity_of_candidates(train: Ratings, candidates: Candidates) -> NDArray[np.int64]:
    """The same, aligned with the candidates."""
    return popularity_scores(train)[candidates.item_index]


def require_cutoff(k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InvalidInputError(f"K is {k!r}; give a whole number of at least 1.")


def require_finite(scores: NDArray[np.number]) -> None:
    if not np.isfinite(scores).all():
        raise InvalidInputError("A score is NaN or infinite; ranks would mean nothing. Fix scoring.")


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
