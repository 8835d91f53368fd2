"""A run: a coordinator, devices with their profiles, and the record of what happened."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightfr.errors import InvalidInputError, OutOfRangeError
from lightfr_harness.devices.enforcement import Enforcement
from lightfr_harness.devices.link import Loop
from lightfr_harness.devices.measuring import Sampler
from lightfr_harness.devices.profiles import Profile
from lightfr_harness.devices.record import FORMAT, Record, machine
from lightfr_harness.devices.scenario import JOURNAL, PRIVACY, Scenario
from lightfr_harness.devices.session import STOCK_DEVICE, Session, Setting
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess
from lightfr_harness.simulation.identities import make_identity

MOST_DEVICES = 4096
# Seconds between the starts of two devices: interpreters that start together fight for the cores.
STAGGER_SECONDS = 0.1
_PROGRESS_SECONDS = 0.5
_DAY_SECONDS = 86_400
# By name: a program that is imported before it is started would be loaded twice.
SERVING = "lightfr_harness.devices.serving"

# What is being done, and the share of the whole that is done.
Progress = Callable[[str, float], None]


class ResumeError(InvalidInputError):
    """A record that is not the beginning of this run."""


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
        _require_same_run(record, resume)
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


def _require_same_run(record: Record, resumed: Record) -> None:
    for name in ("format", "seed", "scenario", "enforcement"):
        if record[name] != resumed.get(name):
            raise ResumeError(f"the record to go on with has another {name}: repeat the options it was begun with")


def _missing(record: Record, profiles: Sequence[Profile], plan: Plan) -> list[tuple[int, Profile]]:
    done = {device["number"]: device["profile"] for device in record["devices"]}
    wanted = list(enumerate(profile for profile in profiles for _ in range(plan.copies)))
    for number, profile in done.items():
        if number >= len(wanted) or wanted[number][1].record() != profile:
            raise ResumeError("the record to go on with has other profiles: repeat the options it was begun with")
    return [(number, profile) for number, profile in wanted if number not in done]


class _Run:
    """The devices of one run, some at a time."""

    def __init__(self, scenario: Scenario, plan: Plan, record: Record, progress: Progress, file: Path | None) -> None:
        self._scenario, self._plan, self._record = scenario, plan, record
        self._progress, self._file = progress, file
        self._live: set[Session] = set()
        self._turn = threading.Lock()
        self._stopping = threading.Event()

    def devices(self, wanted: list[tuple[int, Profile]], total: int) -> None:
        """Run them; the record grows, in the order of their numbers."""
        self._total = total
        self._tell("making the catalogue")
        try:
            with tempfile.TemporaryDirectory() as folder, self._surroundings(Path(folder)) as (authority, setting):
                self._run_all(wanted, authority, setting, Path(folder))
        except KeyboardInterrupt:
            self._record["interrupted"] = True
        self._save()

    @contextmanager
    def _surroundings(self, folder: Path) -> Iterator[tuple[Authority, Setting]]:
        """An authority, a coordinator, the links' loop and the sampler."""
        authority = Authority.init(folder / "authority", ["localhost", "127.0.0.1"])
        coordinator = _coordinator(folder, self._scenario, self._plan, self._total)
        with closing(authority), coordinator as server, Loop() as loop, Sampler() as sampler:
            yield authority, self._setting(server, authority, loop, sampler)

    def _setting(self, server: CoordinatorProcess, authority: Authority, loop: Loop, sampler: Sampler) -> Setting:
        enforced = self._record["enforcement"]
        return Setting(
            self._scenario,
            Enforcement(enforced["memory"], enforced["cpu"]),
            ("127.0.0.1", int(server.addresses["server"].rsplit(":", 1)[1])),
            authority.folder / "trust.pem",
            loop,
            sampler,
            self._plan.script,
            self._plan.fits,
            self._plan.recommendations,
        )

    def _run_all(self, wanted: list[tuple[int, Profile]], authority: Authority, setting: Setting, folder: Path) -> None:
        workers = ThreadPoolExecutor(self._plan.at_once, "device")
        names: dict[int, str] = {}
        pending: set[Future[Record]] = set()
        try:
            for number, profile in wanted:
                home = folder / f"device-{number}"
                home.mkdir()
                names[number] = make_identity(authority, home / "identity.pem")
                session = Session(setting, profile, number, home, self._plan.seed + number)
                pending.add(workers.submit(self._one, session))
            while pending:
                ended, pending = wait(pending, _PROGRESS_SECONDS, FIRST_COMPLETED)
                self._take(ended, names, folder)
        except KeyboardInterrupt:
            self._stopping.set()
            for session in list(self._live):
                session.stop()
            workers.shutdown(cancel_futures=True)
            self._take({future for future in pending if not future.cancelled()}, names, folder)
            raise
        finally:
            workers.shutdown(cancel_futures=True)

    def _one(self, session: Session) -> Record:
        with self._turn:
            self._stopping.wait(STAGGER_SECONDS)
        self._live.add(session)
        if self._stopping.is_set():
            session.stop()
        try:
            return session.run()
        finally:
            self._live.discard(session)

    def _take(self, ended: set[Future[Record]], names: dict[int, str], folder: Path) -> None:
        for future in ended:
            device = future.result()
            device["message_bytes"] = _message_bytes(folder / JOURNAL, names[device["number"]])
            self._record["devices"].append(device)
        self._record["devices"].sort(key=lambda device: device["number"])
        if ended:
            self._save()
        live = list(self._live)
        self._tell(", ".join(sorted({session.name for session in live})), sum(session.share_done() for session in live))

    def _tell(self, what: str, under_way: float = 0.0) -> None:
        self._progress(what, (len(self._record["devices"]) + under_way) / self._total)

    def _save(self) -> None:
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._file.with_name(f"{self._file.name}.part")
        unfinished.write_text(json.dumps(self._record))
        os.replace(unfinished, self._file)


def _coordinator(folder: Path, scenario: Scenario, plan: Plan, n_devices: int) -> CoordinatorProcess:
    catalogue = folder / "items.txt"
    catalogue.write_text(str(scenario.items))
    # A round that never ends: every device takes part in it once, and the codes stay.
    how: dict[str, Any] = {"goal": n_devices + 1, "over_selection": 2, "deadline_seconds": _DAY_SECONDS}
    options = {"bits": scenario.bits, "seed": plan.seed, "integer_ids": True, "privacy": PRIVACY, **how}
    return CoordinatorProcess(folder / "server", folder / "authority", catalogue, module=SERVING, **options)


def _message_bytes(journal: Path, device: str) -> dict[str, list[int]]:
    """Bytes inside the messages of one device, up and down, by name."""
    totals: dict[str, list[int]] = {}
    for line in journal.read_text().splitlines() if journal.exists() else []:
        who, name, up, down = json.loads(line)
        if who == device:
            total = totals.setdefault(name, [0, 0])
            total[0] += up
            total[1] += down
    return totals
