"""One seed, one world: all of it, from the first boot through the storm to the calm in which everybody must be well."""

from __future__ import annotations

import gc
import hashlib
import math
import random
import shutil
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightfr_harness.server.coordinator.storage import Storage
from tests.world.clock import Clock, Host, Program
from tests.world.devices import DeviceProgram
from tests.world.disk import DeviceDisk, SharedDatabase
from tests.world.hostile import Secrets, lie_in, lying_cohort
from tests.world.identities import Identities
from tests.world.invariants import Watch
from tests.world.network import Network
from tests.world.servers import AuthorityProgram, CoordinatorProgram, WatchedCoordinator, WatchedReplica
from tests.world.system import SYSTEM
from tests.world.weather import Forecast, Weather

# After the storm everybody must have taken part again within so many seconds, and more in a large world.
_PATIENCE_SECONDS = 1800.0
# Under a coordinator that lies nobody can; so long it may try.
_SECONDS_WITH_A_LIAR = 300.0
_SECONDS_BETWEEN_KILLS = 150.0
# A server knows of a revocation half a second after the authority.
_REVOKING_SECONDS = 0.6
# How often a coordinator looks by itself whether something is due, alone and as a replica. Half a second, as shipped,
# would be most of what a world does; and with one coordinator it would hide a waiter whom nobody wakes.
_LOOK_SECONDS = (3600.0, 5.0)


@dataclass
class Result:
    """How a world went."""

    seed: int
    failures: list[str] = field(default_factory=list)
    # Of all that happened, in order: the same seed gives the same.
    digest: str = ""
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def rounds(self) -> int:
        return self.counts["round_finished"] + self.counts["round_abandoned"]


class World:
    """All programs of one world."""

    def __init__(self, seed: int, identities: Identities, plant: Any = None, trace: bool = False) -> None:
        """`plant` puts a fault into the world, for tests of the world itself; see faults.py."""
        self.forecast, self.clock = Forecast.of(seed), Clock()
        self.weather = Weather(self.forecast)
        self._events, self._trace = hashlib.sha256(), trace
        self.result = Result(seed)
        self.is_over = False
        SYSTEM.begin(self, self.clock, seed, _LOOK_SECONDS[self.forecast.replicas > 0])
        self.folder = Path(tempfile.mkdtemp(prefix="world-"))
        self.storage_class: type[Storage] = Storage
        self.coordinator_class: type[Any] = WatchedCoordinator
        self.replica_class: type[Any] = WatchedReplica
        self.watch, self.network = Watch(self), Network(self)
        self.disks: dict[Host, DeviceDisk] = {}
        self.sharing: list[SharedDatabase] = []
        # Steps in which hostile devices lie, by the names of their hosts.
        self.lies: dict[str, dict[str, Any]] = {}
        self.secrets = Secrets()
        self.lying_cohorts: list[Any] = []
        self._uploads: dict[tuple[bytes, str], bytes] = {}
        self._devices: dict[str, DeviceProgram] = {}
        self._identities = identities
        # When the storm ended, and how many rounds had finished by then.
        self._calm_at, self._rounds_before = 0.0, math.inf
        if plant is not None:
            plant(self)

    # What programs ask for.

    def program_of(self, host: Host) -> Program:
        return self._devices[host.name].program

    def device_of(self, host: Host) -> DeviceProgram:
        return self._devices[host.name]

    def is_revoked(self, device_id: str) -> bool:
        """Whether every server must know by now that a device is revoked."""
        return any(
            device.device_id == device_id and self.clock.now > device.revoked_at + _REVOKING_SECONDS
            for device in self._devices.values()
        )

    def note(self, what: str, about: str) -> None:
        """Something happened."""
        self.result.counts[what] += 1
        line = f"{self.clock.now:.6f} {what} {about}\n"
        self._events.update(line.encode())
        if self._trace:
            print(line, end="")

    def fail(self, why: str, error: BaseException | None = None) -> None:
        """Something happened that must not."""
        about = f": {type(error).__name__}: {error}" if error is not None else ""
        if error is not None and self._trace:
            traceback.print_exception(error)
        self.note("failure", why)
        self.clock.stop()
        self.result.failures.append(f"after {self.clock.now:.3f} s: {why}{about}")

    def boot(self, device: DeviceProgram, disk: DeviceDisk) -> None:
        self.disks[device.host] = disk
        self.watch.boots(device)
        self.note("device_started", str(device.number))

    def kill_device(self, host: Host, why: str) -> None:
        self._devices[host.name].kill(why, loses_power=self.forecast.loses_power)

    def kill_coordinator(self, host: Host, why: str) -> None:
        next(one for one in self.coordinators if one.host is host).kill(why)

    def rest_seconds(self, device: DeviceProgram) -> float:
        """How long an app waits after an offer; who has taken part since the storm lets the others go first."""
        is_done = device.took_part_at >= self._calm_at
        return self.weather.uniform(20.0, 90.0) if is_done else self.weather.uniform(0.1, 15.0)

    def gathered(self, a_round: Any) -> None:
        """A round has got its cohort; that of a hostile coordinator lies."""
        if self.forecast.has_hostile_coordinator and a_round.cohort is not None:
            a_round.cohort = lying_cohort(self, a_round.cohort)
            a_round.delivered = a_round.cohort.delivered

    def uploads_of(self, one: Any) -> list[bytes]:
        """The bodies of a round's receipts, as they arrived."""
        kept = self.watch.uploads.get(one.round_id, {})
        return [kept[receipt.request_sha256] for receipt in one.receipts.values() if receipt.request_sha256 in kept]

    # From the beginning to the end.

    def run(self) -> Result:
        gc.disable()
        try:
            self._set_up()
            self.clock.run(self.forecast.storm_seconds)
            if not self.result.failures:
                self._calm_down()
                self.clock.run(self._calm_at + self._patience())
            if not self.result.failures:
                self._check_end()
        except Exception as error:
            if self._trace:
                traceback.print_exc()
            self.fail("the world itself failed", error)
        finally:
            self._tear_down()
        self.result.digest, self.result.seconds = self._events.hexdigest()[:16], self.clock.now
        self.result.counts.update(self.watch.counts)
        return self.result

    def _patience(self) -> float:
        if self.forecast.has_hostile_coordinator:
            return _SECONDS_WITH_A_LIAR
        return _PATIENCE_SECONDS + 60.0 * self.forecast.n_devices

    def _set_up(self) -> None:
        forecast = self.forecast
        self.trust = (self._identities.folder / "trust.pem").read_bytes()
        identities = [self._identities.of(self._age_of(number), number) for number in range(forecast.n_devices)]
        self.authority = AuthorityProgram(self, self._identities.copy_to(self.folder / "authority"))
        place = self.folder / "coordinator"
        self.database = place / ("shared.sqlite" if forecast.replicas else "coordinator.sqlite")
        place.mkdir()
        if forecast.replicas:
            self.coordinators = [
                CoordinatorProgram(self, f"replica {number}", place / str(number), str(self.database))
                for number in range(forecast.replicas)
            ]
        else:
            self.coordinators = [CoordinatorProgram(self, "coordinator", place, "")]
        for number, (device_id, identity) in enumerate(identities):
            self._add_device(number, device_id, identity)
        for program in self.coordinators:
            self.clock.after(self.weather.random(), program.start)
        if forecast.strength:
            self._plan_storm()

    def _age_of(self, number: int) -> str:
        if number >= self.forecast.n_ageing:
            return "young"
        return "due" if number else "ending"

    def _add_device(self, number: int, device_id: str, identity: bytes) -> None:
        device = DeviceProgram(self, number, self.folder / f"device-{number}", device_id, identity)
        device.age = self._age_of(number)
        self._devices[device.host.name] = device
        if number >= self.forecast.n_devices - self.forecast.n_hostile:
            device.is_hostile = True
            self.lies[device.host.name] = lie_in(random.Random(f"lie {self.forecast.seed}"))
        self.clock.after(self.weather.uniform(0.0, 10.0), device.start)

    def _plan_storm(self) -> None:
        """Kills and steps of clocks at any time, beside those at any operation."""
        forecast, weather = self.forecast, self.weather
        devices = list(self._devices.values())

        def strike() -> None:
            if weather.is_calm:
                return
            self._strike(devices)
            self.clock.after(weather.uniform(0, 2 * _SECONDS_BETWEEN_KILLS / forecast.strength / 4), strike)

        self.clock.after(weather.uniform(0, 30), strike)
        for device in devices[forecast.n_ageing : forecast.n_ageing + forecast.n_revoked]:
            self.clock.after(weather.uniform(0, forecast.storm_seconds), lambda device=device: self._revoke(device))

    def _strike(self, devices: list[DeviceProgram]) -> None:
        weather, chance = self.weather, self.weather.random()
        if chance < 0.3 and not self.forecast.has_hostile_coordinator:
            program = self.coordinators[weather.choice(list(range(len(self.coordinators))))]
            program.kill("at any time") if weather.random() < 0.7 else program.stop()
        elif chance < 0.6 and self.forecast.clocks_step:
            programs: list[Any] = [*devices] if self.forecast.replicas else [*devices, *self.coordinators]
            program = programs[weather.choice(list(range(len(programs))))]
            program.step_clock(weather.clock_step())
            self.note("clock_stepped", program.host.name)
        else:
            self.kill_device(devices[weather.choice(list(range(len(devices))))].host, "at any time")

    def _revoke(self, device: DeviceProgram) -> None:
        device.revoked_at = self.clock.now
        self.authority.revoke(device.device_id)

    def _calm_down(self) -> None:
        """The storm is over: clocks are set right, and whoever is off comes back."""
        self.weather.calm_down()
        self._calm_at = self.clock.now
        self.note("calm", "")
        self._rounds_before = self.watch.counts["round_finished"]
        programs: list[Any] = [*self._devices.values(), *self.coordinators]
        for program in programs:
            program.step_clock(-program.host.clock_offset)

    def _waits_for(self) -> list[DeviceProgram]:
        """Honest devices with good certificates that have not taken part since the storm."""
        return [
            device
            for device in self._devices.values()
            if not (device.is_hostile or device.revoked_at < math.inf or device.age == "ending")
            and device.took_part_at < self._calm_at
        ]

    def went_on(self) -> None:
        """A round has ended, or a device has taken part: this may have been all that the world waited for."""
        if not self.forecast.has_hostile_coordinator and self._is_well():
            self.clock.stop()

    def _is_well(self) -> bool:
        if self.forecast.has_hostile_coordinator:
            return True
        has_gone_on = self.watch.counts["round_finished"] > self._rounds_before and not self._waits_for()
        return has_gone_on and not self.watch.overdue(self._devices.values())

    def _check_end(self) -> None:
        if not self._is_well():
            waiting = [device.number for device in self._waits_for()]
            overdue = self.watch.overdue(self._devices.values())
            self.fail(
                f"the weather is calm, and devices {waiting} have not taken part since, or {overdue} have not renewed"
                " their certificates"
            )
        self.watch.check_storage()
        self.watch.check_bounds(self._devices.values(), self.folder)
        self.watch.check_rounds(self.coordinators)
        for cohort in self.lying_cohorts:
            if hasattr(cohort, "_states") and cohort.read() - cohort.colluders:
                self.fail("a lying coordinator read the vector of an honest device")

    def _tear_down(self) -> None:
        self.is_over = True
        self.weather.calm_down()
        for device in self._devices.values():
            device.kill("the world is over", loses_power=False)
        for program in getattr(self, "coordinators", []):
            program.kill("the world is over")
        if hasattr(self, "authority"):
            self.authority.close()
        SYSTEM.begin(None, Clock(), 0)
        gc.enable()
        shutil.rmtree(self.folder, ignore_errors=True)
