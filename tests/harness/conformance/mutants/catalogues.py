"""Faults of closed items, and of a catalogue that changes."""

from __future__ import annotations

import numpy as np

from lightfr_harness.server.rules import AggregationRule, CatalogueRule
from tests.harness.conformance.mutants import around, mutant


@mutant("no-shared-row", "the row that closed items share is not published", "artifacts.shared-row")
def no_shared_row():
    AggregationRule.codes = property(lambda self: self.own_codes[self._row_is_open])


@mutant("shared-row-first", "the row that closed items share comes before the others", "artifacts.shared-row")
def shared_row_first():
    rows = AggregationRule.codes.fget
    AggregationRule.codes = property(lambda self: np.roll(rows(self), 1, axis=0))


@mutant("rows-by-index", "rows stay at their indices when items are numbered anew", "catalogue.rows-stay")
def rows_by_index():
    @around(CatalogueRule, "change_items")
    def _(original, self, old_index_of_new, *rest, **named):
        places = np.arange(len(old_index_of_new))
        original(self, np.where(places < self.n_items, places, -1), *rest, **named)


@mutant("memory-by-index", "codes go with their items, and the memory does not", "catalogue.memory-stays")
def memory_by_index():
    @around(CatalogueRule, "change_items")
    def _(original, self, *change, **named):
        before = self.memory
        original(self, *change, **named)
        rows = min(len(before), len(self.memory))
        self.memory[:rows] = before[:rows]


@mutant("joined-items-open", "items that join are open at once, with random codes", "catalogue.joined-closed")
def joined_items_open():
    @around(CatalogueRule, "change_items")
    def _(original, self, old_index_of_new, removed, counts, **named):
        original(self, old_index_of_new, removed, np.where(old_index_of_new < 0, self.gate, counts), **named)
