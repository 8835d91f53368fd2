"""FCF: federated collaborative filtering with real values (Ammad-ud-din et al., 2019).

Implicit feedback: preference p is 1 for rated items and 0 elsewhere, with confidence c = 1 + alpha r. A device solves
for its own factors x (one half of alternating least squares) and uploads a gradient for each item's factors y; the
server sums them and takes a step. Ratings and x stay on the device; what the gradients tell of them is another matter.

`unrated_weight` is the confidence of items without a rating. With 1 it is FCF as published: every item has a gradient.
With 0 only rated items have one, which is what the cost formula of the LightFR paper counts.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

FACTORS = 32
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class FcfOptions:
    """alpha scales a rating into confidence, regularization is lambda of the objective."""

    alpha: float = 4.0
    regularization: float = 1.0
    unrated_weight: float = 1.0
    learning_rate: float = 0.05


@dataclass(frozen=True)
class FcfUpload:
    """Gradients of some items. On the wire: item indices as uint32, then rows of float64; little-endian."""

    item_indices: Indices
    gradients: Floats

    def encode(self) -> bytes:
        return self.item_indices.astype("<u4").tobytes() + self.gradients.astype("<f8").tobytes()

    @classmethod
    def decode(cls, message: bytes, factors: int = FACTORS) -> FcfUpload:
        rows = len(message) // (4 + 8 * factors)
        gradients = np.frombuffer(message, "<f8", offset=4 * rows).reshape(rows, factors)
        return cls(np.frombuffer(message, "<u4", rows), gradients)


class FcfDevice:
    """One user: ratings in [0, 1] of some items, and factors that never leave."""

    def __init__(self, item_indices: Indices, ratings: Floats, options: FcfOptions) -> None:
        self._items = np.asarray(item_indices, np.uint32)
        self._confidence = 1 + options.alpha * np.asarray(ratings, np.float64)
        self._options = options
        self.user_factors: Floats = np.zeros(0)

    def fit(self, item_factors: Floats) -> None:
        """Solve (Y' C Y + lambda I) x = Y' C p; unrated items enter through Y' Y alone."""
        rated, unrated = item_factors[self._items], self._options.unrated_weight
        matrix = self._options.regularization * np.eye(item_factors.shape[1])
        matrix += (rated.T * (self._confidence - unrated)) @ rated
        if unrated:
            matrix += unrated * item_factors.T @ item_factors
        self.user_factors = np.linalg.solve(matrix, rated.T @ self._confidence).astype(np.float64)

    def upload(self, item_factors: Floats) -> FcfUpload:
        """f(u, i) = c (p - x.y) x of every item that has a weight."""
        if not self._options.unrated_weight:
            residual = self._confidence * (1 - item_factors[self._items] @ self.user_factors)
            return FcfUpload(self._items, np.outer(residual, self.user_factors))
        residual = -self._options.unrated_weight * (item_factors @ self.user_factors)
        residual[self._items] = self._confidence * (1 - item_factors[self._items] @ self.user_factors)
        return FcfUpload(np.arange(len(item_factors), dtype=np.uint32), np.outer(residual, self.user_factors))

    def recommend(self, item_factors: Floats, k: int) -> Indices:
        """The k unrated items with the largest inner products, best first."""
        scores = item_factors @ self.user_factors
        scores[self._items] = -np.inf
        best = np.argpartition(scores, len(scores) - k)[-k:]
        return best[np.argsort(-scores[best], kind="stable")].astype(np.uint32)

    def loss(self, item_factors: Floats) -> float:
        """This user's part of the objective, the regularization of item factors left out."""
        scores, unrated = item_factors @ self.user_factors, self._options.unrated_weight
        rated = scores[self._items]
        squares = self._confidence @ (1 - rated) ** 2 + unrated * (scores @ scores - rated @ rated)
        return float(squares + self._options.regularization * self.user_factors @ self.user_factors)


class FcfServer:
    """Item factors, moved by Adam as in the authors' experiments, from the sum of the uploads."""

    def __init__(self, n_items: int, options: FcfOptions, seed: int, factors: int = FACTORS) -> None:
        self.item_factors: Floats = np.random.default_rng([seed, 37]).normal(0, 0.1, (n_items, factors))
        self._options = options
        self._mean, self._square = np.zeros_like(self.item_factors), np.zeros_like(self.item_factors)
        self._steps = 0

    def step(self, messages: list[bytes]) -> None:
        """Take a round's encoded uploads."""
        gradient = 2 * self._options.regularization * self.item_factors
        for message in messages:
            upload = FcfUpload.decode(message, self.item_factors.shape[1])
            gradient[upload.item_indices] -= 2 * upload.gradients
        self._adam(gradient)

    def _adam(self, gradient: Floats) -> None:
        self._steps += 1
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.01 * (gradient**2 - self._square)
        mean, square = self._mean / (1 - 0.9**self._steps), self._square / (1 - 0.99**self._steps)
        self.item_factors -= self._options.learning_rate * mean / (np.sqrt(square) + 1e-8)


def save(folder: Path, item_factors: Floats, user_factors: Floats) -> int:
    """Write what an FCF device keeps, and return the bytes on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"items.factors": item_factors, "user.factors": user_factors}
    for name, values in files.items():
        (folder / name).write_bytes(values.astype("<f8").tobytes())
    return sum((folder / name).stat().st_size for name in files)


def fcf_bytes(n_items: int, n_ratings: int, seed: int) -> dict[str, int]:
    """What one device stores and sends in one round, counted on disk and in messages.

    It downloads all item factors, fits, and uploads the gradients of rated items, or of all.
    """
    rng = np.random.default_rng([seed, 43])
    rated = np.sort(rng.choice(n_items, n_ratings, replace=False)).astype(np.uint32)
    options = FcfOptions(unrated_weight=0.0)
    server = FcfServer(n_items, options, seed)
    device = FcfDevice(rated, rng.random(n_ratings), options)
    device.fit(server.item_factors)
    with tempfile.TemporaryDirectory() as folder:
        storage = save(Path(folder), server.item_factors, device.user_factors)
    download, upload = server.item_factors.nbytes, device.upload(server.item_factors).encode()
    published = FcfDevice(rated, np.ones(n_ratings), replace(options, unrated_weight=1.0))
    published.fit(server.item_factors)
    everything = published.upload(server.item_factors).encode()
    return {
        "storage_bytes": storage,
        "round_bytes": download + len(upload),
        "published_round_bytes": download + len(everything),
    }
