"""FCF: federated collaborative filtering with real values (Ammad-ud-din et al., 2019).

Implicit feedback: preference p is 1 for rated items and 0 elsewhere, with confidence c = 1 + alpha r, where r is the
rating's place in its scale, from 0 to 1. A device solves for its own factors x (one half of alternating least squares)
and uploads a gradient for each item's factors y; the server sums them and takes a step of Adam. Ratings and x stay on
the device; what the gradients tell of them is another matter.

`unrated_weight` is the confidence of items without a rating. With 1 it is FCF as published: every item has a gradient.
With 0 only rated items have one, which is what the cost formula of the LightFR paper counts.

The authors' constants could not be found; those in their place are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.item_factors import (
    Device,
    ItemFactorMethod,
    Server,
    a_users_ratings,
    histories,
)
from lightfr_harness.simulation.baselines.method import FACTORS, DeviceCost, Entry, Floats
from lightfr_harness.simulation.baselines.tables import (
    best_unrated,
    decode_rows,
    decode_table,
    encode_rows,
    encode_table,
    stored_bytes,
)

STREAM = 37


@dataclass(frozen=True)
class FcfOptions:
    """alpha scales a rating into confidence, regularization is lambda of the objective."""

    factors: float = FACTORS
    alpha: float = 4.0
    regularization: float = 1.0
    unrated_weight: float = 1.0
    learning_rate: float = 0.05


class FcfDevice(Device):
    """One user: ratings in [0, 1] of some items, and factors that follow from them and the item table."""

    def __init__(self, items: Index, ratings: Floats, options: FcfOptions) -> None:
        self._items = items
        self._confidence = 1 + options.alpha * ratings
        self._options = options

    def factors(self, item_factors: Floats) -> Floats:
        """Solve (Y' C Y + lambda I) x = Y' C p; unrated items enter through Y' Y alone."""
        rated, unrated = item_factors[self._items], self._options.unrated_weight
        matrix = self._options.regularization * np.eye(item_factors.shape[1])
        matrix += (rated.T * (self._confidence - unrated)) @ rated
        if unrated:
            matrix += unrated * item_factors.T @ item_factors
        return np.linalg.solve(matrix, rated.T @ self._confidence).astype(np.float64)

    def answer(self, item_factors: Floats, number: int) -> bytes:
        """f(u, i) = c (p - x.y) x of every item that has a weight. Where all have one, their numbers need not go up."""
        x, unrated = self.factors(item_factors), self._options.unrated_weight
        rated = self._confidence * (1 - item_factors[self._items] @ x)
        if not unrated:
            return encode_rows(self._items, np.outer(rated, x))
        residual = -unrated * (item_factors @ x)
        residual[self._items] = rated
        return encode_table(np.outer(residual, x))

    def loss(self, item_factors: Floats, x: Floats) -> float:
        """This user's part of the objective, the regularization of item factors left out."""
        scores, unrated = item_factors @ x, self._options.unrated_weight
        rated = scores[self._items]
        squares = self._confidence @ (1 - rated) ** 2 + unrated * (scores @ scores - rated @ rated)
        return float(squares + self._options.regularization * x @ x)


class FcfServer(Server):
    """Item factors, moved by Adam as in the authors' experiments, from the sum of the uploads."""

    def __init__(self, n_items: int, options: FcfOptions, rng: np.random.Generator) -> None:
        self.item_factors: Floats = rng.normal(0, 0.1, (n_items, int(options.factors)))
        self._options = options
        self._sums = np.zeros_like(self.item_factors)
        self._mean, self._square = np.zeros_like(self.item_factors), np.zeros_like(self.item_factors)
        self._steps = 0

    def download(self) -> bytes:
        return encode_table(self.item_factors)

    def receive(self, upload: bytes) -> None:
        if self._options.unrated_weight:
            self._sums += decode_table(upload)
        else:
            items, gradients = decode_rows(upload)
            self._sums[items] += gradients

    def step(self) -> None:
        self._adam(2 * self._options.regularization * self.item_factors - 2 * self._sums)
        self._sums[:] = 0

    def _adam(self, gradient: Floats) -> None:
        self._steps += 1
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.01 * (gradient**2 - self._square)
        mean, square = self._mean / (1 - 0.9**self._steps), self._square / (1 - 0.99**self._steps)
        self.item_factors = self.item_factors - self._options.learning_rate * mean / (np.sqrt(square) + 1e-8)


class Fcf(ItemFactorMethod):
    """Server and devices of FCF."""

    def __init__(self, options: FcfOptions) -> None:
        super().__init__()
        self.options = options

    def begin(self, train: Ratings, seed: int) -> None:
        self.rounds.clear()
        self._draws = np.random.default_rng([seed, STREAM])
        self.server = FcfServer(train.n_items, self.options, self._draws)
        bottom, span = train.rating_min, train.rating_max - train.rating_min
        self.devices = [
            FcfDevice(items, (ratings - bottom) / span, self.options) for items, ratings in histories(train)
        ]


def cost(n_items: int, n_ratings: int, seed: int, *, unrated_weight: float = 0.0) -> DeviceCost:
    """Of a device with so many ratings; with an unrated weight of 1 the gradients of all items go up."""
    rng, options = np.random.default_rng([seed, STREAM]), FcfOptions(unrated_weight=unrated_weight)
    items, ratings = a_users_ratings(n_items, n_ratings, rng)
    server, device = FcfServer(n_items, options, rng), FcfDevice(items, ratings / 5, options)
    table = server.item_factors
    x = device.factors(table)
    return DeviceCost(
        storage_bytes=stored_bytes(table, x),
        down_bytes=len(server.download()),
        up_bytes=len(device.answer(table, 0)),
        recommend=lambda k: best_unrated(table @ x, items, k),
        note="Gradients of all items go up, as published." if unrated_weight else "Gradients of rated items go up.",
    )


def _entry(name: str, title: str, unrated_weight: float) -> Entry:
    settings = [
        {"alpha": alpha, "learning_rate": rate, "regularization": strength, "unrated_weight": unrated_weight}
        for alpha, rate, strength in (
            (4.0, 0.05, 1.0),
            (4.0, 0.02, 1.0),
            (1.0, 0.05, 1.0),
            (10.0, 0.05, 1.0),
            (4.0, 0.05, 10.0),
            (4.0, 0.02, 10.0),
        )
    ]
    return Entry(
        name=name,
        title=title,
        family="federated",
        make=lambda settings: Fcf(FcfOptions(**settings)),
        authors=settings[0],
        grid=tuple(settings),
        cost=partial(cost, unrated_weight=unrated_weight),
        note="The authors' constants could not be found; these are ours.",
    )


# As published, and with the uploads that the LightFR paper's formula counts.
ENTRIES = (_entry("fcf", "FCF", 1.0), _entry("fcf-rated", "FCF, rated rows only", 0.0))
