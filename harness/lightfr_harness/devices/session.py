"""One emulated device, from its start to its end, and what was seen of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightfr.v1 import manifest_pb2
from lightfr_harness.devices import device as stock_device
from lightfr_harness.devices.enforcement import Cage, Enforcement
from lightfr_harness.devices.link import Link, Loop
from lightfr_harness.devices.measuring import Sampler, Watched, cpu_seconds, peak_rss_bytes, reset_peak
from lightfr_harness.devices.profiles import Profile
from lightfr_harness.devices.record import PHASES, Record, breach, budget_breaches
from lightfr_harness.devices.scenario import Scenario

STOCK_DEVICE = Path(stock_device.__file__)
# How long a phase may take beyond its budget and its link before the device is given up, in seconds.
PATIENCE_SECONDS = 60.0
# After a phase, for bytes that are still in the proxy.
_SETTLING_SECONDS = 0.05
# How a process that lacks memory says so: Python, the C library's errno, the loader, OpenSSL.
_OUT_OF_MEMORY = ("MemoryError", "annot allocate memory", "failed to map segment", "MALLOC_FAILURE", "malloc failure")


@dataclass(frozen=True)
class Setting:
    """What all devices of a run share."""

    scenario: Scenario
    enforcement: Enforcement
    server: tuple[str, int]
    trust: Path
    loop: Loop
    sampler: Sampler
    script: Path
    fits: int
    recommendations: int


class Session:
    """Runs one device to its end. `stop` ends it early, from another thread."""

    def __init__(self, setting: Setting, profile: Profile, number: int, folder: Path, seed: int) -> None:
        self._setting, self._profile, self._folder = setting, profile, folder
        self._number, self._seed = number, seed
        self.name = profile.name
        self._child: subprocess.Popen[str] | None = None
        self._given_up = ""
        self._phases: dict[str, Record] = {}
        self._ended_seconds = 0.0
        self._phase_began = time.monotonic()
        self._stopped = threading.Event()

    def run(self) -> Record:
        """Start the device, follow it through its phases, and say what was seen."""
        setting = self._setting
        link = Link(setting.loop, setting.server, self._profile, self._seed)
        with Cage(self._profile, setting.enforcement) as cage, link:
            watched = self._start(cage, link)
            try:
                self._follow(watched, cage, link)
            finally:
                setting.sampler.remove(watched)
                self._end()
            return self._record(watched, cage)

    def stop(self) -> None:
        """End the device now."""
        self._stopped.set()
        if self._child is not None and self._child.poll() is None:
            self._child.kill()

    def share_done(self) -> float:
        """How far the device has come, by the time that its phases are expected to take."""
        expected = self._expected_seconds()
        done = sum(expected[phase] for phase in self._phases)
        current = PHASES[min(len(self._phases), len(PHASES) - 1)]
        of_current = min(time.monotonic() - self._phase_began, expected[current])
        total = sum(expected.values())
        return min(done + of_current, total) / total

    def _expected_seconds(self) -> dict[str, float]:
        """Roughly: the link decides for the sync, the CPU for the rest."""
        profile, scenario = self._profile, self._setting.scenario
        slow, link = 1 / min(profile.core_share, 1), scenario.download_bytes * 8 / profile.down_bits_per_second
        scan = scenario.codes_bytes / 5e9
        recommend = min(scan * slow * self._setting.recommendations, 10)
        return {
            "open": 0.3 * slow,
            "sync": 0.1 + link,
            "fit": 0.01 + 40 * scan * slow,
            "round": 0.1,
            "recommend": recommend,
        }

    def _start(self, cage: Cage, link: Link) -> Watched:
        asked = {
            "folder": str(self._folder),
            "server": f"https://localhost:{link.port}",
            "trust": str(self._setting.trust),
            "seed": self._seed,
            "items": self._setting.scenario.items,
            "ratings": self._setting.scenario.ratings,
            "fits": self._setting.fits,
            "recommendations": self._setting.recommendations,
        }
        # -P: modules beside the script must not stand in for others.
        command = cage.command([sys.executable, "-P", str(self._setting.script), json.dumps(asked)])
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with (self._folder / "errors.txt").open("w") as errors:
            # A session of its own: Ctrl-C is for whoever runs the devices, who then ends them.
            self._child = subprocess.Popen(command, stderr=errors, start_new_session=True, **pipes)
        if self._stopped.is_set():
            self.stop()
        watched = Watched(self._child.pid, PHASES[0])
        self._setting.sampler.add(watched)
        return watched

    def _follow(self, watched: Watched, cage: Cage, link: Link) -> None:
        """Measure phase by phase. The device runs when it starts, and when it is told to go on."""
        for phase in PHASES:
            watched.phase, self._phase_began = phase, time.monotonic()
            # Looked at while it still waits: a phase may be over in a millisecond.
            before = self._look(watched.pid, cage, link)
            if self._phases:
                self._tell_to_go_on()
            line = self._next_line(phase)
            self._ended_seconds = time.monotonic() - watched.started
            if not line:
                return
            time.sleep(_SETTLING_SECONDS)
            figures = _figures(before, self._look(watched.pid, cage, link), json.loads(line)["latencies_ms"])
            self._phases[phase] = {"ended_seconds": round(self._ended_seconds, 3), **figures}
            reset_peak(watched.pid)
        self._tell_to_go_on()

    def _tell_to_go_on(self) -> None:
        # It may have been ended while it waited.
        with suppress(BrokenPipeError):
            if self._child and self._child.stdin:
                self._child.stdin.write("\n")
                self._child.stdin.flush()

    def _look(self, pid: int, cage: Cage, link: Link) -> dict[str, float]:
        up, down = link.counts()
        return {
            "at": time.monotonic(),
            "cpu": cpu_seconds(pid),
            "throttled": cage.throttled_seconds(),
            "up": up,
            "down": down,
            "peak": peak_rss_bytes(pid),
        }

    def _next_line(self, phase: str) -> str:
        """What the device says at the end of a phase; empty if it ends, or is ended for taking too long."""
        timer = threading.Timer(self._patience(phase), self._give_up, [phase])
        timer.start()
        try:
            return self._child.stdout.readline() if self._child and self._child.stdout else ""
        finally:
            timer.cancel()

    def _patience(self, phase: str) -> float:
        profile, scenario = self._profile, self._setting.scenario
        budgets = {"fit": profile.fit_ms, "round": profile.round_ms, "recommend": profile.recommend_ms}
        link = 3 * scenario.download_bytes * 8 / profile.down_bits_per_second if phase in ("sync", "round") else 0
        return PATIENCE_SECONDS / min(profile.core_share, 1) ** 0.5 + 10 * budgets.get(phase, 0) / 1000 + link

    def _give_up(self, phase: str) -> None:
        self._given_up = phase
        self.stop()

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

    def _record(self, watched: Watched, cage: Cage) -> Record:
        code = self._child.returncode if self._child else -1
        finished = len(self._phases) == len(PHASES) and code == 0
        device: Record = {
            "number": self._number,
            "finished": finished,
            "ended": "" if finished else self._how_it_ended(cage, code),
            "profile": self._profile.record(),
            "phases": self._phases,
            "memory_timeline": watched.timeline(),
            "peak_anonymous_bytes": watched.most_anonymous_bytes,
            "peak_data_bytes": watched.most_data_bytes,
            "peak_charged_bytes": cage.most_charged_bytes(),
            "disk_bytes": disk_bytes(self._folder / "data"),
            "message_bytes": {},
        }
        early = [] if finished else self._early_end(device, watched)
        device["breaches"] = [*early, *budget_breaches(self._profile, device)]
        return device

    def _how_it_ended(self, cage: Cage, code: int) -> str:
        """memory, latency (given up), stopped (by us), link, or error."""
        if cage.was_killed():
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
        phase = PHASES[min(len(self._phases), len(PHASES) - 1)]
        seconds = self._ended_seconds
        if kind == "memory":
            seen = max((size for _, size, _ in watched.samples), default=0)
            actual = max(device["peak_charged_bytes"], device["peak_data_bytes"], seen)
            return [breach(kind, phase, seconds, self._profile.memory_bytes, actual)]
        if kind == "latency":
            return [breach(kind, phase, seconds, 1000 * self._patience(phase), 1000 * seconds)]
        return [breach(kind, phase, seconds, 0, 1)]


def _figures(before: dict[str, float], after: dict[str, float], latencies_ms: list[float]) -> Record:
    return {
        "cpu_seconds": after["cpu"] - before["cpu"],
        "wall_seconds": after["at"] - before["at"] - _SETTLING_SECONDS,
        "throttled_seconds": after["throttled"] - before["throttled"],
        "up_bytes": int(after["up"] - before["up"]),
        "down_bytes": int(after["down"] - before["down"]),
        "peak_rss_bytes": after["peak"],
        "latencies_ms": latencies_ms,
    }


def disk_bytes(folder: Path) -> dict[str, int]:
    """What a device keeps, by what it is. Sizes of files, not of the blocks they take."""
    used = {"codes": 0, "catalogue": 0, "store": 0, "other": 0}
    names = _artifact_names(folder / "models" / "current")
    for path in folder.rglob("*"):
        if path.is_file():
            usual = "other" if path.parent.name == "models" else "store"
            used[names.get(path.name, usual)] += path.stat().st_size
    return used


def _artifact_names(current: Path) -> dict[str, str]:
    if not current.exists():
        return {}
    signed = manifest_pb2.SignedManifest.FromString(current.read_bytes())
    manifest = manifest_pb2.Manifest.FromString(signed.manifest)
    return {manifest.codes.sha256.hex(): "codes", manifest.catalogue.sha256.hex(): "catalogue"}
