"""How a simulated fleet ranks: its evaluation rounds choose, as those of a real one do, and never see test data."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lightfr import UserCode
from lightfr.rankings import RankBy, Ranking, Rankings, group_of
from lightfr.training import PublishedModel
from lightfr_harness.server.rules import AggregationRule
from lightfr_harness.server.rules.evaluation import Evaluated, candidates_for, variance_of
from lightfr_harness.server.rules.popularity import prior_of
from lightfr_harness.simulation.asking import Evaluation, ModelBytes
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.options import EVALUATIONS
from lightfr_harness.simulation.scoring import Scores, Way
from lightfr_harness.simulation.training import TrainingRun

_DIGEST_BYTES = 32


def rankings_of(server: AggregationRule) -> Rankings:
    """What a manifest of this server says before an evaluation: the prior of its counts, and the candidates.

    Counts that somebody gave are told whole; of those that devices summed, only what is from the gate on.
    """
    by_devices = getattr(server, "counted_devices", 0) > 0
    prior = prior_of(server.device_counts, max(1, server.gate) if by_devices else 1)
    steps = tuple(zip(prior.first_items, prior.popularities, strict=True)) if prior else ()
    return Rankings(steps, (), tuple(candidates_for(server.code_bits, has_counts=prior is not None)))


def evaluate(run: TrainingRun, rankings: Rankings) -> Evaluated:
    """Let cohorts, drawn as those of training, say how well each candidate ranks.

    Each device computes what a real one would, noise included. The sums are those that masks would have given.
    """
    first, *others = (_evaluation(run, rankings, run.finished_rounds + index) for index in range(EVALUATIONS))
    for other in others:
        first = first.plus(other)
    return first


def _evaluation(run: TrainingRun, rankings: Rankings, round_index: int) -> Evaluated:
    users, model = run.cohort(round_index), ModelBytes.of(run.server)
    digest = run.random(round_index, 7).bytes(_DIGEST_BYTES)
    staying = users[~run.drops(round_index)]
    question = Evaluation(model, run.options.seed, round_index, len(users), rankings, digest)
    hits = run.fleet.ask(question, staying).sums["hits"].astype(np.int64)
    return Evaluated.of(list(rankings.candidates), hits, variance_of(run.server.noise, len(staying)))


class Users:
    """Some devices of a fleet with one model: how each scores items by any ranking. Fits are made once."""

    def __init__(self, model: PublishedModel, fleet: Fleet, rankings: Rankings, users: Iterable[int]) -> None:
        self.model, self._rankings = model, rankings
        self.devices = {user: fleet.devices[user] for user in users}
        self._codes: dict[tuple[int, bool], dict[int, UserCode]] = {}

    def ways(self, ranking: Ranking) -> dict[int, Way]:
        """Every user by this ranking."""
        offsets = self._offsets(ranking)
        if ranking.by == RankBy.POPULARITY:
            return dict.fromkeys(self.devices, Way(None, offsets))
        key = ranking.recency, ranking.refine
        if key not in self._codes:
            self._codes[key] = {user: device.code_for_use(self.model, ranking) for user, device in self.devices.items()}
        return {user: Way(code, offsets) for user, code in self._codes[key].items()}

    def chosen_ways(self, by_group: list[Ranking]) -> dict[int, Way]:
        """Every user by the ranking of its group."""
        ways = {ranking: self.ways(ranking) for ranking in set(by_group)}
        return {user: ways[by_group[group_of(len(device.interactions))]][user] for user, device in self.devices.items()}

    def _offsets(self, ranking: Ranking) -> Scores | None:
        """What each row has on top. The popularity list goes by the steps of the prior; without one, by the row."""
        if ranking.by == RankBy.POPULARITY:
            steps = self._rankings.popularities
            if not steps:
                return -np.arange(self.model.n_items)
        else:
            prior = self._rankings.prior(ranking, self.model.code_bits)
            if prior is None:
                return None
            steps = prior.steps
        firsts, values = (np.array(column, np.int64) for column in zip(*steps, strict=True))
        return np.repeat(values, np.diff(firsts, append=self.model.n_items))
