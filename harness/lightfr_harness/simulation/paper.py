"""Codes cut from real-valued factors, for the paper's ablation, and how far a run is from what the paper states."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr_harness.data import Ratings
from lightfr_harness.paper.stated import STATED
from lightfr_harness.server.rules.bits import pack_signs
from lightfr_harness.simulation.options import TrainOptions

Codes = npt.NDArray[np.uint8]
# Of the matrix factorisation: passes over the ratings, step, weight decay, and ratings in one step.
EPOCHS, RATE, SHRINKAGE, BATCH = 20, 0.02, 0.05, 1024


def compare_with_stated(options: TrainOptions, hr: float | None, ndcg: float) -> dict[str, Any] | None:
    """How far a run is from what the paper states for its data set and method; None for our own objective."""
    if options.objective != "paper":
        return None
    stated = STATED.get(options.format, {}).get(f"lightfr-{options.aggregate}") if options.data else None
    if stated is None or hr is None:
        return {"stated": None, "reason": "the paper states no figure for this data set and evaluation"}
    return {
        "stated": {"hr": stated[0], "ndcg": stated[1]},
        "hr_difference": hr - stated[0],
        "ndcg_difference": ndcg - stated[1],
    }


def quantised_factors(train: Ratings, code_bits: int, seed: int) -> tuple[Codes, Codes]:
    """Codes of users and of items of LightFR_init: factors fitted centrally, each dimension cut at its median."""
    rng = np.random.default_rng([seed, 3])
    users = rng.normal(0, 0.1, (train.n_users, code_bits))
    items = rng.normal(0, 0.1, (train.n_items, code_bits))
    scaled = (train.rating - train.rating_min) / (train.rating_max - train.rating_min)
    centred = scaled - scaled.mean() if len(scaled) else scaled
    for _ in range(EPOCHS):
        order = rng.permutation(len(train))
        for first in range(0, len(order), BATCH):
            rows = order[first : first + BATCH]
            u, i = train.user_index[rows], train.item_index[rows]
            user, item = users[u], items[i]
            error = (centred[rows] - (user * item).sum(axis=1))[:, None]
            np.add.at(users, u, RATE * (error * item - SHRINKAGE * user))
            np.add.at(items, i, RATE * (error * user - SHRINKAGE * item))
    return _cut_at_medians(users), _cut_at_medians(items)


def _cut_at_medians(factors: npt.NDArray[np.float64]) -> Codes:
    return pack_signs(np.where(factors > np.median(factors, axis=0), 1, -1))
