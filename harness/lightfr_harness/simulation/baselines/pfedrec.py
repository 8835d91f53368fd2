"""PFedRec: Zhang, Long, Zhou, Yan, Zhang, Zhang, Yang, *Dual Personalization on Federated Recommendation*, IJCAI 2023.

There is no user vector. A device has a private linear scorer w, b; all share the item table Q, started as N(0, 1):

    chance = sigmoid(w . q_i + b),  binary cross-entropy on rated items (1) and drawn unrated ones (0)

A round: the server sends Q. A device passes once over its samples in batches. In each it moves the scorer at `rate`,
then the rows of Q at rate x items x `item_rate`. It uploads how its rows have moved. The server adds the mean of all
moves over the devices that took part, which is the same as averaging their whole tables.

Where we differ:
- Negatives are drawn from everything outside train, each at most once a round. The authors draw from items that the
  user never rated, the test item excluded, and keep a table per user: see the note of the entry below.
- Users are judged with the shared table. With `tuned`, as published, each keeps the rows that it moved, which hurts
  when negatives are drawn fairly.
- Only moved rows go up. The authors send whole tables, in which the server sees by comparison which rows have moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.adam import sigmoid
from lightfr_harness.simulation.baselines.lightfr_baselines_pb2 import ItemRows, Table
from lightfr_harness.simulation.baselines.method import FACTORS, DeviceCost, Entry, Federated, Floats, Settings, Traffic
from lightfr_harness.simulation.baselines.negatives import draw_unrated, positions_by_user, rated_by_user
from lightfr_harness.simulation.baselines.tables import (
    best_unrated,
    from_rows,
    from_table,
    stored_bytes,
    to_rows,
    to_table,
)

STREAM = 67


@dataclass(frozen=True)
class PfedrecOptions:
    """rate moves the scorer; item_rate multiplies it, and the number of items, for the table; negatives per rating."""

    factors: int = FACTORS
    rate: float = 0.1
    item_rate: float = 80.0
    batch: int = 256
    negatives: int = 4
    tuned: bool = False


class PfedrecDevice:
    """One user: rated items, sorted, and a scorer that never leaves."""

    def __init__(self, rated: Index, options: PfedrecOptions, draws: np.random.Generator) -> None:
        self._rated, self._options, self._draws = rated, options, draws
        limit = options.factors**-0.5
        self.weights: Floats = draws.uniform(-limit, limit, options.factors)
        self.bias = float(draws.uniform(-limit, limit))
        self._own_items, self._own_rows = np.empty(0, np.uint32), np.empty((0, options.factors))

    def answer(self, table: Floats) -> bytes:
        """Train on the table of this round, and say how its rows have moved."""
        items, moves = self._train(table)
        self._keep(items, table[items] + moves)
        return to_rows(items, moves).SerializeToString()

    def scores(self, table: Floats, items: Index) -> Floats:
        rows = table[items]
        if self._options.tuned and len(self._own_items):
            places = np.minimum(np.searchsorted(self._own_items, items), len(self._own_items) - 1)
            own = self._own_items[places] == items
            rows[own] = self._own_rows[places[own]]
        return np.asarray(rows @ self.weights + self.bias)

    def errors(self, rows: Floats, labels: Floats) -> Floats:
        """The gradient of the mean cross-entropy by the logits."""
        return np.asarray((sigmoid(rows @ self.weights + self.bias) - labels) / len(labels))

    def _train(self, table: Floats) -> tuple[Index, Floats]:
        items, labels = self._samples(len(table))
        moves = np.empty((len(items), table.shape[1]))
        item_rate = self._options.rate * len(table) * self._options.item_rate
        for first in range(0, len(items), self._options.batch):
            batch = slice(first, first + self._options.batch)
            # An item occurs once among the samples, so its row is still as it came.
            rows = table[items[batch]]
            error = self.errors(rows, labels[batch])
            self.weights -= self._options.rate * (error @ rows)
            self.bias -= self._options.rate * float(error.sum())
            moves[batch] = -item_rate * np.outer(self.errors(rows, labels[batch]), self.weights)
        return items, moves

    def _keep(self, items: Index, rows: Floats) -> None:
        if self._options.tuned:
            order = np.argsort(items)
            self._own_items, self._own_rows = items[order], rows[order]

    def _samples(self, n_items: int) -> tuple[Index, Floats]:
        count = self._options.negatives * len(self._rated)
        unrated = draw_unrated(self._rated, n_items, count, self._draws, distinct=True)
        labels = np.repeat([1.0, 0.0], [len(self._rated), len(unrated)])
        order = self._draws.permutation(len(labels))
        return np.append(self._rated, unrated.astype(np.uint32))[order], labels[order]


class PfedrecServer:
    """The item table."""

    def __init__(self, n_items: int, factors: int, draws: np.random.Generator) -> None:
        self.table: Floats = draws.normal(size=(n_items, factors))

    def download(self) -> bytes:
        return to_table(self.table).SerializeToString()

    def learn(self, messages: list[bytes]) -> None:
        """Add the mean of all moves; a row that a device did not move counts as unmoved there."""
        self.table += mean_rows(messages, *self.table.shape)


def mean_rows(messages: list[bytes], n_items: int, columns: int) -> Floats:
    """The mean of encoded ItemRows, a missing row being zero."""
    total = np.zeros((n_items, columns))
    for message in messages:
        items, rows = from_rows(ItemRows.FromString(message))
        total[items] += rows
    return total / len(messages)


class Pfedrec(Federated):
    """PFedRec as a simulation."""

    _server: PfedrecServer
    devices: Sequence[PfedrecDevice]

    def __init__(self, options: PfedrecOptions) -> None:
        super().__init__()
        self._options = options

    def begin(self, train: Ratings, seed: int) -> None:
        self._draws = np.random.default_rng([seed, STREAM])
        self._server = PfedrecServer(train.n_items, self._options.factors, self._draws)
        self.devices = [
            PfedrecDevice(rated, self._options, np.random.default_rng([seed, STREAM, user]))
            for user, rated in enumerate(rated_by_user(train))
        ]

    def round(self, users: list[int]) -> Traffic:
        download = self._server.download()
        table = from_table(Table.FromString(download))
        answers = [self.devices[user].answer(table) for user in users]
        for user, answer in zip(users, answers, strict=True):
            self.observer(user, download, answer)
        self._server.learn(answers)
        return Traffic(len(users), len(users) * len(download), sum(map(len, answers)))

    def scores(self, users: Index, items: Index) -> Floats:
        found = np.empty(len(users))
        for user, positions in positions_by_user(users):
            found[positions] = self.devices[user].scores(self._server.table, items[positions])
        return found


def cost(n_items: int, n_ratings: int, seed: int) -> DeviceCost:
    """A round of one device, and what it stores: the table and its scorer."""
    draws = np.random.default_rng([seed, STREAM])
    rated = np.sort(draws.choice(n_items, n_ratings, replace=False)).astype(np.uint32)
    server, device = PfedrecServer(n_items, FACTORS, draws), PfedrecDevice(rated, PfedrecOptions(), draws)
    download = server.download()
    table = from_table(Table.FromString(download))
    answer = device.answer(table)
    everything = np.arange(n_items, dtype=np.uint32)
    return DeviceCost(
        stored_bytes(table, np.append(device.weights, device.bias)),
        len(download),
        len(answer),
        lambda k: best_unrated(device.scores(table, everything), rated, k),
        f"Up go the rows of rated items and of four times as many others. As published it is the whole table: "
        f"{len(download):,} bytes.",
    )


def make(settings: Settings) -> Pfedrec:
    options: dict[str, Any] = dict(settings)
    return Pfedrec(PfedrecOptions(**options))


ENTRY = Entry(
    name="pfedrec",
    title="PFedRec, fair sampler",
    family="peer",
    make=make,
    authors={"rate": 0.1, "item_rate": 80, "batch": 256, "negatives": 4},
    grid=tuple(
        {"rate": rate, "item_rate": item_rate, "batch": 256, "negatives": 4}
        for rate, item_rate in ((0.1, 80), (0.1, 160), (0.2, 40), (0.2, 80), (0.3, 20), (0.3, 40))
    ),
    cost=cost,
    authors_steps=100,
    note="Published figures of PFedRec, FedRAP and FedCA come from samplers that never draw the test item as a "
    "negative. A table kept per user then learns to push down everything but the test item, and a model without any "
    "federation scores high. They cannot be compared with figures of a fair sampler. The authors take all "
    "devices in each round; here it is the share that all methods have.",
)
