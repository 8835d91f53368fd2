"""LightFR_init of the paper's ablation: real-valued matrix factorisation, then quantisation at the median."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lightfr_harness.data import Ratings
from lightfr_harness.server.rules.bits import pack_signs

EPOCHS = 20
RATE = 0.02
SHRINKAGE = 0.05
_BATCH = 1024


def quantised_factors(train: Ratings, code_bits: int, seed: int) -> npt.NDArray[np.uint8]:
    """Item codes: factors fitted centrally by gradient descent, each dimension cut at its median over the items."""
    rng = np.random.default_rng([seed, 3])
    users = rng.normal(0, 0.1, (train.n_users, code_bits))
    items = rng.normal(0, 0.1, (train.n_items, code_bits))
    scaled = (train.rating - train.rating_min) / (train.rating_max - train.rating_min)
    centred = scaled - scaled.mean() if len(scaled) else scaled
    for _ in range(EPOCHS):
        order = rng.permutation(len(train))
        for first in range(0, len(order), _BATCH):
            _step(users, items, train, centred, order[first : first + _BATCH])
    return pack_signs(np.where(items > np.median(items, axis=0), 1, -1))


def _step(
    users: npt.NDArray[np.float64],
    items: npt.NDArray[np.float64],
    train: Ratings,
    wanted: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int64],
) -> None:
    u, i = train.user_index[rows], train.item_index[rows]
    user, item = users[u], items[i]
    error = (wanted[rows] - (user * item).sum(axis=1))[:, None]
    np.add.at(users, u, RATE * (error * item - SHRINKAGE * user))
    np.add.at(items, i, RATE * (error * user - SHRINKAGE * item))
