"""CoLR: Nguyen et al., *Towards Efficient Communication and Secure Federated Recommendation System via Low-rank
Training*, WWW 2024. Here it is the compressed form of PFedRec; the authors compress a federated matrix factorisation.

In round t the item table Q (items x factors) may move only in the few directions of B_t, which is `rank` x factors:

    Q <- Q + mean(A_u) B_t

B_t is random, and everybody draws it from the seed and the number of the round, so it is never sent. Its rows are
orthogonal and of length sqrt(factors / rank), so that the expected step is the one without compression. A device
starts from A_u = 0, and since it meets each item once, its A_u is PFedRec's move times the transpose of B_t. It uploads
the rows of A_u that it touched. Down comes the mean A of each round since the device last took part; a new device
gets the whole table instead, and so does one that was away for so long that the table is shorter.

Where we differ from the authors: they divide the sum of a row by how many devices moved it, and the whole A_u goes
up, in encrypted form. `pfedrec.py` says what else holds here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lightfr_harness.data import Ratings
from lightfr_harness.simulation.baselines.method import DeviceCost, Entry, Floats, Settings, Traffic
from lightfr_harness.simulation.baselines.negatives import rated_by_user
from lightfr_harness.simulation.baselines.pfedrec import (
    Pfedrec,
    PfedrecDevice,
    PfedrecOptions,
    PfedrecServer,
    mean_rows,
)
from lightfr_harness.simulation.baselines.tables import best_unrated, from_table, stored_bytes, to_rows, to_table

STREAM = 71


@dataclass(frozen=True)
class ColrOptions(PfedrecOptions):
    """rank is how many directions the table may move in in one round."""

    rank: int = 2


def basis(seed: int, round_number: int, rank: int, factors: int) -> Floats:
    """B of a round."""
    drawn = np.random.default_rng([seed, STREAM, round_number]).normal(size=(factors, rank))
    return np.asarray(np.linalg.qr(drawn)[0].T * np.sqrt(factors / rank))


class ColrDevice(PfedrecDevice):
    """One user, and how many rounds the table on the device has gone through; None: it has no table."""

    rounds_seen: int | None = None

    def compressed_answer(self, table: Floats, directions: Floats) -> bytes:
        """Train on the table of this round, and say how its rows have moved in the directions of the round."""
        items, moves = self._train(table)
        steps = moves @ directions.T
        self._keep(items, table[items] + steps @ directions)
        return to_rows(items, steps).SerializeToString()


class ColrServer(PfedrecServer):
    """The item table, and the mean A of every round, encoded."""

    def __init__(self, n_items: int, options: ColrOptions, seed: int, draws: np.random.Generator) -> None:
        super().__init__(n_items, options.factors, draws)
        self._rank, self._seed = options.rank, seed
        self.steps: list[bytes] = []

    def directions(self) -> Floats:
        """B of the round to come."""
        return basis(self._seed, len(self.steps), self._rank, self.table.shape[1])

    def catch_up(self, rounds_seen: int | None) -> list[bytes]:
        """What a device needs to have the table of now: the steps that it missed, or the table if that is shorter."""
        missed = [] if rounds_seen is None else self.steps[rounds_seen:]
        if rounds_seen is None or len(missed) * self._rank > self.table.shape[1]:
            return [self.download()]
        return missed

    def learn(self, messages: list[bytes]) -> None:
        step = to_table(mean_rows(messages, len(self.table), self._rank))
        self.table += from_table(step) @ self.directions()
        self.steps.append(step.SerializeToString())


class Colr(Pfedrec):
    """CoLR as a simulation. Devices that have caught up have the same table, so one is kept for all."""

    _server: ColrServer
    devices: Sequence[ColrDevice]

    def __init__(self, options: ColrOptions) -> None:
        super().__init__(options)
        self._colr_options = options

    def begin(self, train: Ratings, seed: int) -> None:
        self._draws = np.random.default_rng([seed, STREAM])
        self._server = ColrServer(train.n_items, self._colr_options, seed, self._draws)
        self.devices = [
            ColrDevice(rated, self._options, np.random.default_rng([seed, STREAM, 0, user]))
            for user, rated in enumerate(rated_by_user(train))
        ]

    def round(self, users: list[int]) -> Traffic:
        directions, now = self._server.directions(), len(self._server.steps)
        down, answers = 0, []
        for user in users:
            device = self.devices[user]
            download = b"".join(self._server.catch_up(device.rounds_seen))
            device.rounds_seen = now
            answers.append(device.compressed_answer(self._server.table, directions))
            self.observer(user, download, answers[-1])
            down += len(download)
        self._server.learn(answers)
        return Traffic(len(users), down, sum(map(len, answers)))


def cost(n_items: int, n_ratings: int, seed: int) -> DeviceCost:
    """The second round of a device that took part in the first."""
    draws, options = np.random.default_rng([seed, STREAM]), ColrOptions()
    rated = np.sort(draws.choice(n_items, n_ratings, replace=False)).astype(np.uint32)
    server, device = ColrServer(n_items, options, seed, draws), ColrDevice(rated, options, draws)
    server.learn([device.compressed_answer(server.table, server.directions())])
    down = sum(map(len, server.catch_up(0)))
    answer = device.compressed_answer(server.table, server.directions())
    everything = np.arange(n_items, dtype=np.uint32)
    return DeviceCost(
        stored_bytes(server.table, np.append(device.weights, device.bias)),
        down,
        len(answer),
        lambda k: best_unrated(device.scores(server.table, everything), rated, k),
        f"The payload of a step is {options.rank / options.factors:.2%} of PFedRec's: rank {options.rank} of "
        f"{options.factors} factors. This is for one missed step; whoever misses more downloads more, "
        f"up to the whole table of {len(server.download()):,} bytes, which new devices download too.",
    )


def make(settings: Settings) -> Colr:
    options: dict[str, Any] = dict(settings)
    return Colr(ColrOptions(**options))


ENTRY = Entry(
    name="colr",
    title="CoLR on PFedRec",
    family="peer",
    make=make,
    # Rank 2 of 32 is the share of 6.25 % of which the authors speak; the rest is PFedRec's, which it compresses here.
    authors={"rank": 2, "rate": 0.1, "item_rate": 80, "batch": 256, "negatives": 4},
    grid=tuple(
        {"rank": rank, "rate": 0.1, "item_rate": item_rate, "batch": 256, "negatives": 4}
        for rank in (2, 8)
        for item_rate in (40, 80, 160)
    ),
    cost=cost,
    authors_steps=100,
    note="The authors compress a federated matrix factorisation of 64 factors; here it is PFedRec, see its note. Their "
    "own sampler draws no candidate of the test as a negative, neither the positive nor the others.",
)
