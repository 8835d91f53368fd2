"""A device's session in a process of its own, looked at from outside after each of its phases."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightfr import Device
from lightfr_harness.devices import device_session
from lightfr_harness.devices.proxy import CountingProxy

Progress = Callable[[str], None]


def watched_session(
    device: Device, ratings: int, popular: int, minimum_cohort: int, proxy: CountingProxy, progress: Progress
) -> list[dict[str, Any]]:
    """Run the device's session to its end; for each phase its name, what it said, and what was seen of it."""
    folder = device.identity.parent
    arguments = (folder, device.server, device.identity, device.trust, ratings, popular, minimum_cohort)
    command = [sys.executable, device_session.__file__, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        seen = _watched(child, proxy, progress)
    if child.returncode:
        raise RuntimeError(f"the device ended with {child.returncode}")
    return seen


def _watched(child: subprocess.Popen[str], proxy: CountingProxy, progress: Progress) -> list[dict[str, Any]]:
    if child.stdin is None or child.stdout is None:
        raise TypeError("the child has no pipes")
    seen = []
    before, cpu_before = proxy.counts(), 0
    for line in child.stdout:
        facts = json.loads(line)
        time.sleep(0.05)  # what was sent last may still be on its way through the proxy
        now, cpu_now = proxy.counts(), _cpu_ns(child.pid)
        crossed = {"up_bytes": now[0] - before[0], "down_bytes": now[1] - before[1]}
        seen.append({**facts, **crossed, "cpu_ns": cpu_now - cpu_before, **look(child.pid)})
        progress(facts["phase"])
        before, cpu_before = now, cpu_now
        child.stdin.write("\n")
        child.stdin.flush()
    return seen


def look(pid: int) -> dict[str, int]:
    """Peak memory and threads of a process now. VmHWM, since ru_maxrss counts the parent's memory before exec too."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {"peak_rss_bytes": 1024 * int(status["VmHWM"].split()[0]), "threads": int(status["Threads"])}


def _cpu_ns(pid: int) -> int:
    """CPU time of a process with one thread, in nanoseconds, as the scheduler counted it."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
