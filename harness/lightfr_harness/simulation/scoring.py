"""Scores of a trained model as devices have them: equal bits less other bits, and what popularity adds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lightfr import UserCode, _kernel
from lightfr.training import PublishedModel
from lightfr_harness.data import Candidates, HeldOut, Ratings
from lightfr_harness.data.evaluation import (
    CatalogueMetrics,
    Metrics,
    Values,
    candidate_figures,
    candidate_means,
    catalogue_figures,
    popularity_of_candidates,
    popularity_scores,
)
from lightfr_harness.data.ratings import Index

Scores = npt.NDArray[np.int64]
Rows = npt.NDArray[np.bool_]


class Way(NamedTuple):
    """How one user's items are scored: by a code, by what each row has on top, or by both."""

    code: UserCode | None
    offsets: Scores | None = None


def figures(model: PublishedModel, ways: dict[int, Way], held_out: Candidates | HeldOut, k: int = 10) -> Values:
    """For each user a row with the figures that `means` takes the means of."""
    if isinstance(held_out, Candidates):
        return candidate_figures(held_out, candidate_scores(model, ways, held_out), k=k)
    everything = np.arange(model.n_items, dtype=np.uint32)

    def scores_of(users: Index) -> Scores:
        return np.stack([_scores(model, ways[user], everything) for user in users.tolist()])

    return catalogue_figures(held_out, scores_of, n_items=model.n_items, k=k)


def candidate_scores(model: PublishedModel, ways: dict[int, Way], candidates: Candidates) -> Scores:
    """One score per candidate, in their order."""
    offsets = candidates.offsets.tolist()
    scores = np.empty(len(candidates.item_index), np.int64)
    for place, user in enumerate(candidates.user_index.tolist()):
        span = slice(offsets[place], offsets[place + 1])
        scores[span] = _scores(model, ways[user], candidates.item_index[span])
    return scores


def _scores(model: PublishedModel, way: Way, items: Index) -> Scores:
    scores = np.zeros(len(items), np.int64)
    if way.code is not None:
        wanted = np.ascontiguousarray(items, np.uint32)
        rows = _kernel.gather(model.codes.kernel_pointer(), wanted.data, len(wanted))
        distances = np.empty(len(items), np.uint16)
        code = _kernel.CodesPointer(way.code.reveal(), model.code_bits)
        _kernel.distances(_kernel.CodesPointer(rows, model.code_bits), code, distances.data)
        scores += model.code_bits - 2 * distances.astype(np.int64)
    return scores if way.offsets is None else scores + way.offsets[items]


def popularity_figures(train: Ratings, held_out: Candidates | HeldOut, k: int = 10) -> Values:
    """Figures of the popularity list on the same held-out items."""
    if isinstance(held_out, Candidates):
        return candidate_figures(held_out, popularity_of_candidates(train, held_out), k=k)
    scores = popularity_scores(train)
    return catalogue_figures(
        held_out, lambda users: np.broadcast_to(scores, (len(users), len(scores))), n_items=train.n_items, k=k
    )


def judge_popularity(train: Ratings, held_out: Candidates | HeldOut, k: int = 10) -> Metrics | CatalogueMetrics:
    """Accuracy of the popularity list."""
    return means(popularity_figures(train, held_out, k), held_out, k=k)


def means(
    rows: Values, held_out: Candidates | HeldOut, chosen: Rows | None = None, *, k: int = 10
) -> Metrics | CatalogueMetrics:
    """The means of such figures over all users, or over the chosen ones."""
    if isinstance(held_out, Candidates):
        return candidate_means(held_out, rows, chosen, k=k)
    counted = rows if chosen is None else rows[chosen]
    return CatalogueMetrics(*[*counted.mean(axis=0).tolist(), len(counted), k])


def users_of(held_out: Candidates | HeldOut) -> list[int]:
    return sorted(set(held_out.user_index.tolist()))
