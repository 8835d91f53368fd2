"""The programs of the operator: coordinators, on SQLite or as replicas, and the authority that renews and revokes."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from lightfr_harness.server.authority import Authority
from lightfr_harness.server.authority.credentials import Credentials
from lightfr_harness.server.authority.service import EnrollmentService
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.database import RoundEndedError, StorageUnavailableError
from lightfr_harness.server.coordinator.limits import FOR_DEVICES, FOR_NEWCOMERS
from lightfr_harness.server.coordinator.replica import Replica
from lightfr_harness.server.coordinator.service import CoordinatorService
from lightfr_harness.server.coordinator.storage import Storage
from lightfr_harness.server.coordinator.telemetry import Log, Metrics
from lightfr_harness.server.coordinator.web import KEEP_ALIVE_SECONDS, LINGERING_SECONDS, HttpService
from tests.world.clock import Host, Killed, WorldLoop
from tests.world.disk import SharedDatabase, WorldDatabase
from tests.world.network import Listener, utc_of
from tests.world.system import SYSTEM

if TYPE_CHECKING:
    from tests.world.world import World

COORDINATOR, AUTHORITY = "coordinator.world", "authority.world"
# Counters cost more to make than a world to run, and nothing depends on them.
_METRICS = Metrics()


class WatchedLog(Log):
    """Tells the world what a coordinator says of itself."""

    def __init__(self, world: World, host: Host) -> None:
        super().__init__()
        self._world, self._host = world, host

    def event(self, name: str, **facts: object) -> None:
        self._world.watch.logged(self._host, name, facts)


class Watched:
    """Methods for the world's coordinators: their storage is the world's, and the watch sees what they add up."""

    world: World
    host: Host

    def _open_storage(self, folder: Path, database: str, crash_point: Callable[[str], None]) -> Storage:
        if database:
            return self.world.storage_class(SharedDatabase(self.world, self.host, Path(database), lambda: self.wake()))
        path = folder / "coordinator.sqlite"
        made = WorldDatabase(self.world, self.host, path, self._storage_failed, crash_point)
        return self.world.storage_class(made)

    def _add_up(self, current: Any, bodies: list[bytes]) -> Any:
        before = self.world.watch.copied(self._rule)
        added = super()._add_up(current, bodies)
        self.world.watch.added_in_the_clear(self, current, bodies, before)
        return added

    def _add_up_cohorts(self, first: Any, cohorts: list[Any]) -> Any:
        before = self.world.watch.copied(self._rule)
        self.world.watch.summed([one for one in self.book.cohorts if one.is_summed], cohorts)
        added = super()._add_up_cohorts(first, cohorts)
        self.world.watch.added_in_secret(self, first, cohorts, before)
        return added

    def _gather(self, a_round: Any, version: Any) -> None:
        super()._gather(a_round, version)
        self.world.gathered(a_round)


class WatchedCoordinator(Watched, Coordinator):
    """One coordinator."""


class WatchedReplica(Watched, Replica):
    """One of several."""


class CoordinatorProgram:
    """A coordinator from start to death, and again, on one folder."""

    def __init__(self, world: World, name: str, folder: Path, database: str) -> None:
        self._world, self._name, self._folder = world, name, folder
        self._database = database
        self._offset = 0.0
        self.host = Host(name)
        self.host.is_alive = False
        self.coordinator: Any = None
        self.loop: WorldLoop | None = None
        # Programs that are dead, so that nothing of theirs is finalised before the world is over.
        self.graveyard: list[Any] = []

    def start(self) -> None:
        """Start the program anew, as a supervisor does."""
        if self.host.is_alive or self._world.is_over:
            return
        self.host = Host(self._name)
        self.host.clock_offset = self._offset
        self.loop = WorldLoop(self._world.clock, self.host, SYSTEM.enter, self._world.weather.work_seconds)
        self._world.note("coordinator_started", self._name)
        self.loop.step(self._begin)

    def step_clock(self, seconds: float) -> None:
        self._offset += seconds
        self.host.clock_offset = self._offset

    def _begin(self) -> None:
        assert self.loop is not None
        self.loop.create_task(self._main(self.host, self.loop))

    async def _main(self, host: Host, loop: WorldLoop) -> None:
        try:
            await self._serve(host, loop)
        except Killed:
            raise
        except Exception as error:
            is_away = isinstance(error, StorageUnavailableError) and not isinstance(error, RoundEndedError)
            if not (host.was_refused or is_away):
                self._world.fail(f"the coordinator {self._name} cannot start or go on", error)
            self.kill("it gave up")

    async def _serve(self, host: Host, loop: WorldLoop) -> None:
        world = self._world
        kind = world.replica_class if self._database else world.coordinator_class
        made = kind.__new__(kind)
        made.world, made.host = world, host
        self.coordinator = made
        log, forecast = WatchedLog(world, host), world.forecast
        credentials = Credentials(world.authority.folder / "coordinator", now=utc_of(lambda: host))
        made.__init__(
            self._folder, forecast.items, forecast.settings, forecast.plan, credentials, log, metrics=_METRICS,
            crash_point=self._crash_point, database=self._database,
        )  # fmt: skip
        self.credentials = credentials
        await made.start()
        world.watch.restarted(made)
        running = loop.create_task(made.run())
        service = world.watch.service(host, CoordinatorService(made))

        def device_of(certificate: Any) -> str | None:
            return world.watch.let_in(credentials.device_of(certificate))

        devices = HttpService(service, device_of, _METRICS, log, FOR_DEVICES)
        runner = await served(devices.application(made.artifacts, made.have_artifact, made.artifact_kind))
        self._parts = devices, runner, running
        world.network.listeners.setdefault(COORDINATOR, []).append(Listener(host, loop, credentials, runner.server))
        await made.failed.wait()
        self.kill("its storage failed")

    def _crash_point(self, step: str) -> None:
        if self._world.forecast.has_hostile_coordinator:
            return  # What a liar has stored does not fit together: it could not go on, which says nothing.
        fate = self._world.weather.fate_of_step()
        if fate == "kill":
            self.kill(f"when {step}")
            raise Killed
        if fate == "full":
            self.host.was_refused = True
            self._world.note("disk_full", self._name)
            if step.startswith("transaction"):
                raise sqlite3.OperationalError("database or disk is full")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def kill(self, why: str) -> None:
        """End it without a word; a supervisor starts it again."""
        if not self.host.is_alive:
            return
        self.host.is_alive = False
        self._world.note("coordinator_ended" if self._world.is_over else "coordinator_killed", f"{self._name} {why}")
        self._bury()
        self._world.clock.after(self._world.weather.restart_seconds(), self.start)

    def stop(self) -> None:
        """End it in order, as SIGTERM does."""
        if self.host.is_alive and self.loop is not None and hasattr(self, "_parts"):
            self._world.note("coordinator_stopped", self._name)
            self.loop.step(lambda: self.loop and self.loop.create_task(self._stop(self.host)))

    async def _stop(self, host: Host) -> None:
        devices, runner, running = self._parts
        devices.is_closing = True
        self.coordinator.steps.wake()
        for found in self._world.network.listeners.values():
            found[:] = [one for one in found if one.host is not host]
        await runner.cleanup()
        running.cancel()
        await asyncio.sleep(0)
        await self.coordinator.close()
        self.kill("in order")

    def _bury(self) -> None:
        self._world.network.drop(self.host)
        dead, self.coordinator = self.coordinator, None
        self.graveyard.append((dead, self.loop))
        storage, lock = getattr(dead, "_storage", None), getattr(dead, "_lock", None)
        if storage is not None:
            storage.database.drop()
        if lock is not None:
            lock.close()


async def served(application: web.Application) -> web.AppRunner:
    """Make an application ready for connections, as `web.listen` of the shipped code does."""
    runner = web.AppRunner(
        application, access_log=None, keepalive_timeout=KEEP_ALIVE_SECONDS, lingering_time=LINGERING_SECONDS,
        auto_decompress=False, shutdown_timeout=1.0,
    )  # fmt: skip
    await runner.setup()
    return runner


class AuthorityProgram:
    """The authority's own server. It is not killed: the SDK's renewals are, at any byte and any file operation."""

    def __init__(self, world: World, folder: Path) -> None:
        self.folder, self._world = folder, world
        self.host = Host("authority")
        self.authority = Authority(folder, now=utc_of(lambda: self.host))
        self._admission = self.authority.admission()
        loop = self._loop = WorldLoop(world.clock, self.host, SYSTEM.enter, world.weather.work_seconds)
        loop.step(lambda: loop.create_task(self._serve()))

    async def _serve(self) -> None:
        service = HttpService(
            EnrollmentService(self.authority), lambda peer: self._admission.device_of(peer) or "", _METRICS,
            WatchedLog(self._world, self.host), FOR_NEWCOMERS,
        )  # fmt: skip
        runner = await served(service.application())
        self._world.network.listeners[AUTHORITY] = [Listener(self.host, self._loop, self._admission, runner.server)]

    def revoke(self, device_id: str) -> None:
        """Take a name back; servers see it within half a second, as `keep_fresh` has it."""
        self.authority.revoke(device_id)
        self._world.note("revoked", device_id)
        self._world.clock.after(0.5 * self._world.weather.random(), self.refresh)

    def refresh(self) -> None:
        self._admission.refresh()
        for program in self._world.coordinators:
            if program.host.is_alive and program.coordinator is not None and hasattr(program, "credentials"):
                program.credentials.refresh()

    def close(self) -> None:
        self.authority.close()
