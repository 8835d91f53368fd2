"""PMF: probabilistic matrix factorisation (Salakhutdinov and Mnih, 2007).

    minimise  sum (r - p.q)^2 + lambda (|p|^2 + |q|^2), the norms once for each rating,

by gradient descent over batches of 512 ratings in random order, as the LightFR paper says; the step of a batch is the
sum of the steps of its ratings. `explicit` is the paper's reading: r are the observed ratings as they are, and nothing
else is trained on. `implicit` has r = 1 for every observed rating and, anew in each pass, `negatives` pairs with r = 0
for each, whose items are drawn from all that the user has not rated in train.

Where we differ: no logistic function around p.q, no momentum, and no mean taken off, as in the LightFR author's own
collection of methods, whose rate and lambda are the authors' constants here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.method import FACTORS, Entry, Floats, Method
from lightfr_harness.simulation.baselines.rows import add_rows, is_among, pair_numbers, products

BATCH = 512
SPREAD = 0.1


@dataclass(frozen=True)
class PmfOptions:
    """The step of gradient descent, lambda, and pairs without a rating for each rating; 0 is explicit feedback."""

    learning_rate: float
    regularization: float
    negatives: float = 0


class Pmf(Method):
    """Factors of users and items, in the hands of one party."""

    def __init__(self, options: PmfOptions) -> None:
        self.options = options

    def begin(self, train: Ratings, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 52])
        self.user_factors: Floats = self._rng.normal(0, SPREAD, (train.n_users, FACTORS))
        self.item_factors: Floats = self._rng.normal(0, SPREAD, (train.n_items, FACTORS))
        self._train = train
        self._pairs = np.sort(pair_numbers(train.user_index, train.item_index, train.n_items))

    def step(self) -> None:
        users, items, ratings = self._examples()
        order = self._rng.permutation(len(users))
        for first in range(0, len(order), BATCH):
            rows = order[first : first + BATCH]
            self.descend(users[rows], items[rows], ratings[rows])

    def descend(self, users: Index, items: Index, ratings: Floats) -> None:
        """One step down the sum over these examples."""
        rate, shrinkage = self.options.learning_rate, self.options.regularization
        user, item = self.user_factors[users], self.item_factors[items]
        error = (ratings - products(user, item))[:, None]
        add_rows(self.user_factors, users, rate * (error * item - shrinkage * user))
        add_rows(self.item_factors, items, rate * (error * user - shrinkage * item))

    def scores(self, users: Index, items: Index) -> Floats:
        return products(self.user_factors[users], self.item_factors[items])

    def _examples(self) -> tuple[Index, Index, Floats]:
        train, negatives = self._train, int(self.options.negatives)
        if not negatives:
            return train.user_index, train.item_index, train.rating
        users = np.repeat(train.user_index, negatives)
        items = self._rng.integers(0, train.n_items, len(users)).astype(np.uint32)
        # A pair that turns out to be rated is left out: a few of a hundred, and no user runs out of items.
        free = ~is_among(pair_numbers(users, items, train.n_items), self._pairs)
        users, items = users[free], items[free]
        ratings = np.concatenate([np.ones(len(train)), np.zeros(len(users))])
        return np.append(train.user_index, users), np.append(train.item_index, items), ratings


ENTRIES = (
    Entry(
        name="pmf",
        title="PMF",
        family="centralised",
        make=lambda settings: Pmf(PmfOptions(**settings)),
        authors={"learning_rate": 0.01, "regularization": 0.001},
        grid=tuple(
            {"learning_rate": rate, "regularization": shrinkage}
            for rate in (0.005, 0.01, 0.02)
            for shrinkage in (0.01, 0.1)
        ),
        note="observed ratings only, as the paper reads it",
    ),
    Entry(
        name="pmf-implicit",
        title="PMF with sampled zeros",
        family="centralised",
        make=lambda settings: Pmf(PmfOptions(**settings)),
        authors={"learning_rate": 0.01, "regularization": 0.001, "negatives": 4},
        grid=tuple(
            {"learning_rate": rate, "regularization": shrinkage, "negatives": 4}
            for rate in (0.02, 0.05)
            for shrinkage in (0.003, 0.01, 0.03)
        ),
        note="rated or not, with four sampled zeros for each rating",
    ),
)
