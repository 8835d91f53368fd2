"""What must hold in every world. The watch sees every message, every sum and every line of the log.

Each method is called when something happens, and calls `World.fail` when that must not be.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightfr.secagg import DeviceSession
from lightfr.user import USER_CODE
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2, secure_pb2
from lightfr_harness.server.coordinator.phases import PHASES, REVEALING, UPLOADING
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.rounds import OPEN, REMEMBERED_ROUNDS
from lightfr_harness.server.coordinator.secure_steps import REQUESTS
from tests.world.clock import EPOCH, Host
from tests.world.sums import Sums
from tests.world.system import SYSTEM

if TYPE_CHECKING:
    from lightfr.client import Client
    from lightfr.participation import Participation
    from tests.world.devices import DeviceProgram
    from tests.world.world import World

METHODS = (
    "AdvertiseKeys", "ShareKeys", "AcknowledgeShares", "SignIncluded", "Upload", "SignSurvivors", "RevealShares"
)  # fmt: skip
_PHASE_OF = dict(zip(METHODS, PHASES, strict=True))
_STEPS = ("share", "acknowledge", "sign_included", "mask", "sign_survivors", "reveal")
_RECORD_BYTES = 37
# Of a device: its identity, key and store, and one model with what is being downloaded.
_MOST_FILES, _MOST_BYTES = 24, 400_000
# Sixteen versions with their codes and deltas, some states, and what all have in common.
_MOST_SERVER_FILES = 200
_WAKING_SECONDS, _LATE_SECONDS = 1.0, 60.0
# A certificate that was made in the world ends in about a year.
_NEW_SECONDS = 300 * 86_400.0
# Lines of the log that tell of a fault of ours, and those that are allowed after a fault of the disk.
_NEVER = ("internal_error", "library", "refresh_failed")
_AFTER_A_FAULT = ("storage_failed", "round_failed")


def install() -> None:
    """Let the watch see each step of each device's session, and hostile devices lie in it."""
    for step in _STEPS:
        setattr(DeviceSession, step, _watched(step, getattr(DeviceSession, step)))


def _watched(step: str, honest: Callable[..., Any]) -> Callable[..., Any]:
    def done(session: DeviceSession, *said: Any) -> Any:
        world, host = SYSTEM.world, SYSTEM.host
        assert world is not None
        assert host is not None
        lie = world.lies.get(host.name, {}).get(step)
        if step == "mask":
            world.watch.masks(host, session, said[0])
        result = lie(honest, session, *said) if lie else honest(session, *said)
        if step == "mask":
            world.watch.masked(result, is_lie=lie is not None)
        if step == "acknowledge":
            world.secrets.states[session.state.peer_id] = session.state
        return result

    return done


class WatchedService:
    """A service of the coordinator, before the eyes of the watch."""

    def __init__(self, watch: Watch, host: Host, service: Any) -> None:
        self.name, self.limit_bytes = service.name, service.limit_bytes
        self.methods = {name: self._seen(watch, host, name, method) for name, method in service.methods.items()}

    @staticmethod
    def _seen(watch: Watch, host: Host, name: str, method: Callable[[str, bytes], Awaitable[bytes]]) -> Any:
        async def call(device: str, body: bytes) -> bytes:
            asked = watch.asked(host, name, device)
            try:
                answer = await method(device, body)
            except Refusal as refusal:
                watch.refused(device, name, refusal)
                raise
            finally:
                watch.waiting.pop(asked, None)
            watch.answered(device, name, body, answer)
            return answer

        return call


class Watch:
    """All that was said and promised in one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.counts: Counter[str] = Counter()
        self.sums = Sums(world)
        # (round, phase) to device to the digest of what the server says it has.
        self.acknowledged: dict[tuple[bytes, int], dict[str, bytes]] = {}
        # (device, round, method) to the digest of what left the device.
        self._sent: dict[tuple[str, bytes, str], bytes] = {}
        # (what, of what) to what was signed for it.
        self._signed: dict[tuple[str, bytes | int], bytes] = {}
        # Round to its roster: peer ids by index, and the threshold. Round to owner to the holders that revealed.
        self._rosters: dict[bytes, tuple[list[bytes], int]] = {}
        self._revealed: dict[bytes, dict[int, tuple[set[str], set[str]]]] = {}
        self._needles: dict[str, set[bytes]] = {}
        # Round to digest to body of what devices uploaded.
        self.uploads: dict[bytes, dict[bytes, bytes]] = {}
        # Questions for a step that are not answered yet, by number, and who is asked.
        self.waiting: dict[int, Host] = {}

    def service(self, host: Host, service: Any) -> Any:
        return WatchedService(self, host, service)

    # What leaves a device.

    def boots(self, device: DeviceProgram) -> None:
        """What must not be on the wire: the ids of rated items. Codes and vectors follow when they are made."""
        needles = self._needles.setdefault(device.host.name, set())
        needles.update(str(item_id).encode() for item_id, _ in device.ratings())

    def leaves(self, host: Host, data: bytes) -> None:
        """Bytes of a device go out."""
        if self._world.forecast.is_private:
            for needle in self._needles[host.name]:
                if needle in data:
                    self._world.fail(f"what {host.name} thinks is on the wire")

    def sends(self, host: Host, path: str, body: bytes) -> None:
        """A request of a device goes out: of each step of a round only one ever does."""
        method = path.rpartition("/")[2]
        self._world.note("send", f"{host.name} {method}")
        if method not in _PHASE_OF:
            return
        request: Any = REQUESTS[_PHASE_OF[method]].FromString(body)
        if method == "Upload":
            self.uploads.setdefault(request.round_id, {})[_digest(body)] = body
        # A device that left a round and is given its place again makes new keys, which the server refuses; in the clear
        # there is nothing to protect, and `answered` looks that only one upload counts.
        if host.name in self._world.lies or method == "AdvertiseKeys" or not self._world.forecast.is_private:
            return
        known = self._sent.setdefault((host.name, request.round_id, method), _digest(body))
        if known != _digest(body):
            self._world.fail(f"{host.name} sent two different messages for {method} of one round")
        if method == "RevealShares":
            self._reveals(host, request)

    def _reveals(self, host: Host, request: secure_pb2.RevealSharesRequest) -> None:
        """No owner's seed and mask key may both come together."""
        owners = self._revealed.setdefault(request.round_id, {})
        for place, field in enumerate((request.seeds, request.mask_keys)):
            for at in range(0, len(field), _RECORD_BYTES):
                owner = int.from_bytes(field[at : at + 4], "little")
                owners.setdefault(owner, (set(), set()))[place].add(host.name)
        threshold = self._rosters[request.round_id][1] if request.round_id in self._rosters else 2
        for seeds, mask_keys in owners.values():
            is_told_twice = bool(seeds and mask_keys) and not self._world.forecast.has_hostile_coordinator
            if seeds & mask_keys or is_told_twice or min(len(seeds), len(mask_keys)) >= threshold:
                self._world.fail("both secrets of a device were revealed")

    def masks(self, host: Host, session: DeviceSession, vector: Any) -> None:
        """A device is about to mask a vector."""
        device = self._world.device_of(host)
        if device.client is not None:
            code = device.client._store.get(USER_CODE)
            if code:
                self._needles[host.name].add(code)
        packed = vector.pack()
        self._needles[host.name].add(packed)
        self._world.secrets.vectors[session.state.peer_id] = packed
        self.sums.masks(vector)

    def masked(self, packed: bytes, *, is_lie: bool) -> None:
        self.sums.masked(packed, is_lie=is_lie)

    # What servers say.

    def let_in(self, device: str | None) -> str | None:
        """The coordinator has looked who sends a request. The rest of the request may come seconds later."""
        if device is not None and self._world.is_revoked(device):
            self._world.fail("a revoked device was let in")
        return device

    def asked(self, host: Host, name: str, device: str) -> int:
        """A device that was let in asks; a number for the question."""
        self.counts["asked"] += 1
        if name == "GetStep":
            self.waiting[self.counts["asked"]] = host
        return self.counts["asked"]

    def _require_woken(self, host: Host) -> None:
        """Whoever waits for the next step when a phase ends is told of it at once."""
        waiting = [number for number, asked in self.waiting.items() if asked is host]

        def look() -> None:
            if host.is_alive and any(number in self.waiting for number in waiting):
                self._world.fail("a device that waits was not told that a phase ended")

        if self._world.weather.is_calm:
            self._world.clock.after(_WAKING_SECONDS, look)

    def refused(self, device: str, name: str, refusal: Refusal) -> None:
        self._world.note("refusal", f"{name} {refusal.name} {refusal}")

    def answered(self, device: str, name: str, body: bytes, answer: bytes) -> None:
        """A procedure was carried out, and its answer is about to go out."""
        self.counts["requests"] += 1
        if name in _PHASE_OF:
            request: Any = REQUESTS[_PHASE_OF[name]].FromString(body)
            key = request.round_id, _PHASE_OF[name]
            known = self.acknowledged.setdefault(key, {}).setdefault(device, _digest(body))
            if known != _digest(body):
                self._world.fail("two different deliveries of one device were acknowledged")
        elif name == "GetStep":
            self._told(secure_pb2.GetStepRequest.FromString(body).round_id, answer)
        elif name == "GetManifest" and answer:
            signed = pb.GetManifestResponse.FromString(answer).signed_manifest
            version = manifest_pb2.Manifest.FromString(signed.manifest).model_version
            self.signed("manifest", version, signed.manifest)

    def _told(self, round_id: bytes, answer: bytes) -> None:
        step = secure_pb2.GetStepResponse.FromString(answer)
        kind = step.WhichOneof("step")
        if kind == "share":
            self.signed("roster", round_id, step.share.entries)
            size = len(step.share.entries) // _entry_bytes()
            ids = [step.share.entries[at * _entry_bytes() :][:16] for at in range(size)]
            self._rosters[round_id] = ids, step.share.threshold
        elif kind == "included" and not self._world.forecast.has_hostile_coordinator:
            self.signed("included set", round_id, step.included.included)
        elif kind == "survivors" and not self._world.forecast.has_hostile_coordinator:
            self.signed("survivor set", round_id, step.survivors.survivors)

    def signed(self, what: str, of_what: bytes | int, content: bytes) -> None:
        """Something was signed and told: never anything else for the same."""
        if self._signed.setdefault((what, of_what), content) != content:
            self._world.fail(f"a {what} was signed in two versions")

    def logged(self, host: Host, name: str, facts: dict[str, object]) -> None:
        """A coordinator says something of itself."""
        self.counts[name] += 1
        told = {key: value for key, value in facts.items() if key not in ("seconds", "device")}
        self._world.note("log", f"{host.name} {name} {told}")
        if name == "phase_ended":
            self._require_woken(host)
        elif name == "round_finished":
            self._world.went_on()
        is_honest = not self._world.forecast.n_hostile and not self._world.forecast.has_hostile_coordinator
        if name in _NEVER or (name in _AFTER_A_FAULT and not host.was_refused):
            self._world.fail(f"the coordinator logged {name}: {facts}")
        elif name == "fault" and is_honest:
            self._world.fail(f"an honest device was called faulty: {facts['reason']}")
        elif name == "sum_dropped" and is_honest and "are needed" not in str(facts["reason"]):
            self._world.fail(f"the sum of honest devices was dropped: {facts['reason']}")

    # What devices make of it.

    def took_part(self, device: DeviceProgram, client: Client, outcome: Participation) -> None:
        self._world.note("participation", f"{device.number} {outcome.took_part} {outcome.reason}")
        self.counts["took_part" if outcome.took_part else f"not: {outcome.reason}"] += 1

    def refused_identity(self, device: DeviceProgram) -> None:
        """Who is refused must be revoked or too old, or the clock of the server be wrong."""
        if (
            device.revoked_at > self._world.clock.now
            and device.age != "ending"
            and not self._world.forecast.clocks_step
        ):
            self._world.fail(f"device {device.number} was refused, and its certificate is good")

    def distrusts(self, device: DeviceProgram, error: Exception) -> None:
        """Only a server that lies, or a clock that is wrong, gives a reason to leave."""
        forecast = self._world.forecast
        is_excused = forecast.has_hostile_coordinator or forecast.clocks_step or forecast.n_hostile
        if not is_excused and not forecast.n_ageing:
            self._world.fail(f"device {device.number} distrusts an honest server", error)

    # What is stored.

    def check_storage(self) -> None:
        """Everything acknowledged is stored, once, and nothing is kept for longer than it is needed."""
        with closing(sqlite3.connect(self._world.database)) as connection:
            rows = connection.execute("SELECT round_id, phase, device, request_sha256 FROM deliveries").fetchall()
            rounds = dict(connection.execute("SELECT round_id, number FROM rounds").fetchall())
            n_bodies = connection.execute(
                "SELECT count(*) FROM deliveries d JOIN rounds r ON r.round_id = d.round_id"
                " WHERE r.ended_at IS NOT NULL AND body IS NOT NULL"
            ).fetchone()[0]
        stored = {(round_id, phase, device): digest for round_id, phase, device, digest in rows}
        newest = max(rounds.values(), default=0)
        for (round_id, phase), devices in self.acknowledged.items():
            if round_id not in rounds:
                self._world.fail("a round in which something was acknowledged is gone")
            elif rounds[round_id] > newest - REMEMBERED_ROUNDS:
                for device, digest in devices.items():
                    if stored.get((round_id, phase, device)) != digest:
                        self._world.fail("something that was acknowledged is not stored")
        kept = {round_id for round_id, *_ in rows}
        if n_bodies or any(rounds[round_id] < newest - REMEMBERED_ROUNDS for round_id in kept):
            self._world.fail("the database keeps what should be gone")

    def overdue(self, devices: Iterable[DeviceProgram]) -> list[int]:
        """Devices that have not renewed their certificate, which was due from the beginning."""
        return [
            device.number
            for device in devices
            if device.age == "due" and device.revoked_at > self._world.clock.now
            and device.certificate_ends() < EPOCH + _NEW_SECONDS
        ]  # fmt: skip

    def check_rounds(self, coordinators: Iterable[Any]) -> None:
        """No phase lasts longer than its deadline."""
        for program in coordinators:
            if program.coordinator is not None and hasattr(program.coordinator, "book"):
                now = program.coordinator.now()
                for one in program.coordinator.book.cohorts:
                    if one.state == OPEN and one.deadline is not None and now > one.deadline + _LATE_SECONDS:
                        self._world.fail(f"round {one.number} does not end")

    def check_bounds(self, devices: Iterable[DeviceProgram], folder: Path) -> None:
        """Nobody keeps more files than it needs."""
        n_files = sum(len(names) for *_, names in os.walk(folder / "coordinator"))
        if n_files > _MOST_SERVER_FILES * max(self._world.forecast.replicas, 1):
            self._world.fail(f"the coordinators keep {n_files} files")
        for device in devices:
            kept = device.stored()
            if kept["files"] > _MOST_FILES or kept["bytes"] > _MOST_BYTES:
                self._world.fail(f"device {device.number} keeps {kept['files']} files of {kept['bytes']} bytes")
        if len(self._world.network.links) > 4 * len(self._world.disks):
            self._world.fail("connections are left open")

    def restarted(self, coordinator: Any) -> None:
        self.check_storage()

    # Sums: see tests/world/sums.py.

    def copied(self, rule: Any) -> dict[str, Any]:
        return {name: value.copy() for name, value in rule.state().items()}

    def summed(self, rounds: list[Any], cohorts: list[Any]) -> None:
        for one, cohort in zip(rounds, cohorts, strict=True):
            self._require_all_counted(one)
            self.sums.check_cohort(one, cohort)

    def added_in_the_clear(self, coordinator: Any, current: Any, bodies: list[bytes], before: dict[str, Any]) -> None:
        self._require_all_counted(current)
        self.sums.check_clear(coordinator, current, bodies, before)

    def added_in_secret(self, coordinator: Any, first: Any, cohorts: list[Any], before: dict[str, Any]) -> None:
        self.sums.check_secret(coordinator, first, cohorts, before)

    def _require_all_counted(self, one: Any) -> None:
        counted = {device: receipt.request_sha256 for device, receipt in one.receipts.items()}
        for device, digest in self.acknowledged.get((one.round_id, UPLOADING), {}).items():
            if counted.get(device) != digest:
                self._world.fail("an acknowledged upload is not in its round's sum")


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def _entry_bytes() -> int:
    from lightfr.secagg.roster import ENTRY_BYTES

    return ENTRY_BYTES


assert PHASES[-1] == REVEALING
