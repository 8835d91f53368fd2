"""Accuracy by three rules for ties: the expectation of breaking them at random, the device's rule, the optimistic one.

Scores of f-bit codes take only f + 1 values, so ties are the rule. With `better` items strictly above it, an item of a
tie group of `group_size` is equally likely on each of the ranks better + 1 .. better + group_size. By linearity of
expectation that is all a sum over items needs, however many wanted items share the group. A device lists the lower
item index first, which is the more popular item.
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


GROUPS = ((1, 4), (5, 19), (20, 99), (100, None))
"""Users by how many ratings they have in train; a user without any is in no group."""


@dataclass(frozen=True)
class Metrics:
    """Means over users; `hr` and `ndcg` are expectations under random tie-breaking.

    The figures of the device list the lower item index first among equal scores: that is what users get. The
    optimistic ones let the positive win every tie. They are for comparison with published numbers only.
    """

    hr: float
    ndcg: float
    hr_device: float
    ndcg_device: float
    hr_optimistic: float
    ndcg_optimistic: float
    n_users: int
    k: int
    # Of users whose held-out rating is above the middle of the scale, and below it; None: there are no such users.
    liked_hr: float | None
    liked_ndcg: float | None
    disliked_hr: float | None
    n_liked: int
    n_disliked: int


def evaluate_candidates(candidates: Candidates, scores: Scores, *, k: int = 10) -> Metrics:
    """Judge a flat array of scores, aligned with `candidates.item_index`; higher is better."""
    return candidate_means(candidates, candidate_figures(candidates, scores, k=k), k=k)


def candidate_means(
    candidates: Candidates, figures: Values, rows: NDArray[np.bool_] | None = None, *, k: int = 10
) -> Metrics:
    """The means of what `candidate_figures` gave, over all users or those of some rows."""
    chosen = np.ones(len(candidates), np.bool_) if rows is None else rows
    liked, disliked = figures[candidates.is_liked & chosen], figures[candidates.is_disliked & chosen]
    names = ("hr", "ndcg", "hr_device", "ndcg_device", "hr_optimistic", "ndcg_optimistic")
    return Metrics(
        **dict(zip(names, figures[chosen].mean(axis=0).tolist(), strict=True)),
        n_users=int(np.count_nonzero(chosen)),
        k=k,
        liked_hr=float(liked[:, 0].mean()) if len(liked) else None,
        liked_ndcg=float(liked[:, 1].mean()) if len(liked) else None,
        disliked_hr=float(disliked[:, 0].mean()) if len(disliked) else None,
        n_liked=len(liked),
        n_disliked=len(disliked),
    )


def candidate_figures(candidates: Candidates, scores: Scores, *, k: int = 10) -> Values:
    """One row per user, with the first six columns of Metrics."""
    require_cutoff(k)
    _require_scores(candidates, scores)
    better, tied, before = count_better_and_tied(candidates, scores)
    alone = np.ones_like(better)
    rules = ((better, tied + 1), (better + before, alone), (better, alone))
    return np.column_stack([rule(k, *places) for places in rules for rule in (chance_within, expected_gain)])


def group_rows(train: Ratings, users: Index) -> dict[str, NDArray[np.bool_]]:
    """For each of GROUPS that has users, by its name, which of the users are in it."""
    counts = np.bincount(train.user_index, minlength=train.n_users)[users]
    rows = {
        f"{least}-{most}" if most else f"{least}+": (counts >= least) & (counts <= (most or counts.max(initial=0)))
        for least, most in GROUPS
    }
    return {name: chosen for name, chosen in rows.items() if chosen.any()}


def count_better_and_tied(candidates: Candidates, scores: Scores) -> tuple[Counts, Counts, Counts]:
    """For each user, how many negatives score above the positive, how many equal it, and how many of those have a
    lower index."""
    starts, sizes = candidates.offsets[:-1], candidates.groups.sizes
    positive = np.repeat(scores[starts], sizes)
    is_equal = scores == positive
    is_before = is_equal & (candidates.item_index < np.repeat(candidates.positives, sizes))
    better, equal, before = (
        np.add.reduceat(rows.astype(np.int64), starts) for rows in (scores > positive, is_equal, is_before)
    )
    return better, equal - 1, before  # The positive equals itself.


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

    The rules for ties are those of Metrics; by the optimistic one, held-out items win every tie against the rest.
    """

    recall: float
    ndcg: float
    recall_device: float
    ndcg_device: float
    recall_optimistic: float
    ndcg_optimistic: float
    n_users: int
    k: int


def evaluate_catalogue(held_out: HeldOut, score_users: ScoreUsers, *, n_items: int, k: int = 10) -> CatalogueMetrics:
    """Rank everything a user has not seen; the scorer is asked for a block of users at a time."""
    figures = catalogue_figures(held_out, score_users, n_items=n_items, k=k)
    return CatalogueMetrics(*[*figures.mean(axis=0).tolist(), len(figures), k])


def catalogue_figures(held_out: HeldOut, score_users: ScoreUsers, *, n_items: int, k: int = 10) -> Values:
    """One row per user, with the first six columns of CatalogueMetrics."""
    require_cutoff(k)
    if len(held_out) == 0:
        raise InvalidInputError("There is no user to evaluate. Use data with longer histories.")
    rows = [
        _user_figures(held_out, position, scores, k)
        for position, scores in _scores_by_user(held_out, score_users, n_items)
    ]
    return np.array(rows)


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


def _user_figures(held_out: HeldOut, position: int, scores: Values, k: int) -> list[float]:
    items = held_out.held_out[position]
    wanted = scores[items]
    # Scores are finite, so seen items fall below and out of every tie group.
    scores[held_out.seen[position]] = -np.inf
    better, tied = _better_and_tied(np.sort(scores), wanted)
    before = np.array([np.count_nonzero(scores[:item] == scores[item]) for item in items.tolist()], np.int64)
    # Held-out items first: they share only the first ranks of the group among themselves.
    _, wanted_tied = _better_and_tied(np.sort(wanted), wanted)
    ideal = discount_sums(k)[min(k, len(wanted))]
    figures = []
    for above, group_size in ((better, tied), (better + before, np.ones_like(tied)), (better, wanted_tied)):
        figures.append(float(chance_within(k, above, group_size).mean()))
        figures.append(float(expected_gain(k, above, group_size).sum() / ideal))
    return figures


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
