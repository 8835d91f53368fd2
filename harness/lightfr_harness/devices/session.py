"""One device, from its start to its end, and what was seen of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightfr.v1 import manifest_pb2
from lightfr_harness.devices import device as stock_device
from lightfr_harness.devices.enforcement import Enforcement, ProcessLimits
from lightfr_harness.devices.link import Link
from lightfr_harness.devices.measuring import Watched, cpu_seconds, peak_rss_bytes, reset_peak, threads
from lightfr_harness.devices.profiles import Profile
from lightfr_harness.devices.record import PHASES, Record, breach, budget_breaches
from lightfr_harness.devices.surroundings import FleetError, Surroundings
from lightfr_harness.server.coordinator.publishing import artifact_kinds

STOCK_DEVICE = Path(stock_device.__file__)
# How long a phase may take beyond its budget and its link before the device is given up, in seconds.
PATIENCE_SECONDS = 60.0
# After a phase, for bytes that are still in the proxy. After a stage there are none: its answer has come through.
_SETTLING_SECONDS = 0.05
# From the last stage that a device reported to the end of the phase.
LAST_STAGE = "finished"
# How a process that lacks memory says so: Python, the C library's errno, the loader, OpenSSL.
_OUT_OF_MEMORY = ("MemoryError", "annot allocate memory", "failed to map segment", "MALLOC_FAILURE", "malloc failure")


@dataclass(frozen=True)
class Session:
    """What a device is asked to do, and how."""

    phases: tuple[str, ...] = PHASES
    fits: int = 10
    recommendations: int = 100
    # Another device than the stock one: for tests that plant a fault.
    script: Path = STOCK_DEVICE


class MeasuredDevice:
    """Runs one device to its end, under a profile or without one. `stop` ends it early, from another thread."""

    def __init__(
        self,
        around: Surroundings,
        session: Session,
        enforcement: Enforcement,
        profile: Profile | None,
        number: int,
        seed: int,
        progress: Callable[[str], None] = lambda phase: None,
    ) -> None:
        self._around, self._session, self._profile = around, session, profile
        self._number, self._seed, self._progress = number, seed, progress
        self._limits = ProcessLimits(profile, enforcement)
        self._link = Link(around.loop, around.server, profile, seed)
        self.name = profile.name if profile else "no profile"
        self._folder, self._certified_name = around.new_device(number)
        self._child: subprocess.Popen[str] | None = None
        self._given_up = ""
        self._phases: dict[str, Record] = {}
        self._loaded: list[str] = []
        self._ended_seconds = 0.0
        self._phase_began = time.monotonic()
        self._stopped = threading.Event()

    def run(self) -> Record:
        """Start the device, follow it through its phases, and say what was seen."""
        with self._limits, self._link:
            watched = self._start()
            try:
                for phase in self._session.phases:
                    if not self._live(phase, watched):
                        break
                else:
                    self._tell_to_go_on()
            finally:
                self._around.sampler.remove(watched)
                self._end()
            return self._record(watched)

    def stop(self) -> None:
        """End the device now."""
        self._stopped.set()
        if self._child is not None and self._child.poll() is None:
            self._child.kill()

    def share_done(self) -> float:
        """How far the device has come, by the time that its phases are expected to take."""
        expected = self._expected_seconds()
        done = sum(expected[phase] for phase in self._phases)
        of_current = min(time.monotonic() - self._phase_began, expected[self._current_phase()])
        total = sum(expected[phase] for phase in self._session.phases)
        return min(done + of_current, total) / total

    def _current_phase(self) -> str:
        """The phase that the device is in; the last one when all are over."""
        return self._session.phases[min(len(self._phases), len(self._session.phases) - 1)]

    def _expected_seconds(self) -> dict[str, float]:
        """Roughly: the link decides for the sync, the CPU for the rest, and the fleet for a secure round."""
        scenario, profile = self._around.scenario, self._profile
        slow = 1 / min(profile.core_share, 1) if profile else 1.0
        link = scenario.download_bytes * 8 / profile.down_bits_per_second if profile else 0.0
        scan = scenario.codes_bytes / 5e9
        return {
            "open": 0.3 * slow,
            "sync": 0.1 + link,
            "fit": 0.01 + 40 * scan * slow,
            "round": 0.1 + (0.06 * scenario.cohort + 0.3 * slow if scenario.is_secure else 0),
            "next_sync": 0.1,
            "recommend": min(scan * slow * self._session.recommendations, 10),
        }

    def _start(self) -> Watched:
        scenario = self._around.scenario
        asked = {
            "folder": str(self._folder),
            "server": f"https://localhost:{self._link.port}",
            "trust": str(self._around.trust),
            "phases": self._session.phases,
            "seed": self._seed,
            "items": scenario.rated_items,
            "popular": scenario.open_rows or scenario.items,
            "ratings": scenario.ratings,
            "minimum_cohort": self._around.minimum_cohort,
            "fits": self._session.fits,
            "recommendations": self._session.recommendations,
        }
        # -P: modules beside the script must not stand in for others.
        command = self._limits.command([sys.executable, "-P", str(self._session.script), json.dumps(asked)])
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with (self._folder / "errors.txt").open("w") as errors:
            # A session of its own: Ctrl-C is for whoever runs the devices, who then ends them.
            self._child = subprocess.Popen(command, stderr=errors, start_new_session=True, **pipes)
        if self._stopped.is_set():
            self.stop()
        watched = Watched(self._child.pid, self._session.phases[0])
        self._around.sampler.add(watched)
        return watched

    def _live(self, phase: str, watched: Watched) -> bool:
        """Let the device live one phase and measure it, stage by stage; False if it ended early.

        The device runs when it starts, and when it is told to go on. In a secure round the fleet works in between.
        """
        fleet = self._around.fleet if phase == "round" else None
        with ExitStack() as turn:
            if fleet is not None:
                turn.enter_context(fleet.turn())
            watched.phase, self._phase_began = phase, time.monotonic()
            # Looked at while it still waits: a phase may be over in a millisecond.
            last = self._look(watched.pid)
            stages: dict[str, Record] = {}
            if self._phases:
                self._tell_to_go_on()
            while told := self._next_told(phase):
                is_stage = "stage" in told
                self._ended_seconds = time.monotonic() - watched.started
                if not is_stage:
                    time.sleep(_SETTLING_SECONDS)
                stage = told["stage"] if is_stage else LAST_STAGE
                seen = _difference(last, self._look(watched.pid), 0 if is_stage else _SETTLING_SECONDS)
                stages[stage] = _total([stages[stage], seen]) if stage in stages else seen
                if not is_stage:
                    break
                if fleet is not None:
                    try:
                        fleet.follow(stage)
                    except FleetError:
                        if not self._stopped.is_set():
                            raise
                reset_peak(watched.pid)
                last = self._look(watched.pid)
                self._tell_to_go_on()
            else:
                self._ended_seconds = time.monotonic() - watched.started
                return False
        self._phases[phase] = {
            "ended_seconds": round(self._ended_seconds, 3),
            **_total(list(stages.values())),
            "latencies_ms": told["latencies_ms"],
            **({"stages": stages} if len(stages) > 1 else {}),
        }
        self._loaded = told["loaded"]
        self._progress(phase)
        reset_peak(watched.pid)
        return True

    def _tell_to_go_on(self) -> None:
        # It may have been ended while it waited.
        with suppress(BrokenPipeError):
            if self._child and self._child.stdin:
                self._child.stdin.write("\n")
                self._child.stdin.flush()

    def _look(self, pid: int) -> Record:
        up, down = self._link.counts()
        return {
            "at": time.monotonic(),
            "cpu": cpu_seconds(pid),
            "throttled": self._limits.throttled_seconds(),
            "up": up,
            "down": down,
            "peak": peak_rss_bytes(pid),
            "threads": threads(pid),
        }

    def _next_told(self, phase: str) -> dict[str, Any] | None:
        """What the device says next; None if it ends, or is ended for taking too long."""

        def give_up() -> None:
            self._given_up = phase
            self.stop()

        timer = threading.Timer(self._patience(phase), give_up)
        timer.start()
        try:
            line = self._child.stdout.readline() if self._child and self._child.stdout else ""
            return dict(json.loads(line)) if line else None
        finally:
            timer.cancel()

    def _patience(self, phase: str) -> float:
        profile, scenario = self._profile, self._around.scenario
        if profile is None:
            return 5 * PATIENCE_SECONDS
        budgets = {"fit": profile.fit_ms, "round": profile.round_ms, "recommend": profile.recommend_ms}
        link = 3 * scenario.download_bytes * 8 / profile.down_bits_per_second if phase in ("sync", "round") else 0
        return float(PATIENCE_SECONDS / min(profile.core_share, 1) ** 0.5 + 10 * budgets.get(phase, 0) / 1000 + link)

    def _end(self) -> None:
        child = self._child
        if child is None:
            return
        try:
            child.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
        except (OSError, ValueError):
            child.kill()
            child.wait()

    def _record(self, watched: Watched) -> Record:
        code = self._child.returncode if self._child else -1
        finished = len(self._phases) == len(self._session.phases) and code == 0
        device: Record = {
            "number": self._number,
            "finished": finished,
            "ended": "" if finished else self._how_it_ended(code),
            "profile": self._profile.record() if self._profile else None,
            "phases": self._phases,
            "loaded": self._loaded,
            "memory_timeline": watched.timeline(),
            "peak_anonymous_bytes": watched.most_anonymous_bytes,
            "peak_data_bytes": watched.most_data_bytes,
            "peak_charged_bytes": self._limits.most_charged_bytes(),
            "disk_bytes": disk_bytes(self._folder / "data"),
        }
        device["message_bytes"], device["message_counts"] = self._around.messages_of(self._certified_name)
        early = [] if finished else self._early_end(device, watched)
        device["breaches"] = [*early, *(budget_breaches(self._profile, device) if self._profile else ())]
        return device

    def _how_it_ended(self, code: int) -> str:
        """memory, latency (given up), stopped (by us), link, or error."""
        if self._limits.was_killed():
            return "memory"
        if self._given_up:
            return "latency"
        if self._stopped.is_set():
            return "stopped"
        said = (self._folder / "errors.txt").read_text(errors="replace")
        if any(sign in said for sign in _OUT_OF_MEMORY):
            return "memory"
        # The name of the error alone: its message might tell what the user rated.
        name = (said.strip().splitlines() or [""])[-1].split(":")[0].rpartition(".")[2]
        return "link" if name == "ServerUnavailableError" else f"error, exit code {code}, {name}"

    def _early_end(self, device: Record, watched: Watched) -> list[Record]:
        kind = device["ended"].split(",")[0]
        if kind == "stopped":
            return []
        phase, seconds = self._current_phase(), self._ended_seconds
        if kind == "memory":
            seen = max((size for _, size, _ in watched.samples), default=0)
            actual = max(device["peak_charged_bytes"], device["peak_data_bytes"], seen)
            limit = self._profile.memory_bytes if self._profile else 0
            return [breach(kind, phase, seconds, limit, actual)]
        if kind == "latency":
            return [breach(kind, phase, seconds, 1000 * self._patience(phase), 1000 * seconds)]
        return [breach(kind, phase, seconds, 0, 1)]


def _difference(before: Record, after: Record, settling_seconds: float) -> Record:
    return {
        "cpu_seconds": after["cpu"] - before["cpu"],
        "wall_seconds": after["at"] - before["at"] - settling_seconds,
        "throttled_seconds": after["throttled"] - before["throttled"],
        "up_bytes": after["up"] - before["up"],
        "down_bytes": after["down"] - before["down"],
        "peak_rss_bytes": after["peak"],
        "threads": after["threads"],
    }


def _total(figures: list[Record]) -> Record:
    """Several stages as one: times and bytes add up, of peaks the highest counts."""
    highest = ("peak_rss_bytes", "threads")
    return {name: (max if name in highest else sum)(one[name] for one in figures) for name in figures[0]}


def disk_bytes(folder: Path) -> dict[str, int]:
    """What a device keeps, by what it is. Sizes of files, not of the blocks they take."""
    used, names = {"codes": 0, "open_rows": 0, "catalogue": 0, "store": 0, "other": 0}, {}
    current = folder / "models" / "current"
    if current.exists():
        signed = manifest_pb2.SignedManifest.FromString(current.read_bytes())
        manifest = manifest_pb2.Manifest.FromString(signed.manifest)
        names = artifact_kinds(manifest)
    for path in folder.rglob("*"):
        if path.is_file():
            usual = "other" if path.parent.name == "models" else "store"
            kind = names.get(path.name, usual)
            used[kind if kind in used else usual] += path.stat().st_size
    return used
