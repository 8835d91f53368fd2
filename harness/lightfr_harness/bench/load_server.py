"""The coordinator of `bench load`: a process of its own, measured from outside."""

from __future__ import annotations

import os
import resource
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lightfr_harness.server.coordinator.child import CoordinatorProcess

_TICKS = os.sysconf("SC_CLK_TCK")


class MeasuredServer(CoordinatorProcess):
    """`lightfr-harness serve` with its options by name, and what it costs."""

    def __init__(self, folder: Path, authority: Path, items: Path, **options: Any) -> None:
        # It holds thousands of connections, as the devices' processes do; they inherit the limit.
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        super().__init__(folder, authority, items, **options)

    @property
    def address(self) -> tuple[str, int]:
        """Where devices call."""
        parts = urlsplit(self.addresses["server"])
        return str(parts.hostname), int(parts.port or 443)

    def cpu_seconds(self) -> float:
        """CPU time so far, of all threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def written_bytes(self) -> int:
        """What it has had written to disks so far."""
        lines = Path(f"/proc/{self.process.pid}/io").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("write_bytes")).split()[1])

    def rss_bytes(self) -> int:
        """Memory that it holds now."""
        return self._status("VmRSS")

    def peak_rss_bytes(self) -> int:
        """The most memory that it has held."""
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])

    def metric(self, name: str) -> int:
        """A number of its metrics page, by name and labels; 0 when it is not there yet."""
        with urllib.request.urlopen(f"{self.addresses['operations']}/metrics") as page:
            lines = page.read().decode().splitlines()
        return int(float(next((line for line in lines if line.startswith(f"{name} ")), "0").split()[-1]))


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Minimum, p50, p95, p99 and maximum; a quantile is the smallest value that this share does not exceed."""
    ordered = sorted(values)
    at = {"min": 0, "p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1}
    return {name: ordered[max(-int(-share * len(ordered) // 1) - 1, 0)] for name, share in at.items()}
