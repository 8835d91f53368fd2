"""DDL: discrete deep learning (Zhang, Yin, Huang, Du, Yang, Lian, 2018), without content: what remains is DCF.

Users have codes b and items codes d of f bits, -1 or +1. With s = f (2 r - 1), r the rating in (0, 1],

    minimise  sum (s - b.d)^2 - 2 alpha tr(B'X) - 2 beta tr(D'Y),

where X and Y are the real matrices nearest to B and D whose columns are balanced (zero sums) and uncorrelated
(X'X = n I). One step fits all user codes bit by bit, until no bit flips, all item codes likewise, and then X and Y:

    b_k <- sign(sum over rated items (s - d_rest.b_rest) d_k + alpha X_k),   d_k likewise, with beta Y_k.

DDL adds lambda |D - F|^2, F being a network's output for the content of items. Our readers bring no content, so there
is no F, and this is discrete collaborative filtering (Zhang, Shen, Liu, He, Luan, Chua, 2016). In the authors' code
beta Y enters with the wrong sign; here it pulls the codes towards Y, as the objective says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.method import Entry, Floats, Method
from lightfr_harness.simulation.baselines.rows import products

CODE_BITS = 64
# Passes over the bits of one side; later ones hardly flip any.
MOST_PASSES = 10
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True)
class DdlOptions:
    """The weights of balance and decorrelation: of user codes, and of item codes."""

    alpha: float
    beta: float


class Ddl(Method):
    """Codes on both sides, in the hands of one party. The residual s - b.d of every rating is kept up to date."""

    def __init__(self, options: DdlOptions, code_bits: int = CODE_BITS) -> None:
        self.options, self._bits = options, code_bits

    def begin(self, train: Ratings, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 54])
        self._users, self._items = train.user_index, train.item_index
        self.user_codes = self._random_codes(train.n_users)
        self.item_codes = self._random_codes(train.n_items)
        self.user_targets: Floats = balanced(self.user_codes, self._rng)
        self.item_targets: Floats = balanced(self.item_codes, self._rng)
        self._wanted = self._bits * (2 * train.rating / train.rating_max - 1)

    def step(self) -> None:
        residual = self._wanted - self.scores(self._users, self._items)
        pull = self.options.alpha * self.user_targets
        fit_codes(self.user_codes, self.item_codes, self._users, self._items, residual, pull)
        pull = self.options.beta * self.item_targets
        fit_codes(self.item_codes, self.user_codes, self._items, self._users, residual, pull)
        self.user_targets = balanced(self.user_codes, self._rng)
        self.item_targets = balanced(self.item_codes, self._rng)

    def scores(self, users: Index, items: Index) -> Floats:
        return products(self.user_codes[users], self.item_codes[items])

    def _random_codes(self, count: int) -> Floats:
        return self._rng.choice([-1.0, 1.0], (count, self._bits))


def fit_codes(codes: Floats, others: Floats, rows: Index, other_rows: Index, residual: Floats, pull: Floats) -> None:
    """Coordinate descent over the bits of all codes of one side; the other side stays. All rows go together.

    `residual` is that of each rating before, and after it is that of the new codes.
    """
    counts = np.bincount(rows, minlength=len(codes))
    for _ in range(MOST_PASSES):
        flipped = False
        for bit in range(codes.shape[1]):
            sides = others[other_rows, bit]
            # Without this bit the residual is larger by its own part, and the part times its sign adds up to a count.
            votes = np.bincount(rows, residual * sides, len(codes)) + counts * codes[:, bit] + pull[:, bit]
            new = np.where(votes == 0, codes[:, bit], np.sign(votes))
            change = codes[:, bit] - new
            if change.any():
                flipped = True
                residual += change[rows] * sides
                codes[:, bit] = new
        if not flipped:
            return


def balanced(codes: Floats, rng: np.random.Generator) -> Floats:
    """The matrix with zero column sums and X'X = n I that has the largest tr(B'X).

    With the centred B = U S V' it is sqrt(n) U V'. U comes from the eigenvectors of B'B; where B lacks directions, U is
    filled up with random ones that are orthogonal to the others and to the vector of ones.
    """
    n, bits = codes.shape
    centred = codes - codes.mean(axis=0)
    values, right = np.linalg.eigh(centred.T @ centred)
    there = values > _NEGLIGIBLE * max(1.0, float(values[-1]))
    left = np.zeros((n, bits))
    left[:, there] = centred @ right[:, there] / np.sqrt(values[there])
    for column in np.flatnonzero(~there):
        left[:, column] = _orthogonal(left, rng)
    nearest: Floats = np.sqrt(n) * left @ right.T
    return nearest


def _orthogonal(left: Floats, rng: np.random.Generator) -> Floats:
    """A random unit vector, orthogonal to the columns and to the vector of ones; zero where there is no room."""
    vector: Floats = rng.normal(size=len(left))
    for _ in range(2):  # Twice is enough: what rounding leaves behind is gone after the second time.
        vector -= vector.mean()
        vector -= left @ (left.T @ vector)
    length = np.linalg.norm(vector)
    return vector / length if length > _NEGLIGIBLE else np.zeros_like(vector)


ENTRY = Entry(
    name="ddl",
    title="DDL without content (= DCF)",
    family="centralised",
    make=lambda settings: Ddl(DdlOptions(**settings)),
    authors={"alpha": 2e-5, "beta": 1e-4},
    grid=(
        {"alpha": 2e-5, "beta": 1e-4},
        *({"alpha": weight, "beta": weight} for weight in (1, 10, 30, 100, 300)),
    ),
    authors_steps=30,
    note="discrete collaborative filtering: the rating files have no content of items",
)
