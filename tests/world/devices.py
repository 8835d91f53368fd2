"""Devices: the SDK's own client in an app that rates, syncs and takes part, is killed, and starts again."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightfr import Budget, FileKey
from lightfr.device import Device, read_certificate
from lightfr.errors import (
    IdentityRefusedError,
    LightFRError,
    PrivacyError,
    ProtocolError,
    RefusedError,
    ServerUnavailableError,
    StoreClosedError,
    StoreWriteError,
)
from tests.world.clock import Host, Killed, Program
from tests.world.disk import DeviceDisk
from tests.world.servers import AUTHORITY, COORDINATOR
from tests.world.system import SYSTEM
from tests.world.weather import N_ITEMS

if TYPE_CHECKING:
    from lightfr.client import Client
    from lightfr.participation import RoundStage
    from tests.world.world import World

_BUDGET = Budget(rounds_per_month=10**6, gate_refreshes_per_month=10**6)
_MINIMUM_COHORT = 3


class DeviceProgram:
    """One device of a world, from boot to boot."""

    def __init__(self, world: World, number: int, folder: Path, device_id: str, identity: bytes) -> None:
        self._world, self.number, self._folder, self.device_id = world, number, folder, device_id
        self.is_hostile = False
        # Of its certificate: see identities.py. When it was revoked, in seconds of the world.
        self.age, self.revoked_at = "young", math.inf
        self.client: Client | None = None
        self._offset = 0.0
        # Of this device's last round that the server has, in seconds of the world.
        self.took_part_at = -1.0
        self.host = Host(f"device {number}")
        self.host.is_alive = False
        self._write_identity(identity)
        self._disk = DeviceDisk(world, self.host, folder)
        self.program = Program(world.clock, self.host, SYSTEM.enter)

    def _write_identity(self, identity: bytes) -> None:
        place = self._folder / "identity"
        place.mkdir(parents=True)
        files = {
            "identity.pem": identity,
            "trust.pem": self._world.trust,
            "server": f"https://{COORDINATOR}:443".encode(),
            "enrollment": f"https://{AUTHORITY}:443".encode(),
        }
        for name, content in files.items():
            (place / name).write_bytes(content)

    def start(self) -> None:
        """Boot, unless it is on."""
        if self.host.is_alive or self._world.is_over:
            return
        self.host = Host(f"device {self.number}")
        self.host.clock_offset = self._offset
        self.program = Program(self._world.clock, self.host, SYSTEM.enter)
        self._world.boot(self, self._disk)
        self._disk._host = self.host
        self.program.start(self._live)

    def step_clock(self, seconds: float) -> None:
        self._offset += seconds
        self.host.clock_offset = self._offset

    def kill(self, why: str, *, loses_power: bool) -> None:
        """End its program at once; it boots again later."""
        if not self.host.is_alive:
            return
        self.host.is_alive = False
        self._world.note("device_ended" if self._world.is_over else "device_killed", f"{self.number} {why}")
        if SYSTEM.host is self.host:
            # It unwinds its own stack when this returns, and holds its locks until then.
            self._world.clock.after(0.0, lambda: self._after_death(loses_power))
        else:
            self.program.die()
            self._after_death(loses_power)

    def _after_death(self, loses_power: bool) -> None:
        self._world.network.drop(self.program.host)
        self._let_go()
        if loses_power:
            self._disk.lose_power()
        self._world.clock.after(self._world.weather.restart_seconds(), self.start)

    def _let_go(self) -> None:
        """Close the descriptors of a dead program, as the system does. Nothing is written: its host is dead."""
        client, self.client = self.client, None
        if client is not None:
            client.close()

    # The app.

    def _live(self) -> None:
        while True:
            try:
                self.client = self._open()
                self._use(self.client)
            except (StoreWriteError, StoreClosedError):
                self._world.note("device_reopens", str(self.number))
            finally:
                if self.host.is_alive:
                    self._let_go()
            SYSTEM.sleep(self._world.weather.uniform(0.5, 5.0))

    def _open(self) -> Client:
        try:
            return Device.load(self._folder / "identity").client(
                self._folder / "user" / "data",
                key=FileKey(self._folder / "user" / "key"),
                minimum_cohort=_MINIMUM_COHORT,
                allow_clear_uploads=not self._world.forecast.is_private,
                budget=_BUDGET,
            )
        except StoreWriteError:
            raise
        except LightFRError as error:
            self._world.fail(f"device {self.number} cannot open what it had stored", error)
            raise Killed from error

    def _use(self, client: Client) -> None:
        weather = self._world.weather
        client.rate_many(self.ratings())
        while True:
            try:
                if weather.random() < (0.2 if self.age == "young" else 1.0):
                    client.sync()
                outcome = client.participate(self._progress)
                self._world.watch.took_part(self, client, outcome)
                if outcome.took_part:
                    self.took_part_at = self._world.clock.now
                    self._world.went_on()
                SYSTEM.sleep(max(outcome.retry_after_seconds, self._world.rest_seconds(self)))
            except (StoreWriteError, StoreClosedError):
                raise
            except LightFRError as error:
                self._world.note("device_error", f"{self.number} {type(error).__name__}")
                self._judge(error)
                SYSTEM.sleep(weather.uniform(1.0, 20.0))

    def ratings(self) -> list[tuple[str | int, float]]:
        """Its own opinions, the same at every boot."""
        ids = self._world.forecast.items.ids
        return [(ids[(self.number * 5 + 3 * place) % N_ITEMS], 1.0 + (self.number + place) % 5) for place in range(6)]

    def _judge(self, error: LightFRError) -> None:
        """An error of an honest device must come from the weather."""
        if isinstance(error, IdentityRefusedError) or (isinstance(error, RefusedError) and error.reason == "IDENTITY"):
            self._world.watch.refused_identity(self)
        elif isinstance(error, (ServerUnavailableError, RefusedError)):
            return
        elif isinstance(error, (PrivacyError, ProtocolError)):
            self._world.watch.distrusts(self, error)
        else:
            self._world.fail(f"device {self.number} failed by itself", error)

    def _progress(self, stage: RoundStage) -> None:
        """Between two stages of a round the device may go away for a while, or for good."""
        fate = self._world.weather.fate_of_stage()
        if fate == "away":
            self._world.note("device_away", f"{self.number} {stage}")
            SYSTEM.sleep(self._world.weather.uniform(5.0, 200.0))
        elif fate == "kill":
            self._world.kill_device(self.host, f"after {stage}")
            raise Killed

    def certificate_ends(self) -> float:
        """Unix seconds."""
        return read_certificate(self._folder / "identity" / "identity.pem").ends

    def stored(self) -> dict[str, Any]:
        """How much the device keeps: files and bytes."""
        sizes = [os.stat(f"{folder}/{name}").st_size for folder, _, names in os.walk(self._folder) for name in names]
        return {"files": len(sizes), "bytes": sum(sizes)}
