"""Child processes and what they used, as the kernel counted it."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SAMPLE_SECONDS = 0.02


@dataclass(frozen=True)
class Usage:
    """CPU time from wait4; threads as sampled from /proc, so a short-lived one may be missed."""

    exit_code: int
    cpu_seconds: float
    most_threads: int
    output: str


def run(command: Sequence[str], **popen: Any) -> Usage:
    """Run a command to its end."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **popen)
    threads = _most_threads(child.pid)
    if child.stdout is None:
        raise TypeError("the child has no standard output")
    output = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    return Usage(child.returncode, used.ru_utime + used.ru_stime, max(threads, default=0), output)


def _most_threads(pid: int) -> list[int]:
    """A list that grows while the process lives: how many threads it was seen with."""
    seen: list[int] = []

    def watch() -> None:
        tasks = Path(f"/proc/{pid}/task")
        try:
            while count := len(list(tasks.iterdir())):
                seen.append(count)
                time.sleep(_SAMPLE_SECONDS)
        except OSError:
            return

    threading.Thread(target=watch, daemon=True).start()
    return seen
