"""Faults that show when a server is killed and started again."""

from __future__ import annotations

from lightfr_harness.server.coordinator.storage import Storage
from tests.harness.conformance.mutants import around, mutant


@mutant("places-in-memory", "places are not stored", "restart.place")
def places_in_memory():
    @around(Storage, "open_round")
    def _(original, self, opened):
        return self._submit(lambda connection: None)

    @around(Storage, "rounds")
    def _(original, self):
        rounds = original(self)
        rounds[-1].round_id = bytes(16)
        return rounds


@mutant("uploads-in-memory", "uploads are stored when their round ends", "restart.receipt")
def uploads_in_memory():
    @around(Storage, "add_upload")
    def _(original, self, *upload):
        return self._submit(lambda connection: None)


@mutant("deliveries-in-memory", "what devices delivered in rounds that ended is not stored", "restart.steps", "secagg")
def deliveries_in_memory():
    @around(Storage, "rounds")
    def _(original, self):
        rounds = original(self)
        for one in rounds:
            if one.ended_at is not None:
                one.delivered = {phase: {} for phase in one.delivered}
        return rounds
