"""FedRec: federated rating prediction that hides which items were rated (Lin, Liang, Pan, Ming, 2021).

This is the batch form of its probabilistic matrix factorization, with hybrid filling. With user factors u and item
factors V_i, the loss of a rating r is ((r - u.V_i)^2 + lambda |u|^2 + lambda |V_i|^2) / 2.

In each round a device draws rho |I| of the items that it did not rate, I', and gives them virtual ratings: the mean of
its own ratings in rounds 0 to `start`; later u'.V_i, where u' is u after `local` steps on its real ratings alone, which
are then thrown away. It uploads the gradient of V_i for every i in I and I', and moves u against the mean gradient over
both. The server moves each V_i against the mean of the gradients that came for it. The step size shrinks by a factor of
0.9 a round.

The authors take all devices in every round, which `fraction` says. Nothing is encrypted.
"""

from __future__ import annotations

from dataclasses import dataclass

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
from lightfr_harness.simulation.baselines.method import FACTORS, FRACTION, DeviceCost, Entry, Floats
from lightfr_harness.simulation.baselines.tables import (
    best_unrated,
    decode_rows,
    encode_rows,
    encode_table,
    stored_bytes,
)

STREAM = 61
SPREAD = 0.005  # factors start uniformly within this of zero


@dataclass(frozen=True)
class FedRecOptions:
    """rho virtual ratings for each real one; the rest is as in the module's text."""

    factors: float = FACTORS
    regularization: float = 0.001
    step_size: float = 0.8
    shrink: float = 0.9
    rho: float = 3
    start: float = 5
    local: float = 15
    fraction: float = FRACTION

    def step_size_of(self, number: int) -> float:
        """gamma of a round, numbered from 0."""
        return self.step_size * self.shrink**number


class FedRecDevice(Device):
    """Real ratings of some items, and a generator of its own that draws the others."""

    def __init__(
        self, items: Index, ratings: Floats, n_items: int, options: FedRecOptions, rng: np.random.Generator
    ) -> None:
        self._items, self._ratings, self._options, self._rng = items, ratings, options, rng
        self._unrated = np.setdiff1d(np.arange(n_items, dtype=np.uint32), items)
        self.user_factors: Floats = rng.uniform(-SPREAD, SPREAD, int(options.factors))

    def answer(self, item_factors: Floats, number: int) -> bytes:
        sampled = self.sample()
        items = np.concatenate([self._items, sampled])
        ratings = np.concatenate([self._ratings, self.virtual_ratings(item_factors[sampled], number, item_factors)])
        rows, user = item_factors[items], self.user_factors
        error, strength = ratings - rows @ user, self._options.regularization
        if len(items):
            self.user_factors = user - self._options.step_size_of(number) * self._user_gradient(rows, error, user)
        return encode_rows(items, strength * rows - np.outer(error, user))

    def sample(self) -> Index:
        """I', drawn anew each time."""
        size = min(int(self._options.rho * len(self._items)), len(self._unrated))
        return self._rng.choice(self._unrated, size, replace=False, shuffle=False)

    def virtual_ratings(self, sampled_rows: Floats, number: int, item_factors: Floats) -> Floats:
        """Ratings of items that were not rated, by hybrid filling."""
        if not len(sampled_rows):
            return np.zeros(0)
        if number <= self._options.start:
            return np.full(len(sampled_rows), self._ratings.mean())
        user, rows = self.user_factors, item_factors[self._items]
        for _ in range(int(self._options.local)):
            gradient = self._user_gradient(rows, self._ratings - rows @ user, user)
            user = user - self._options.step_size_of(number) * gradient
        return sampled_rows @ user

    def _user_gradient(self, rows: Floats, error: Floats, user: Floats) -> Floats:
        """The mean over the ratings."""
        return self._options.regularization * user - error @ rows / len(rows)

    def factors(self, item_factors: Floats) -> Floats:
        return self.user_factors


class FedRecServer(Server):
    """Moves each item that came up against the mean of what came."""

    def __init__(self, n_items: int, options: FedRecOptions, rng: np.random.Generator) -> None:
        self.item_factors: Floats = rng.uniform(-SPREAD, SPREAD, (n_items, int(options.factors)))
        self._options, self._number = options, 0
        self._forget()

    def download(self) -> bytes:
        return encode_table(self.item_factors)

    def receive(self, upload: bytes) -> None:
        items, gradients = decode_rows(upload)
        self._sums[items] += gradients
        self._counts[items] += 1

    def step(self) -> None:
        mean = self._sums / np.maximum(1, self._counts)[:, None]
        self.item_factors = self.item_factors - self._options.step_size_of(self._number) * mean
        self._number += 1
        self._forget()

    def _forget(self) -> None:
        self._sums, self._counts = np.zeros_like(self.item_factors), np.zeros(len(self.item_factors))


class FedRec(ItemFactorMethod):
    """Server and devices of FedRec."""

    def __init__(self, options: FedRecOptions) -> None:
        super().__init__()
        self.options, self.fraction = options, options.fraction

    def begin(self, train: Ratings, seed: int) -> None:
        self.rounds.clear()
        self._draws = np.random.default_rng([seed, STREAM])
        self.server = FedRecServer(train.n_items, self.options, self._draws)
        self.devices = [
            FedRecDevice(items, ratings, train.n_items, self.options, np.random.default_rng([seed, STREAM, user]))
            for user, (items, ratings) in enumerate(histories(train))
        ]


def cost(n_items: int, n_ratings: int, seed: int) -> DeviceCost:
    """Of a device with so many ratings, in a round with virtual ratings by the model."""
    rng, options = np.random.default_rng([seed, STREAM]), FedRecOptions()
    items, ratings = a_users_ratings(n_items, n_ratings, rng)
    server, device = FedRecServer(n_items, options, rng), FedRecDevice(items, ratings, n_items, options, rng)
    table = server.item_factors
    upload = device.answer(table, int(options.start) + 1)
    return DeviceCost(
        storage_bytes=stored_bytes(table, device.user_factors),
        down_bytes=len(server.download()),
        up_bytes=len(upload),
        recommend=lambda k: best_unrated(table @ device.user_factors, items, k),
        note="An item's number goes up with its row, and so do those of items with virtual ratings.",
    )


AUTHORS = {"factors": 20, "regularization": 0.001, "step_size": 0.8, "rho": 3, "start": 5, "local": 15, "fraction": 1.0}

ENTRY = Entry(
    name="fedrec",
    title="FedRec",
    family="federated",
    make=lambda settings: FedRec(FedRecOptions(**settings)),
    authors=AUTHORS,
    grid=tuple(
        {"step_size": step_size, "rho": rho, "regularization": regularization}
        for step_size, rho, regularization in (
            (0.8, 3, 0.001),
            (0.6, 3, 0.001),
            (0.4, 3, 0.001),
            (0.2, 3, 0.001),
            (0.4, 1, 0.001),
            (0.4, 3, 0.1),
        )
    ),
    cost=cost,
    authors_steps=100,
)
