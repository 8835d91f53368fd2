"""HR@K and NDCG@K of one positive among given candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lightfr_harness.data.held_out import Candidates

from .errors import EvaluationError
from .ties import Counts, chance_within, expected_gain, require_cutoff, require_finite


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
    scores: NDArray[np.floating] | NDArray[np.integer],
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


def count_better_and_tied(
    candidates: Candidates, scores: NDArray[np.floating] | NDArray[np.integer]
) -> tuple[Counts, Counts]:
    """For each user, how many negatives score above the positive and how many equal it."""
    starts = candidates.offsets[:-1]
    positive = np.repeat(scores[starts], candidates.groups.sizes)
    better = np.add.reduceat((scores > positive).astype(np.int64), starts)
    equal = np.add.reduceat((scores == positive).astype(np.int64), starts)
    return better, equal - 1  # The positive equals itself.


def _require_scores(candidates: Candidates, scores: NDArray[np.floating] | NDArray[np.integer]) -> None:
    if len(candidates) == 0:
        raise EvaluationError("There is no user to evaluate. Use data with longer histories.")
    if scores.shape != candidates.item_index.shape:
        raise EvaluationError(
            f"{scores.shape} scores for {candidates.item_index.shape} candidates. "
            "Give one score per candidate, in the same order."
        )
    require_finite(scores)
