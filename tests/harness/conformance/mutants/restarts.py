"""Faults that show when a server is killed and started again."""

from __future__ import annotations

from lightfr_harness.server.coordinator.cohort_storage import Delivered, Outcome
from lightfr_harness.server.coordinator.rounds import Round
from lightfr_harness.server.coordinator.storage import Storage
from lightfr_harness.server.coordinator.stored import Stored
from tests.harness.conformance.mutants import around, mutant


@mutant("places-in-memory", "places are not stored", "restart.place", "secagg")
def places_in_memory():
    @around(Stored, "rounds")
    def _(original, self, known=None):
        self._connection.execute("DELETE FROM places")
        return original(self, known)

    # A round that ran out while the server was away would hide it.
    Round.is_late = lambda self, now: False


@mutant("uploads-in-memory", "uploads are stored when their round ends", "restart.receipt")
def uploads_in_memory():
    @around(Storage, "deliver")
    def _(original, self, *delivery):
        return self._submit(lambda connection: Delivered(Outcome.TAKEN))


@mutant("deliveries-in-memory", "what devices delivered in rounds that ended is not stored", "restart.steps", "secagg")
def deliveries_in_memory():
    @around(Stored, "rounds")
    def _(original, self, known=None):
        rounds = original(self, known)
        for one in rounds:
            if one.ended_at is not None:
                one.delivered = {phase: {} for phase in one.delivered}
        return rounds
