"""What methods with one shared table of item factors have in common: their rounds and their scores.

The server sends the table to every device of a round, each answers with rows of items, and the server learns from
them. A device keeps its ratings and its user factors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.method import Federated, Floats, Traffic
from lightfr_harness.simulation.baselines.tables import decode_table


def histories(train: Ratings) -> list[tuple[Index, Floats]]:
    """The items and ratings of each user, oldest first."""
    order = train.chronological_order()
    ends = np.cumsum(np.bincount(train.user_index, minlength=train.n_users))[:-1]
    items, ratings = np.split(train.item_index[order], ends), np.split(train.rating[order], ends)
    return list(zip(items, ratings, strict=True))


def a_users_ratings(n_items: int, n_ratings: int, rng: np.random.Generator) -> tuple[Index, Floats]:
    """Made-up ratings of 1 to 5, for measuring what one device pays."""
    items = np.sort(rng.choice(n_items, n_ratings, replace=False)).astype(np.uint32)
    return items, rng.integers(1, 6, n_ratings).astype(np.float64)


class Server(ABC):
    """Has the item table and never sees a rating."""

    @abstractmethod
    def download(self) -> bytes:
        """The encoded item table."""

    @abstractmethod
    def receive(self, upload: bytes) -> None:
        """Take one device's encoded answer."""

    @abstractmethod
    def step(self) -> None:
        """Learn from all answers of the round."""


class Device(ABC):
    """One user: ratings and factors that never leave."""

    @abstractmethod
    def answer(self, item_factors: Floats, number: int) -> bytes:
        """Learn from the table, and encode what goes up. `number` is that of the round, from 0, and public."""

    @abstractmethod
    def factors(self, item_factors: Floats) -> Floats:
        """The user factors to recommend with; nothing is sent."""


class ItemFactorMethod(Federated):
    """One server, one device for each user. A score is the inner product of user factors and item factors."""

    server: Server
    devices: Sequence[Device]

    def opened(self, download: bytes) -> Floats:
        """What a device reads from the download: the same for everybody, so it is read once a round."""
        return decode_table(download)

    def round(self, users: list[int]) -> Traffic:
        download, up_bytes = self.server.download(), 0
        item_factors = self.opened(download)
        for user in users:
            upload = self.devices[user].answer(item_factors, len(self.rounds))
            self.observer(user, download, upload)
            up_bytes += len(upload)
            self.server.receive(upload)
        self.server.step()
        return Traffic(len(users), len(users) * len(download), up_bytes)

    def scores(self, users: Index, items: Index) -> Floats:
        item_factors = self.opened(self.server.download())
        asked, position = np.unique(users, return_inverse=True)
        user_factors = np.array([self.devices[user].factors(item_factors) for user in asked.tolist()])
        products: npt.NDArray[np.float64] = np.einsum("kf,kf->k", user_factors[position], item_factors[items])
        return products
