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


@mutant("deliveries-in-memory", "what devices deliver in the steps is not stored", "restart.steps", "secagg")
def deliveries_in_memory():
    @around(Storage, "deliver")
    def _(original, self, *delivery):
        return self._submit(lambda connection: None)

    @around(Storage, "rounds")
    def _(original, self):
        # A server that has lost what the open round was made of begins another one.
        return [one for one in original(self) if one.ended_at is not None]
