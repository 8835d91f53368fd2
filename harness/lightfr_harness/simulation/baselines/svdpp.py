"""SVD++ (Koren, 2008): ratings predicted from factors, biases, and which items a user rated.

    r = mu + b_u + b_i + q_i.(p_u + z_u),   z_u = |I|^-1/2 sum over the rated items j of y_j,

fitted to the observed ratings by stochastic gradient descent with weight decay, rating by rating. After each rating all
|I| vectors y_j of its user move by the same step, so that

    z_u <- (1 - rate lambda) z_u + rate e q_i        and        y_j <- (1 - rate lambda) y_j + rate e |I|^-1/2 q_i,

which is why z_u is kept beside the passes over a user's ratings, and the y_j are brought up to date once, after them.
For one user at a time this is exactly the textbook's descent. We go through USERS_AT_ONCE users side by side, one
rating of each at a time, so that numpy has rows to work on; their steps for shared items add up.

Some public code computes z_u once and never again, so that the y_j have no part in the predictions. Here every rating
sees the z_u of now.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.method import FACTORS, Entry, Floats, Method
from lightfr_harness.simulation.baselines.rows import add_rows, products

SPREAD = 0.1
USERS_AT_ONCE = 16


@dataclass(frozen=True)
class SvdppOptions:
    """The step, and the weight decay of biases and of factors."""

    learning_rate: float
    bias_regularization: float
    factor_regularization: float


class Svdpp(Method):
    """Factors, biases and implicit factors, in the hands of one party."""

    def __init__(self, options: SvdppOptions, users_at_once: int = USERS_AT_ONCE) -> None:
        self.options, self._users_at_once = options, users_at_once

    def begin(self, train: Ratings, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 53])
        self.user_factors: Floats = self._rng.normal(0, SPREAD, (train.n_users, FACTORS))
        self.item_factors: Floats = self._rng.normal(0, SPREAD, (train.n_items, FACTORS))
        self.implicit_factors: Floats = self._rng.normal(0, SPREAD, (train.n_items, FACTORS))
        self.user_bias: Floats = np.zeros(train.n_users)
        self.item_bias: Floats = np.zeros(train.n_items)
        self.mean = float(train.rating.mean())
        self._order = np.argsort(train.user_index, kind="stable")
        self._items, self._ratings = train.item_index[self._order], train.rating[self._order]
        self._sizes = np.bincount(train.user_index, minlength=train.n_users)
        self._starts = np.cumsum(self._sizes) - self._sizes

    def step(self) -> None:
        """One pass. Users of similar length go side by side; which of them, and in which order, is drawn anew."""
        drawn = self._rng.random(len(self._sizes))
        users = np.lexsort((drawn, self._sizes))
        users = users[self._sizes[users] > 0]
        blocks = [users[first : first + self._users_at_once] for first in range(0, len(users), self._users_at_once)]
        for place in self._rng.permutation(len(blocks)):
            self._descend(blocks[place])

    def scores(self, users: Index, items: Index) -> Floats:
        known, places = np.unique(users, return_inverse=True)
        factors = self.user_factors[known] + self._implicit_sums(known)
        biases: Floats = self.mean + self.user_bias[users] + self.item_bias[items]
        return biases + products(factors[places], self.item_factors[items])

    def _implicit_sums(self, users: npt.NDArray[np.integer]) -> Floats:
        """z of these users; zero for one who rated nothing."""
        sums = np.zeros((len(users), FACTORS))
        for place, user in enumerate(users.tolist()):
            if size := int(self._sizes[user]):
                rated = self._items[self._starts[user] : self._starts[user] + size]
                sums[place] = self.implicit_factors[rated].sum(axis=0) / np.sqrt(size)
        return sums

    def _descend(self, users: npt.NDArray[np.int64]) -> None:
        """Go through the ratings of these users, each in a random order, side by side."""
        rate, decay = self.options.learning_rate, self.options.factor_regularization
        sizes, starts = self._sizes[users], self._starts[users]
        orders = [start + self._rng.permutation(size) for start, size in zip(starts.tolist(), sizes, strict=True)]
        implicit, moved = self._implicit_sums(users), np.zeros((len(users), FACTORS))
        for turn in range(int(sizes.max())):
            # The users are sorted by length: those who still have a rating are the last ones.
            some = slice(int(np.searchsorted(sizes, turn, side="right")), None)
            rows = np.array([order[turn] for order in orders[some]])
            error, item = self._descend_once(users[some], rows, implicit[some])
            implicit[some] += rate * (error * item - decay * implicit[some])
            moved[some] += rate * (error * item / np.sqrt(sizes[some, None]) - decay * moved[some])
        self._move_implicit(orders, sizes, moved)

    def _descend_once(
        self, users: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], implicit: Floats
    ) -> tuple[Floats, Floats]:
        """One rating of each of these users; returns the errors, and the factors of the items before it."""
        rate, options = self.options.learning_rate, self.options
        items = self._items[rows]
        user, item = self.user_factors[users], self.item_factors[items]
        both = user + implicit
        predicted = self.mean + self.user_bias[users] + self.item_bias[items] + products(both, item)
        error = self._ratings[rows] - predicted
        self.user_bias[users] += rate * (error - options.bias_regularization * self.user_bias[users])
        np.add.at(self.item_bias, items, rate * (error - options.bias_regularization * self.item_bias[items]))
        errors = error[:, None]
        self.user_factors[users] += rate * (errors * item - options.factor_regularization * user)
        np.add.at(self.item_factors, items, rate * (errors * both - options.factor_regularization * item))
        return errors, item

    def _move_implicit(self, orders: list[npt.NDArray[np.int64]], sizes: npt.NDArray[np.int64], moved: Floats) -> None:
        """y of all rated items: shrunk once for each rating of each user who has the item, and moved as his z was."""
        items = self._items[np.concatenate(orders)]
        shrinkage = np.log1p(-self.options.learning_rate * self.options.factor_regularization)
        times = np.bincount(items, weights=np.repeat(sizes, sizes), minlength=len(self.implicit_factors))
        touched = np.unique(items)
        self.implicit_factors[touched] *= np.exp(shrinkage * times[touched])[:, None]
        add_rows(self.implicit_factors, items, np.repeat(moved, sizes, axis=0))


ENTRY = Entry(
    name="svdpp",
    title="SVD++",
    family="centralised",
    make=lambda settings: Svdpp(SvdppOptions(**settings)),
    authors={"learning_rate": 0.007, "bias_regularization": 0.005, "factor_regularization": 0.015},
    grid=tuple(
        {"learning_rate": rate, "bias_regularization": 0.005, "factor_regularization": decay}
        for rate in (0.003, 0.007)
        for decay in (0.015, 0.05, 0.15)
    ),
    note="observed ratings only, as the paper reads it",
)
