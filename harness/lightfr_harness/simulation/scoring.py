"""Scores of a trained model: the negated Hamming distance between each user's code and the items in question."""

from __future__ import annotations

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
    catalogue_figures,
    popularity_of_candidates,
    popularity_scores,
)
from lightfr_harness.data.ratings import Index


def candidate_scores(
    model: PublishedModel, codes: dict[int, UserCode], candidates: Candidates
) -> npt.NDArray[np.int64]:
    """One score per candidate, in their order."""
    items, offsets = model.codes.kernel_pointer(), candidates.offsets.tolist()
    scores = np.empty(len(candidates.item_index), np.int64)
    for place, user in enumerate(candidates.user_index.tolist()):
        span = slice(offsets[place], offsets[place + 1])
        wanted = np.ascontiguousarray(candidates.item_index[span], np.uint32)
        rows = _kernel.gather(items, wanted.data, len(wanted))
        scores[span] = -_distances(rows, model.code_bits, codes[user])
    return scores


def _distances(rows: bytes | bytearray, code_bits: int, code: UserCode) -> npt.NDArray[np.int64]:
    pointer = _kernel.CodesPointer(rows, code_bits)
    out = np.empty(pointer.n_items, np.uint16)
    _kernel.distances(pointer, _kernel.CodesPointer(code.reveal(), code_bits), out.data)
    return out.astype(np.int64)


def judge(
    model: PublishedModel, codes: dict[int, UserCode], held_out: Candidates | HeldOut, k: int = 10
) -> Metrics | CatalogueMetrics:
    """Accuracy of the model with these user codes."""
    return means(figures(model, codes, held_out, k), held_out, k)


def figures(model: PublishedModel, codes: dict[int, UserCode], held_out: Candidates | HeldOut, k: int = 10) -> Values:
    """The same for each user: a row with the figures that `judge` takes the means of."""
    if isinstance(held_out, Candidates):
        return candidate_figures(held_out, candidate_scores(model, codes, held_out), k=k)
    matrix = model.codes.kernel_pointer()

    def scores_of(users: Index) -> npt.NDArray[np.int64]:
        out = np.empty((len(users), model.n_items), np.uint16)
        for row, user in zip(out, users.tolist(), strict=True):
            _kernel.distances(matrix, _kernel.CodesPointer(codes[user].reveal(), model.code_bits), row.data)
        return -out.astype(np.int64)

    return catalogue_figures(held_out, scores_of, n_items=model.n_items, k=k)


def judge_popularity(train: Ratings, held_out: Candidates | HeldOut, k: int = 10) -> Metrics | CatalogueMetrics:
    """Accuracy of the popularity list on the same held-out items."""
    return means(popularity_figures(train, held_out, k), held_out, k)


def popularity_figures(train: Ratings, held_out: Candidates | HeldOut, k: int = 10) -> Values:
    """The same for each user."""
    if isinstance(held_out, Candidates):
        return candidate_figures(held_out, popularity_of_candidates(train, held_out), k=k)
    scores = popularity_scores(train)
    return catalogue_figures(
        held_out, lambda users: np.broadcast_to(scores, (len(users), len(scores))), n_items=train.n_items, k=k
    )


def means(rows: Values, held_out: Candidates | HeldOut, k: int = 10) -> Metrics | CatalogueMetrics:
    """The means over users of such rows."""
    kind = Metrics if isinstance(held_out, Candidates) else CatalogueMetrics
    return kind(*[*rows.mean(axis=0).tolist(), len(rows), k])


def users_of(held_out: Candidates | HeldOut) -> list[int]:
    return sorted(set(held_out.user_index.tolist()))
