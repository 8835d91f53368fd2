"""Faults of evaluation rounds, and of what a manifest says about ranking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lightfr.secagg import evaluation_blocks
from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator import accuracy, keeper, publishing, versions
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.keeper import RoundKeeper
from lightfr_harness.server.coordinator.plan import EVALUATION, TRAINING, Schedule
from lightfr_harness.server.rules.evaluation import CHANCE, Evaluated
from tests.harness.conformance.mutants import around, mutant

KIT = "evaluation"


def _with_fields(change):
    """Change what manifests say about ranking."""

    @around(versions, "about_ranking")
    def _(original, *arguments, **named):
        fields = original(*arguments, **named)
        change(fields)
        return fields


@mutant("rankings-by-chance", "the manifest tells devices to rank by chance", "manifest.rankings")
def rankings_by_chance():
    _with_fields(lambda fields: fields.update(rankings=accuracy.to_messages([CHANCE] * 4)))


@mutant("prior-in-bits", "the popularity of an item is 16 log2(1 + count)", "manifest.prior")
def prior_in_bits():
    def change(fields):
        fields["prior"].popularities[:] = [round(level / np.log(2)) for level in fields["prior"].popularities]

    _with_fields(change)


@mutant("no-candidates", "manifests have no candidates", "evaluation.candidates", KIT)
def no_candidates():
    _with_fields(lambda fields: fields.pop("candidates"))


@mutant("evaluation-called-training", "places in an evaluation are given out as in training", "evaluation.kind", KIT)
def evaluation_called_training():
    @around(Coordinator, "_assignment")
    def _(original, *arguments):
        place = original(*arguments)
        place.kind = TRAINING
        return place


@mutant("roster-of-training", "the roster of an evaluation says that it trains", "evaluation.roster", KIT)
def roster_of_training():
    @around(keeper, "RoundFacts")
    def _(original, round_id, digest, kind, *more):
        return original(round_id, digest, TRAINING, *more)


@mutant("dislikes-not-asked-for", "an evaluation has no numbers for disliked items", "evaluation.bits", KIT)
def dislikes_not_asked_for():
    def half(n_candidates, devices, noise=None):
        (hits,) = evaluation_blocks(n_candidates, devices, noise)
        return (replace(hits, count=hits.count // 2),)

    publishing.evaluation_blocks = half


@mutant("first-codes-again", "an evaluation publishes the first codes again", "evaluation.same-codes", KIT)
def first_codes_again():
    @around(RoundKeeper, "_published")
    def _(original, self, is_trained, evaluation=None):
        if evaluation is not None:
            first = manifest_pb2.Manifest.FromString(self._manifests[-1]).codes
            rows = np.frombuffer(self._publisher._read(first), np.uint8).reshape(self._rule.own_codes.shape)
            self._rule.own_codes = rows.copy()
        return original(self, is_trained, evaluation)


@mutant("evaluation-forgets", "the memory forgets in an evaluation as in training", "evaluation.training", KIT)
def evaluation_forgets():
    @around(RoundKeeper, "_published")
    def _(original, self, is_trained, evaluation=None):
        if evaluation is not None:
            self._rule.memory -= self._rule.memory >> 1
        return original(self, is_trained, evaluation)


@mutant("worst-is-chosen", "the candidate that counts least is chosen", "evaluation.choice", KIT)
def worst_is_chosen():
    @around(Evaluated, "likely_nets")
    def _(original, self, group):
        return -original(self, group)


@mutant("dislikes-count-for-it", "disliked items count as liked ones", "evaluation.dislikes", KIT)
def dislikes_count_for_it():
    @around(Evaluated, "likely_nets")
    def _(original, self, group):
        return original(replace(self, sums=np.stack([self.sums.sum(axis=1), 0 * self.sums[:, 0]], axis=1)), group)


@mutant("rankings-forgotten", "only the version of an evaluation says how to rank", "evaluation.stays", KIT)
def rankings_forgotten():
    before = []

    @around(versions, "about_ranking")
    def _(original, rule, chosen, **facts):
        told = original(rule, [] if chosen in before else chosen, **facts)
        before.append(chosen)
        return told


@mutant("evaluates-for-ever", "after the first evaluation every round is one", "evaluation.training", KIT)
def evaluates_for_ever():
    @around(Schedule, "count")
    def _(original, self, kind):
        original(self, kind)
        if kind == EVALUATION:
            self.since_evaluation = 1_000_000


@mutant("hits-are-believed", "sums of evaluations are not checked", "evaluation.implausible", KIT)
def hits_are_believed():
    accuracy.require_plausible_hits = lambda hits, survivors: None
