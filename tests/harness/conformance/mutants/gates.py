"""Faults of gate refreshes."""

from __future__ import annotations

import numpy as np

from lightfr_harness.server.coordinator.standing import Standing
from lightfr_harness.server.rules import CatalogueRule
from tests.harness.conformance.mutants import around, mutant

GATE = "gate"


@mutant("one-refresh-opens", "rows open after the first refresh of a pair", "gate.first-opens-nothing", GATE)
def one_refresh_opens():
    @around(CatalogueRule, "set_gate")
    def _(original, self, counts, seed, devices=0):
        original(self, counts, seed, devices)
        if self.awaits_refresh:
            self.device_counts = np.asarray(counts, np.int64)


@mutant("larger-count-decides", "a row opens when one refresh of a pair reaches the gate", "gate.opens", GATE)
def larger_count_decides():
    @around(CatalogueRule, "set_gate")
    def _(original, self, counts, seed, devices=0):
        if self.awaits_refresh:
            counts = self.first_counts = np.maximum(counts, self.first_counts)
        original(self, counts, seed, devices)


@mutant("refreshes-share-devices", "a device may be in both refreshes of a pair", "gate.apart", GATE)
def refreshes_share_devices():
    @around(Standing, "turned_away")
    def _(original, self, device, current, now):
        self.counted = frozenset()
        return original(self, device, current, now)
