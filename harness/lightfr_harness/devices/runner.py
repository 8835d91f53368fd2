"""A run: devices with their profiles, some at a time, and the record of what happened."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from lightfr.errors import InvalidInputError, OutOfRangeError
from lightfr_harness.devices.enforcement import Enforcement
from lightfr_harness.devices.profiles import Profile
from lightfr_harness.devices.record import FORMAT, Record, machine
from lightfr_harness.devices.scenario import Scenario
from lightfr_harness.devices.session import STOCK_DEVICE, MeasuredDevice, Session
from lightfr_harness.devices.surroundings import Surroundings, surroundings

MOST_DEVICES = 4096
# Seconds between the starts of two devices: interpreters that start together fight for the cores.
STAGGER_SECONDS = 0.1
_PROGRESS_SECONDS = 0.5

# What is being done, and the share of the whole that is done.
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Plan:
    """How a scenario is run."""

    seed: int = 0
    # Devices of each profile.
    copies: int = 1
    # Devices that live at the same time; above the number of cores they wait for each other, and latencies tell that.
    at_once: int = 1
    # None: the strictest that this machine allows.
    memory: str | None = None
    cpu: str | None = None
    fits: int = 10
    recommendations: int = 100
    # Another device than the stock one: for tests that plant a fault.
    script: Path = STOCK_DEVICE

    def __post_init__(self) -> None:
        for name in ("copies", "at_once", "fits", "recommendations"):
            if not 1 <= getattr(self, name) <= MOST_DEVICES:
                raise OutOfRangeError(name, getattr(self, name), 1, MOST_DEVICES)


def run(
    scenario: Scenario,
    profiles: Sequence[Profile],
    progress: Progress | None = None,
    plan: Plan | None = None,
    *,
    file: Path | None = None,
    resume: Record | None = None,
) -> Record:
    """Run every device and return the record; see record.py for its shape.

    Ctrl-C ends the devices and returns what there is, with "interrupted" set. `file` gets the record after every
    device. `resume` takes an earlier record of the same run: devices that ended in it are not run again.
    """
    plan, progress = plan or Plan(), progress or (lambda what, share: None)
    record = _begun(scenario, profiles, plan)
    if resume is not None:
        for name in ("format", "seed", "scenario", "enforcement"):
            if record[name] != resume.get(name):
                raise InvalidInputError(
                    f"the record to go on with has another {name}: repeat the options it was begun with"
                )
        record["devices"] = [device for device in resume["devices"] if device["ended"] != "stopped"]
    missing = _missing(record, profiles, plan)
    if missing:
        _Run(scenario, plan, record, progress, file).devices(missing, len(profiles) * plan.copies)
    return record


def _begun(scenario: Scenario, profiles: Sequence[Profile], plan: Plan) -> Record:
    if not profiles:
        raise InvalidInputError("there is nothing to run: name at least one profile")
    return {
        "format": FORMAT,
        "seed": plan.seed,
        "machine": machine(),
        "enforcement": Enforcement.choose(plan.memory, plan.cpu).record(),
        "scenario": scenario.record(),
        "devices": [],
        "interrupted": False,
    }


def _missing(record: Record, profiles: Sequence[Profile], plan: Plan) -> list[tuple[int, Profile]]:
    done = {device["number"]: device["profile"] for device in record["devices"]}
    wanted = list(enumerate(profile for profile in profiles for _ in range(plan.copies)))
    for number, profile in done.items():
        if number >= len(wanted) or wanted[number][1].record() != profile:
            raise InvalidInputError("the record to go on with has other profiles: repeat the options it was begun with")
    return [(number, profile) for number, profile in wanted if number not in done]


class _Run:
    """The devices of one run, some at a time."""

    def __init__(self, scenario: Scenario, plan: Plan, record: Record, progress: Progress, file: Path | None) -> None:
        self._scenario, self._plan, self._record = scenario, plan, record
        self._progress, self._file = progress, file
        enforced = record["enforcement"]
        self._enforcement = Enforcement(enforced["memory"], enforced["cpu"])
        self._session = Session(fits=plan.fits, recommendations=plan.recommendations, script=plan.script)
        self._live: set[MeasuredDevice] = set()
        self._turn = threading.Lock()
        self._stopping = threading.Event()

    def devices(self, wanted: list[tuple[int, Profile]], total: int) -> None:
        """Run them; the record grows, in the order of their numbers."""
        self._total = total
        self._tell("making the catalogue")
        try:
            # In the clear a round never ends: every device takes part in it once, and the codes stay.
            with (
                tempfile.TemporaryDirectory() as folder,
                surroundings(self._scenario, Path(folder), self._plan.seed, clear_goal=total + 1) as around,
            ):
                self._run_all(wanted, around)
        except KeyboardInterrupt:
            self._record["interrupted"] = True
        self._save()

    def _run_all(self, wanted: list[tuple[int, Profile]], around: Surroundings) -> None:
        workers = ThreadPoolExecutor(self._plan.at_once, "device")
        pending: set[Future[Record]] = set()
        try:
            for number, profile in wanted:
                seed = self._plan.seed + number
                device = MeasuredDevice(around, self._session, self._enforcement, profile, number, seed)
                pending.add(workers.submit(self._one, device))
            while pending:
                ended, pending = wait(pending, _PROGRESS_SECONDS, FIRST_COMPLETED)
                self._take(ended)
        except KeyboardInterrupt:
            self._stopping.set()
            for device in list(self._live):
                device.stop()
            if around.fleet is not None:
                around.fleet.stop()
            workers.shutdown(cancel_futures=True)
            self._take({future for future in pending if not future.cancelled()})
            raise
        finally:
            workers.shutdown(cancel_futures=True)

    def _one(self, device: MeasuredDevice) -> Record:
        with self._turn:
            self._stopping.wait(STAGGER_SECONDS)
        self._live.add(device)
        if self._stopping.is_set():
            device.stop()
        try:
            return device.run()
        finally:
            self._live.discard(device)

    def _take(self, ended: set[Future[Record]]) -> None:
        self._record["devices"] += [future.result() for future in ended]
        self._record["devices"].sort(key=lambda device: device["number"])
        if ended:
            self._save()
        live = list(self._live)
        self._tell(", ".join(sorted({device.name for device in live})), sum(device.share_done() for device in live))

    def _tell(self, what: str, under_way: float = 0.0) -> None:
        self._progress(what, (len(self._record["devices"]) + under_way) / self._total)

    def _save(self) -> None:
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._file.with_name(f"{self._file.name}.part")
        unfinished.write_text(json.dumps(self._record))
        os.replace(unfinished, self._file)
