"""The coordinator of `bench load`: a process of its own, measured from outside."""

from __future__ import annotations

import os
import resource
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lightfr_harness.server.coordinator.child import CoordinatorProcess

_TICKS = os.sysconf("SC_CLK_TCK")


class MeasuredServer(CoordinatorProcess):
    """`lightfr-harness serve` with its options by name, and what it costs."""

    def __init__(self, folder: Path, authority: Path | None, items: Path, **options: Any) -> None:
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
        return sum(_times(self.process.pid)[:2])

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


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _times(pid: int) -> list[float]:
    """CPU seconds of a process: its own as user and system, and those of children that have ended."""
    return [int(field) / _TICKS for field in _stat(pid)[11:15]]


class LocalPostgres:
    """The processes of a PostgreSQL, where it runs on this machine; elsewhere its CPU time counts as none."""

    def __init__(self, database: str) -> None:
        import psycopg

        with psycopg.connect(database) as connection:
            backend = connection.info.backend_pid
            # Each connection is a child of the one process that listens.
            is_here = Path(f"/proc/{backend}").exists() and "postgres" in Path(f"/proc/{backend}/comm").read_text()
            self._first = int(_stat(backend)[1]) if is_here else None

    def cpu_seconds(self) -> float:
        """CPU time of all its processes so far, those that have ended included."""
        if self._first is None:
            return 0.0
        children = Path(f"/proc/{self._first}/task/{self._first}/children").read_text().split()
        return sum(_times(self._first)) + sum(sum(_times(int(child))) for child in children)


@dataclass(frozen=True)
class Spent:
    """What servers have used so far, or in a while."""

    cpu_seconds: float
    database_cpu_seconds: float
    written_bytes: int

    def __sub__(self, before: Spent) -> Spent:
        return Spent(
            self.cpu_seconds - before.cpu_seconds,
            self.database_cpu_seconds - before.database_cpu_seconds,
            self.written_bytes - before.written_bytes,
        )


class Servers:
    """One coordinator, or replicas on one database: measured as one."""

    def __init__(self, name: str, servers: Sequence[MeasuredServer], database: LocalPostgres | None = None) -> None:
        self.name, self._servers, self._database = name, list(servers), database

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where devices call, in turn."""
        return [one.address for one in self._servers]

    def measured(self) -> Spent:
        """So far."""
        return Spent(
            sum(one.cpu_seconds() for one in self._servers),
            self._database.cpu_seconds() if self._database else 0.0,
            sum(one.written_bytes() for one in self._servers),
        )

    def peak_rss_bytes(self) -> int:
        """The most memory that each has held, added up."""
        return sum(one.peak_rss_bytes() for one in self._servers)

    def metric(self, name: str) -> int:
        """The sum of a number of their metrics pages."""
        return sum(one.metric(name) for one in self._servers)


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Minimum, p50, p95, p99 and maximum; a quantile is the smallest value that this share does not exceed."""
    ordered = sorted(values)
    at = {"min": 0, "p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1}
    return {name: ordered[max(-int(-share * len(ordered) // 1) - 1, 0)] for name, share in at.items()}
