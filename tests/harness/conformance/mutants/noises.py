"""Faults of rounds with differential privacy."""

from __future__ import annotations

from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.phases import ADVERTISING
from lightfr_harness.server.rules import CatalogueRule, catalogue
from tests.harness.conformance.mutants import around, mutant

NOISE = "noise"


@mutant("clipped-weigh-one", "devices with clipped gradients weigh 1, not 20", "noise.sums", NOISE)
def clipped_weigh_one():
    catalogue.CLIPPED_WEIGHT = 1


@mutant("gradients-count-one", "an exact gradient counts as much as a ternary one", "noise.sums", NOISE)
def gradients_count_one():
    @around(CatalogueRule, "_individual")
    def _(original, self, rows):
        return original(self, rows) * self.code_bits


@mutant("weights-of-the-roster", "all of the roster weigh, not the survivors", "noise.sum-with-dropouts", NOISE)
def weights_of_the_roster():
    sizes = []

    @around(Coordinator, "_add_up_cohorts")
    def _(original, self, first, cohorts):
        sizes.append(len(first.delivered[ADVERTISING]))
        return original(self, first, cohorts)

    @around(CatalogueRule, "weighted")
    def _(original, self, sums, survivors):
        return original(self, sums, sizes[-1])
