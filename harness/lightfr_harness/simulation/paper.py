"""What the paper states and what its ablation needs: the accuracy table, and codes cut from real-valued factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr_harness.data import Ratings
from lightfr_harness.server.rules.bits import pack_signs
from lightfr_harness.simulation.options import TrainOptions

# HR@10 and NDCG@10 by data set and method, table of the LightFR paper.
STATED: dict[str, dict[str, tuple[float, float]]] = {
    "ml-1m": {"grad": (0.5014, 0.2709), "para": (0.4942, 0.2618), "init": (0.3110, 0.1542), "random": (0.2419, 0.1043)},
    "filmtrust": {
        "grad": (0.8615, 0.6565),
        "para": (0.8589, 0.6554),
        "init": (0.6129, 0.4932),
        "random": (0.5793, 0.3531),
    },
    "douban": {
        "grad": (0.2934, 0.1665),
        "para": (0.2913, 0.1619),
        "init": (0.1832, 0.1193),
        "random": (0.1408, 0.0893),
    },
    "ciao": {"grad": (0.4556, 0.2413), "para": (0.4489, 0.2267), "init": (0.3105, 0.1632), "random": (0.2882, 0.1254)},
}
# Of the matrix factorisation: passes over the ratings, step, weight decay, and ratings in one step.
EPOCHS, RATE, SHRINKAGE, BATCH = 20, 0.02, 0.05, 1024


def compare_with_stated(options: TrainOptions, hr: float | None, ndcg: float) -> dict[str, Any] | None:
    """How far a run is from what the paper states for its data set and method; None for our own objective."""
    if options.objective != "paper":
        return None
    stated = STATED.get(options.format, {}).get(options.aggregate) if options.data else None
    if stated is None or hr is None:
        return {"stated": None, "reason": "the paper states no figure for this data set and evaluation"}
    return {
        "stated": {"hr": stated[0], "ndcg": stated[1]},
        "hr_difference": hr - stated[0],
        "ndcg_difference": ndcg - stated[1],
    }


def quantised_factors(train: Ratings, code_bits: int, seed: int) -> npt.NDArray[np.uint8]:
    """Item codes of LightFR_init: factors fitted centrally, each dimension cut at its median over the items."""
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
    return pack_signs(np.where(items > np.median(items, axis=0), 1, -1))
