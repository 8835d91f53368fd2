"""Methods that every table should have beside the paper's: the popularity list, iALS and EASE.

**iALS** (Hu, Koren, Volinsky, 2008) in the form of Rendle, Krichene, Zhang and Koren (2021). With P the rated pairs and
w0 the weight of a pair without a rating it minimises

    sum_P (x.y - 1)^2 + w0 sum_all (x.y)^2 + lambda (sum_u s_u |x_u|^2 + sum_i s_i |y_i|^2),
    s_u = (ratings of u + w0 n_items)^nu, s_i likewise.

One step solves for all users and then for all items, exactly. Ratings count as seen or not; their values do not enter.

**EASE** (Steck, 2019): with X the 0/1 matrix of users and items and P = (X'X + lambda I)^-1, the weights are
B = I - P diag(1 / diag P), and a user's scores are the sum of the rows of B of rated items. It is solved in one go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lightfr.errors import InvalidInputError
from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.method import FACTORS, Entry, Floats, Method
from lightfr_harness.simulation.baselines.rows import products

# EASE inverts a matrix of all items by all items: 1.2 GB at this many.
MOST_ITEMS = 12_000
SPREAD = 0.1
_USERS_AT_ONCE = 512


class Popularity(Method):
    """Everybody is shown what most users rated."""

    def begin(self, train: Ratings, seed: int) -> None:
        self._counts: Floats = train.item_counts().astype(np.float64)

    def step(self) -> None:
        """Nothing is learned."""

    def scores(self, users: Index, items: Index) -> Floats:
        return self._counts[items]


@dataclass(frozen=True)
class IalsOptions:
    """lambda, w0 and nu of the objective."""

    regularization: float
    unrated_weight: float
    exponent: float = 1.0


class Ials(Method):
    """Implicit alternating least squares."""

    def __init__(self, options: IalsOptions) -> None:
        self.options = options

    def begin(self, train: Ratings, seed: int) -> None:
        rng = np.random.default_rng([seed, 51])
        spread = SPREAD / np.sqrt(FACTORS)
        self.user_factors: Floats = rng.normal(0, spread, (train.n_users, FACTORS))
        self.item_factors: Floats = rng.normal(0, spread, (train.n_items, FACTORS))
        self._items_by_user = _lists(train.user_index, train.item_index, train.n_users)
        self._users_by_item = _lists(train.item_index, train.user_index, train.n_items)

    def step(self) -> None:
        self.user_factors = self._solved(self._items_by_user, self.item_factors)
        self.item_factors = self._solved(self._users_by_item, self.user_factors)

    def scores(self, users: Index, items: Index) -> Floats:
        return products(self.user_factors[users], self.item_factors[items])

    def _solved(self, rated: list[Index], others: Floats) -> Floats:
        """For each list of rated rows of `others`, the factors that minimise the objective."""
        options = self.options
        everything = options.unrated_weight * others.T @ others
        matrices = np.empty((len(rated), FACTORS, FACTORS))
        sums = np.empty((len(rated), FACTORS, 1))
        for place, rows in enumerate(rated):
            known = others[rows]
            matrices[place] = everything + known.T @ known
            sums[place, :, 0] = known.sum(axis=0)
        counts = np.array([len(rows) for rows in rated])
        weights = options.regularization * (counts + options.unrated_weight * len(others)) ** options.exponent
        matrices += weights[:, None, None] * np.eye(FACTORS)
        solved: Floats = np.linalg.solve(matrices, sums)[:, :, 0].astype(np.float64)
        return solved


@dataclass(frozen=True)
class EaseOptions:
    """lambda of the objective."""

    regularization: float


class Ease(Method):
    """Embarrassingly shallow autoencoder: one linear weight for each pair of items."""

    def __init__(self, options: EaseOptions) -> None:
        self.options = options

    def begin(self, train: Ratings, seed: int) -> None:
        if train.n_items > MOST_ITEMS:
            raise InvalidInputError(
                f"EASE keeps a number for each pair of items; {train.n_items:,} items are too many (at most "
                f"{MOST_ITEMS:,}). Leave it out"
            )
        rated = np.zeros((train.n_users, train.n_items))
        rated[train.user_index, train.item_index] = 1
        inverse = np.linalg.inv(rated.T @ rated + self.options.regularization * np.eye(train.n_items))
        weights: Floats = inverse / -np.diag(inverse)
        np.fill_diagonal(weights, 0)
        self.weights = weights
        self._rated = rated.astype(np.uint8)

    def step(self) -> None:
        """All is done at the beginning."""

    def scores(self, users: Index, items: Index) -> Floats:
        known, places = np.unique(users, return_inverse=True)
        scores = np.empty(len(users))
        for first in range(0, len(known), _USERS_AT_ONCE):
            block = self._rated[known[first : first + _USERS_AT_ONCE]] @ self.weights
            chosen = (places >= first) & (places < first + _USERS_AT_ONCE)
            scores[chosen] = block[places[chosen] - first, items[chosen]]
        return scores


def _lists(keys: Index, values: Index, count: int) -> list[Index]:
    """The values of each key from 0 to count - 1."""
    order = np.argsort(keys, kind="stable")
    ends = np.cumsum(np.bincount(keys, minlength=count))
    return np.split(values[order], ends[:-1])


ENTRIES = (
    Entry(
        name="popularity",
        title="popularity list",
        family="reference",
        make=lambda settings: Popularity(),
        authors={},
        grid=({},),
        authors_steps=0,
    ),
    Entry(
        name="ials",
        title="iALS",
        family="reference",
        make=lambda settings: Ials(IalsOptions(**settings)),
        # Rendle et al., MovieLens-20M.
        authors={"regularization": 0.003, "unrated_weight": 0.1},
        grid=tuple(
            {"regularization": regularization, "unrated_weight": weight}
            for weight in (0.1, 0.3)
            for regularization in (0.003, 0.01, 0.03)
        ),
        authors_steps=16,
        note="authors' constants are those of Rendle et al. (2021) for MovieLens-20M",
    ),
    Entry(
        name="ease",
        title="EASE",
        family="reference",
        make=lambda settings: Ease(EaseOptions(**settings)),
        authors={"regularization": 500},
        grid=tuple({"regularization": value} for value in (30, 60, 125, 250, 500, 1000)),
        authors_steps=0,
    ),
)
