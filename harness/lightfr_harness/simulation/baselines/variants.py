"""LightFR itself: the paper's four forms as printed, and ours, on the fleet that `lightfr-harness train` trains.

Agg_grad adds up gradients of the devices, Agg_para rows that devices have updated: `server/rules/paper.py`. `init`
cuts real-valued factors of users and items at their medians and optimises nothing. `random` has random codes on both
sides. The paper's lambda has no authors' value but a range, 0.2 to 1, whose smallest is taken; as printed its term
outweighs the data from 0.01 on, and the grid has the values that can work.

Ours have the objective `catalogue`, every rating counted as a like of the same weight, as for the other methods, and
are ranked as the fleet's own evaluation chooses, on ratings of train alone. In mode secagg the first round is really
masked, and its bytes are counted; the others add up the same sums, with their noise, without masks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lightfr.rankings import GROUPS, Ranking
from lightfr_harness.data import Candidates, ItemGroups, Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.method import Entry, Floats, Method, Settings, Traffic
from lightfr_harness.simulation.choosing import Users, evaluate, rankings_of
from lightfr_harness.simulation.judging import ways_of
from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.scoring import candidate_scores
from lightfr_harness.simulation.train import make_run
from lightfr_harness.simulation.training import TrainingRun

# More than anybody asks for: the caller counts the steps.
MOST_ROUNDS = 100_000


class LightFr(Method):
    """A fleet of devices that learn codes by rounds. The trainer decides who takes part, and counts the bytes."""

    def __init__(self, options: TrainOptions) -> None:
        self._options = options
        self.rounds: list[Traffic] = []

    def begin(self, train: Ratings, seed: int) -> None:
        if self._options.positives == "all":
            train = replace(train, rating=np.full(len(train), train.rating_max))
        self._options = replace(self._options, seed=seed, rounds=MOST_ROUNDS)
        self.run: TrainingRun = make_run(self._options, train)
        self._steps = iter(self.run)

    def step(self) -> None:
        before, after = replace(self.run.traffic), self.run.traffic
        if next(self._steps, None) is None:
            return
        if self.run.options.masked or self._options.privacy == "clear":
            devices = after.device_rounds - before.device_rounds
            down, up = after.down_bytes - before.down_bytes, after.up_bytes - before.up_bytes
            self.rounds.append(Traffic(devices, down, up))
        self.run.options = replace(self.run.options, masked=False)

    def scores(self, users: Index, items: Index) -> Floats:
        order = np.argsort(users, kind="stable")
        known, counts = np.unique(users, return_counts=True)
        pairs = Candidates(known, ItemGroups(items[order], np.concatenate([[0], np.cumsum(counts)])))
        rankings = rankings_of(self.run.server)
        by_group = self._rankings()
        devices = Users(self.run.published(), self.run.fleet, rankings, known.tolist())
        scores = np.empty(len(users))
        scores[order] = candidate_scores(devices.model, ways_of(self._options, devices, by_group), pairs)
        return scores

    def _rankings(self) -> list[Ranking]:
        """How each group of users ranks: as the options say, or as the fleet's evaluation chooses."""
        if self._options.ranking is not None:
            return [self._options.ranking] * len(GROUPS)
        return evaluate(self.run, rankings_of(self.run.server)).best()


def _paper(aggregate: str) -> Callable[[Settings], Method]:
    return lambda settings: LightFr(
        TrainOptions(objective="paper", aggregate=aggregate, regularization=settings.get("lambda", 0.0))
    )


def _entry(name: str, title: str, **fields: Any) -> Entry:
    return Entry(name=name, title=title, family="variant", **fields)


_LAMBDAS: dict[str, Any] = {
    "authors": {"lambda": 0.2},
    "grid": tuple({"lambda": value} for value in (0.0, 0.0001, 0.0003, 0.001, 0.003, 0.01)),
}
_NOTHING: dict[str, Any] = {"authors": {}, "grid": ({},)}
_AS_CHOSEN = "every rating a like; the fleet's evaluation chooses how to rank"

ENTRIES = (
    _entry("lightfr-grad", "LightFR", make=_paper("grad"), **_LAMBDAS, note="Agg_grad as printed"),
    _entry("lightfr-para", "LightFR_para", make=_paper("para"), **_LAMBDAS, note="Agg_para as printed"),
    _entry("lightfr-init", "LightFR_init", make=_paper("init"), **_NOTHING, authors_steps=0, note="medians, no rounds"),
    _entry("lightfr-random", "Random codes", make=_paper("random"), **_NOTHING, authors_steps=0),
    _entry(
        "ours-clear",
        "lightfr, 64 bits, in the clear",
        make=lambda settings: LightFr(TrainOptions(positives="all")),
        **_NOTHING,
        note=_AS_CHOSEN,
    ),
    _entry(
        "ours-secagg",
        "lightfr, 64 bits, secagg",
        make=lambda settings: LightFr(TrainOptions(positives="all", privacy="secagg")),
        **_NOTHING,
        note=f"secure sums with their noise; {_AS_CHOSEN}",
    ),
)
