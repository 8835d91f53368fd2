"""The real thing at a size that runs: a coordinator, devices over TLS that obey its retry windows, secure rounds.

It says what the simulation says of the same scenario, and measures the constants that the simulation reckons with. The
devices share the machine with the server: how long their steps take is this machine's, the server's CPU is its own.
"""

from __future__ import annotations

import heapq
import json
import os
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from lightfr import UserCode
from lightfr._wire import coordinator
from lightfr.errors import RefusedError
from lightfr.interactions import LEVELS, Interactions
from lightfr.rounds import is_too_late
from lightfr.v1 import model_pb2
from lightfr_harness.errors import CannotRunError
from lightfr_harness.records import RealFigures, ScaleRealRecord
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess
from lightfr_harness.server.coordinator.phases import PHASES
from lightfr_harness.simulation.fleet import SimulatedDevice
from lightfr_harness.simulation.remote import RemoteDevice, RemoteFleet, RoundWalk, those_in_time
from lightfr_harness.simulation.scale import Scenario, Simulation
from lightfr_harness.simulation.scale_costs import HERD_SECONDS, Constants

OPEN_ROWS, BITS, RATINGS = 2000, 64, 40
# Check-ins by which the cost of one that is turned away is measured.
_PROBES = 200
# Who leaves when is chance, which decides how long a round takes: the simulation tells the mean of so many runs.
SIMULATIONS = 20
# Devices that talk at the same time.
_THREADS = 8
_TICKS = os.sysconf("SC_CLK_TCK")
_SECAGG = [model_pb2.PRIVACY_MODE_SECAGG]


def measured(scenario: Scenario) -> ScaleRealRecord:
    """Run a scenario for real, measure what it costs, and simulate it with these constants."""
    if scenario.devices <= scenario.plan.places:
        raise CannotRunError(f"--devices must be more than the {scenario.plan.places} places of a cohort")
    with tempfile.TemporaryDirectory() as folder:
        run = RealRun(scenario, Path(folder))
        try:
            written, cpu = run.written_bytes(), run.cpu_seconds()
            run.run()
            written, cpu = run.written_bytes() - written, run.cpu_seconds() - cpu
            ended, check_in_cpu_ms = run.rounds(), run.check_in_cpu_ms()
        finally:
            run.close()
    if not run.contributions:
        raise CannotRunError("no device took all steps: this machine is too busy for such a --deadline-seconds")
    steps_cpu = cpu - len(run.check_ins) * check_in_cpu_ms / 1000
    shares = run.phase_cpu_seconds / run.phase_cpu_seconds.sum()
    constants = Constants(
        check_in_cpu_ms=check_in_cpu_ms,
        phase_cpu_ms=tuple((1000 * steps_cpu * shares / np.maximum(run.phase_devices, 1)).round(3).tolist()),
        phase_bytes=tuple(np.mean(run.sent_bytes, axis=0).round().astype(int).tolist()),
        open_rows=OPEN_ROWS,
        code_bits=BITS,
    )
    real: RealFigures = {
        "placed": run.placed,
        "contributions": run.contributions,
        "check_ins": len(run.check_ins),
        "rounds": len(ended),
        "round_seconds_p50": float(np.median([each["seconds"] for each in ended] or [0])),
        "last_place_seconds": max(run.check_ins),
        "peak_check_ins_per_second": _peak(run.check_ins),
        "cpu_ms_per_device_round": 1000 * cpu / max(1, run.contributions),
    }
    # Devices of a stage deliver one after the other: half of them have done so in half of its time.
    paced = replace(scenario, step_seconds=max(0.001, float(np.median(run.step_seconds)) / 2))
    runs = [simulated(replace(paced, seed=seed), constants) for seed in range(SIMULATIONS)]
    return ScaleRealRecord(
        scenario=asdict(scenario),
        constants=asdict(constants),
        real=real,
        simulated=_each(runs, np.mean),
        deviation=_each(runs, np.std),
        written_bytes_per_device_round=written / max(1, run.contributions),
        load_average=os.getloadavg()[0],
    )


def simulated(scenario: Scenario, constants: Constants) -> RealFigures:
    """The same figures by simulation."""
    events = Simulation(scenario).run()
    check_ins, deliveries = int(events.check_ins.sum()), events.deliveries.sum(axis=1)
    lengths = [seconds for _, seconds, summed in events.rounds if summed]
    cpu_ms = constants.check_in_cpu_ms * check_ins + float(np.array(constants.phase_cpu_ms) @ deliveries)
    return {
        "placed": events.placed,
        "contributions": events.contributions,
        "check_ins": check_ins,
        "rounds": len(lengths),
        "round_seconds_p50": float(np.median(lengths or [0])),
        "last_place_seconds": float(np.flatnonzero(events.check_ins).max()),
        "peak_check_ins_per_second": _peak(np.repeat(np.arange(scenario.horizon), events.check_ins).tolist()),
        "cpu_ms_per_device_round": cpu_ms / max(1, events.contributions),
    }


def _each(runs: Sequence[RealFigures], what: Callable[[list[float]], Any]) -> RealFigures:
    """One number for each figure of several runs."""
    figures = {name: float(what([run[name] for run in runs])) for name in runs[0]}  # type: ignore[literal-required]
    return cast("RealFigures", figures)


def _peak(seconds: Sequence[float]) -> float:
    """The most check-ins in ten seconds, per second."""
    return float(np.bincount(np.array(seconds, np.int64) // HERD_SECONDS).max() / HERD_SECONDS)


class RealRun:
    """A coordinator with one cohort a round, and devices that come once and come back until they have had a place."""

    def __init__(self, scenario: Scenario, work: Path) -> None:
        self._scenario, self._random = scenario, np.random.default_rng([scenario.seed, 19])
        authority = Authority.init(work / "authority", ["127.0.0.1"])
        (work / "items.txt").write_text("".join(f"item {number}\n" for number in range(OPEN_ROWS)))
        self._server = CoordinatorProcess(
            work / "data", authority.folder, work / "items.txt", bits=BITS, gate=0, privacy="secagg",
            goal=scenario.goal, over_selection=scenario.over_selection, minimum=scenario.minimum,
            deadline_seconds=scenario.deadline_seconds, evaluate_every=0,
        ).start()  # fmt: skip
        address, least = self._server.addresses["server"], scenario.minimum
        self._fleet = RemoteFleet(self._devices(), authority, address, work / "fleet", minimum_cohort=least)
        authority.close()
        arrivals = self._random.random(scenario.devices) * scenario.period_seconds
        # When who checks in.
        self._due = [(float(at), number) for number, at in enumerate(arrivals, 1)]
        heapq.heapify(self._due)
        self._lock, self._syncing = threading.Lock(), threading.Lock()
        # Of the current round: who delivered keys, and before which step each leaves.
        self._round_id, self._walks = b"", list[tuple[int, RoundWalk]]()
        self._numbers: dict[RoundWalk, int] = {}
        self._walking: list[Future[None]] = []
        self._began = time.monotonic()
        self.check_ins: list[float] = []
        self.placed = self.contributions = 0
        self.phase_cpu_seconds = np.zeros(len(PHASES))
        self.phase_devices = np.zeros(len(PHASES), np.int64)
        # By step, how long all who took it needed, from when the first could.
        self.step_seconds: list[float] = []
        # Of each device that took all steps, by step.
        self.sent_bytes: list[list[int]] = []

    def _devices(self) -> list[SimulatedDevice]:
        """Devices with random ratings: what they cost a server does not depend on what they like.

        The first fetches models for all of them, and takes part in no round.
        """
        count = self._scenario.devices + 1
        rated = (self._random.choice(OPEN_ROWS, RATINGS, replace=False).tolist() for _ in range(count))
        return [SimulatedDevice(Interactions((i, LEVELS) for i in items), UserCode.random(BITS)) for items in rated]

    def run(self) -> None:
        """Let devices come for as long as the scenario says, and end the round that is open then."""
        self._fleet.sync()
        self._began, busy = time.monotonic(), set[Future[None]]()
        pools = ThreadPoolExecutor(_THREADS), ThreadPoolExecutor(_THREADS), ThreadPoolExecutor(2)
        with pools[0] as door, pools[1] as steps, pools[2] as rounds:
            while self._now() < self._scenario.horizon or busy:
                for call in [call for call in busy if call.done()]:
                    busy.remove(call)
                    call.result()
                while self._due and self._due[0][0] <= self._now() < self._scenario.horizon:
                    with self._lock:
                        number = heapq.heappop(self._due)[1]
                    busy.add(door.submit(self._come, number, steps, rounds))
                time.sleep(0.02)
            for each in self._walking:
                each.result()

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _come(self, number: int, steps: ThreadPoolExecutor, rounds: ThreadPoolExecutor) -> None:
        """Check in over a new connection, as a device that was asleep. With a place, deliver keys; else come back."""
        remote = self._fleet.devices[number]
        remote.channel.close()
        with self._lock:
            self.check_ins.append(self._now())
        # Nobody need know the newest version to ask for a place; who gets one fetches it.
        answer = coordinator.check_in(remote.channel, 0, _SECAGG)
        if isinstance(answer, coordinator.RetryWindow):
            with self._lock:
                back = self._random.uniform(answer.earliest_seconds, answer.latest_seconds)
                heapq.heappush(self._due, (self._now() + back, number))
            return
        with self._lock:
            leaves = self._random.random() < self._scenario.dropout
            before = int(self._random.integers(1, len(PHASES) + 1)) if leaves else len(PHASES) + 1
            self.placed += 1
            if answer.round_id != self._round_id:
                self._round_id, self._walks = answer.round_id, []
                self._walking.append(rounds.submit(self._walk_on, self._walks, steps))
        walk = self._new_walk(remote, answer)
        if before > 1 and _is_in_time(walk):
            with self._lock:
                self._numbers[walk] = number
                self._walks.append((before, walk))

    def _new_walk(self, remote: RemoteDevice, place: coordinator.Assignment) -> RoundWalk:
        """The device's way through the round, on the newest model, which is the round's."""
        with self._syncing:
            return self._fleet.walk(self._fleet.sync(), remote, place)

    def _walk_on(self, walks: list[tuple[int, RoundWalk]], steps: ThreadPoolExecutor) -> None:
        """The steps after the keys, for all who have not left; each waits until the server says that it is due."""
        ends = time.monotonic() + self._scenario.deadline_seconds
        while not walks and time.monotonic() < ends:
            time.sleep(0.1)
        spent = self.cpu_seconds()
        for phase in PHASES[1:]:
            # The first who takes it shows that the step is due; by then all keys are in.
            scout = next((each for each in walks if each[0] > phase and _is_in_time(each[1])), None)
            if scout is None:
                self._come_back([self._numbers[walk] for before, walk in walks if before > phase])
                return
            started = time.monotonic()
            spent = self._count(phase - 1, len(walks), spent)
            staying = [each for each in walks if each[0] > phase and each is not scout]
            in_time = set(those_in_time(steps, RoundWalk.advance, [walk for _, walk in staying]))
            walks = [scout, *(each for each in staying if each[1] in in_time)]
            self.step_seconds.append(time.monotonic() - started)
        self._count(PHASES[-1], len(walks), spent)
        self.contributions += len(walks)
        self.sent_bytes += [walk.sent_bytes for _, walk in walks]

    def _come_back(self, numbers: list[int]) -> None:
        """The round went on without these devices, or was abandoned: they offer themselves again, as the SDK says."""
        with self._lock:
            for number in numbers:
                heapq.heappush(self._due, (self._now() + self._random.uniform(1, 10), number))

    def _count(self, phase: int, devices: int, spent: float) -> float:
        """Note what the server spent since then on a phase of so many devices; return what it has spent in all."""
        now = self.cpu_seconds()
        self.phase_cpu_seconds[phase - 1] += now - spent
        self.phase_devices[phase - 1] += devices
        return now

    def check_in_cpu_ms(self) -> float:
        """What a check-in costs that is turned away, over a new connection. It fills the places of a round first."""
        places, model = self._scenario.plan.places, self._fleet.sync()
        spent, others = 0.0, self._scenario.devices - places
        for number in range(places + _PROBES):
            if number == places:
                spent = self.cpu_seconds()
            channel = self._fleet.devices[1 + (number if number < places else places + number % others)].channel
            channel.close()
            coordinator.check_in(channel, model.manifest.model_version, _SECAGG)
        return 1000 * (self.cpu_seconds() - spent) / _PROBES

    def cpu_seconds(self) -> float:
        """Of the server's process until now."""
        fields = Path(f"/proc/{self._server.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def written_bytes(self) -> int:
        """Bytes that the server gave to the disk."""
        lines = Path(f"/proc/{self._server.process.pid}/io").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("write_bytes")))

    def rounds(self) -> list[dict[str, float]]:
        """The finished rounds, as the server's log tells them: seconds, uploads, upload_bytes."""
        events = (json.loads(line) for line in self._server.log.splitlines())
        return [event for event in events if event["event"] == "round_finished"]

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"{self._server.addresses['operations']}/metrics") as page:
            lines = page.read().decode().splitlines()
        return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])

    def close(self) -> None:
        self._fleet.close()
        self._server.stop()


def _is_in_time(walk: RoundWalk) -> bool:
    try:
        walk.advance()
    except RefusedError as refused:
        if not is_too_late(refused):
            raise
        return False
    return True
