"""Looking at processes from outside: memory, CPU time and threads come from /proc, and nothing runs inside the device.

One thread reads the memory of all devices from `statm`. memory_profiler reads the same file through psutil at five to
ten times the cost and does not tell anonymous pages from mapped ones, so it only gives a test its second opinion.
Peaks are the kernel's own (VmHWM), so nothing hides between two samples.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

SAMPLE_SECONDS = 0.05
# Points that a timeline keeps; of several samples the highest one stands for all.
MOST_POINTS = 1_000
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")

Sample = tuple[float, int, str]


class Watched:
    """One process under observation. `phase` is set by whoever runs it."""

    def __init__(self, pid: int, phase: str) -> None:
        self.pid, self.phase = pid, phase
        self.started = time.monotonic()
        self.samples: list[Sample] = []
        self.most_anonymous_bytes = 0
        self.most_data_bytes = 0

    def look(self) -> None:
        """Take one sample; nothing once the process has ended."""
        with suppress(OSError, ValueError):
            _, resident, shared, _, _, data, _ = map(int, Path(f"/proc/{self.pid}/statm").read_text().split())
            if resident:
                self.samples.append((time.monotonic() - self.started, resident * _PAGE_BYTES, self.phase))
                self.most_anonymous_bytes = max(self.most_anonymous_bytes, (resident - shared) * _PAGE_BYTES)
                self.most_data_bytes = max(self.most_data_bytes, data * _PAGE_BYTES)

    def timeline(self) -> list[list[float | int | str]]:
        """[seconds, bytes, phase] in order, at most MOST_POINTS of each phase."""
        thinned: list[Sample] = []
        for phase in dict.fromkeys(sample[2] for sample in self.samples):
            of_phase = [sample for sample in self.samples if sample[2] == phase]
            width = -(-len(of_phase) // MOST_POINTS)
            slices = (of_phase[at : at + width] for at in range(0, len(of_phase), width))
            thinned += [max(one, key=lambda sample: sample[1]) for one in slices]
        return [[round(seconds, 3), size, phase] for seconds, size, phase in thinned]


class Sampler:
    """One thread that looks at all watched processes, again and again."""

    def __init__(self, interval_seconds: float = SAMPLE_SECONDS) -> None:
        self._interval = interval_seconds
        self._watched: set[Watched] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def add(self, watched: Watched) -> None:
        with self._lock:
            self._watched.add(watched)

    def remove(self, watched: Watched) -> None:
        with self._lock:
            self._watched.discard(watched)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            with self._lock:
                now = list(self._watched)
            for watched in now:
                watched.look()


def peak_rss_bytes(pid: int) -> int:
    """The most that was resident since the last reset; 0 once the process has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return 0


def threads(pid: int) -> int:
    """How many threads a process has now; 0 once it has ended."""
    with suppress(OSError):
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    return 0


def reset_peak(pid: int) -> None:
    """Let the next phase have a peak of its own. Where that is not allowed, peaks are those since the start."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def cpu_seconds(pid: int) -> float:
    """CPU time of the threads that live, in nanoseconds where the kernel says so; 0 once the process has ended."""
    try:
        tasks = [(task / "schedstat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
        return sum(int(text.split()[0]) for text in tasks) / 1e9
    except (OSError, ValueError, IndexError):
        return _cpu_by_ticks(pid)


def _cpu_by_ticks(pid: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0
