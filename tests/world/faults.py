"""Faults that are put into a world on purpose, to show that the world finds such faults.

Each is a subclass of the shipped code that a world uses in its place; nothing else knows of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lightfr import kept_rounds
from lightfr._wire import secure
from lightfr.rounds import ClearRound
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.cohort_storage import Delivered, Outcome
from lightfr_harness.server.coordinator.deliveries import _KEEP
from lightfr_harness.server.coordinator.storage import Storage
from tests.world.servers import WatchedCoordinator, WatchedReplica

if TYPE_CHECKING:
    from tests.world.world import World


def _promised(result: Any) -> asyncio.Future[Any]:
    future = asyncio.get_running_loop().create_future()
    future.set_result(result)
    return future


class HastyStorage(Storage):
    """Says that a delivery is stored before it is."""

    def deliver(self, *delivery: Any, **named: Any) -> asyncio.Future[Delivered]:
        super().deliver(*delivery, **named)
        return _promised(Delivered(Outcome.TAKEN))


class TwiceCohort(Cohort):
    """Counts an upload again that came twice."""

    def keep(self, phase: int, device: str, digest: bytes, checked: Any) -> None:
        self.taken[phase].add(device)
        _KEEP[phase](self, device, checked)
        self.delivered[phase][device] = digest


class HastyDriver(kept_rounds.Driver):
    """Sends a message before it is in the store: after a crash the device makes another one."""

    def _walk(self, current: Any) -> bool:
        self._send(current)
        if isinstance(current, ClearRound):
            return True
        ends = time.monotonic() + 2 * current.deadline_seconds
        while not isinstance(step := secure.next_step(self.channel, current.round_id), secure.Done):
            if time.monotonic() > ends or self.stop.is_set():
                return False
            if isinstance(step, secure.Wait):
                self.stop.wait(step.seconds)
            else:
                current.answer(step, self.make_vector)
                self._send(current)
                self.store.update({**current.values(), **self.spend(current)})
        return True


class _Silent:
    """Wakes nobody who waits for a step."""

    async def start(self) -> None:
        self.steps.wake = lambda: None
        await super().start()


class SilentCoordinator(_Silent, WatchedCoordinator):
    """One coordinator."""


class SilentReplica(_Silent, WatchedReplica):
    """One of several."""


def _acknowledges_before_it_stores(world: World) -> None:
    world.storage_class = HastyStorage


def _counts_twice(world: World) -> None:
    def gathered(a_round: Any) -> None:
        if a_round.cohort is not None:
            a_round.cohort.__class__ = TwiceCohort

    world.gathered = gathered


def _sends_before_it_stores(world: World) -> None:
    kept_rounds.Driver = HastyDriver


def _wakes_nobody(world: World) -> None:
    world.coordinator_class, world.replica_class = SilentCoordinator, SilentReplica


PLANTED: dict[str | None, Callable[[World], None]] = {
    "acknowledges-before-it-stores": _acknowledges_before_it_stores,
    "counts-twice": _counts_twice,
    "sends-before-it-stores": _sends_before_it_stores,
    "wakes-nobody": _wakes_nobody,
}
