"""Child processes and what they used, as the kernel counted it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence


def cpu_seconds(command: Sequence[str]) -> float:
    """Run a command to its end; the CPU time of its process, from wait4."""
    child = subprocess.Popen(command)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return used.ru_utime + used.ru_stime
