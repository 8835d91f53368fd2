"""Limits on a process: cgroup v2, cgroup v1 or rlimits for memory; a cgroup's quota for the CPU.

A process starts through a shell that first joins the groups (or lowers its own limits) and then becomes the program, so
that nothing of the program runs or allocates outside. Groups are made below the group that the harness itself is in:
whatever limits that has go on holding.

What the memory limit means differs:
- `cgroup-v2`, `cgroup-v1`: what the kernel charges to the group. Pages of files that the process has mapped or written
  are charged too, but they are given back before anything is killed, so a large mapped catalogue slows a device down
  rather than ending it. Pages of libraries that another process has read already are charged to that one.
- `rlimit`: RLIMIT_DATA, private writable memory by address space, touched or not; mapped files do not count at all.
  An allocation beyond fails inside the process, which then ends by itself.
"""

from __future__ import annotations

import itertools
import os
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from lightfr.errors import LightFRError
from lightfr_harness.devices.profiles import Profile

V2, V1, RLIMIT, NONE = "cgroup-v2", "cgroup-v1", "rlimit", "none"
MEMORY_MODES = (V2, V1, RLIMIT)
CPU_MODES = (V2, V1, NONE)
# Short periods keep a slow core slow: within one period a process runs at the full speed of this machine.
# The kernel takes no quota below 1 ms, nor a period above 1 s.
_SHORTEST_PERIOD_US, _LONGEST_PERIOD_US, _LEAST_QUOTA_US = 10_000, 1_000_000, 1_000
_REMOVAL_SECONDS = 5.0
_numbers = itertools.count()


class EnforcementError(LightFRError):
    """This machine cannot enforce a limit in the way that was asked for."""


@dataclass(frozen=True)
class Enforcement:
    """How limits are enforced in a run."""

    memory: str
    cpu: str

    @classmethod
    def choose(cls, memory: str | None = None, cpu: str | None = None) -> Enforcement:
        """The strictest that the machine allows, or what is named; raises EnforcementError if that is not possible."""
        return cls(_chosen("memory", memory, memory_modes()), _chosen("CPU", cpu, cpu_modes()))

    def record(self) -> dict[str, str]:
        """For JSON."""
        meanings = {
            V2: "charged to a cgroup v2; killed beyond it, after file pages were given back",
            V1: "charged to a cgroup v1; killed beyond it, after file pages were given back",
            RLIMIT: "RLIMIT_DATA: private writable memory, touched or not; allocations beyond it fail",
        }
        quota = "no CPU quota on this machine: latencies are those of an unthrottled core"
        cpu = quota if self.cpu == NONE else "quota of one core: the profile's cpu_quota x relative_speed"
        return {"memory": self.memory, "cpu": self.cpu, "memory_meaning": meanings[self.memory], "cpu_meaning": cpu}


def _chosen(what: str, wanted: str | None, possible: Sequence[str]) -> str:
    if wanted is None:
        return possible[0]
    if wanted not in possible:
        raise EnforcementError(f"{what} cannot be limited by '{wanted}' here, choose one of {', '.join(possible)}")
    return wanted


def memory_modes() -> tuple[str, ...]:
    """Ways to limit memory on this machine, the best first."""
    return (*(mode for mode in (V2, V1) if _parent(mode, "memory")), RLIMIT)


def cpu_modes() -> tuple[str, ...]:
    """Ways to limit the CPU on this machine, the best first."""
    return (*(mode for mode in (V2, V1) if _parent(mode, "cpu")), NONE)


@cache
def _parent(mode: str, controller: str) -> Path | None:
    """The group below which ours can be made; None where that is refused. Tried, since rights are hard to predict."""
    for parent in _own_groups(mode, controller):
        probe = parent / f"lightfr-{os.getpid()}-probe"
        try:
            if mode == V2 and controller not in (parent / "cgroup.subtree_control").read_text().split():
                (parent / "cgroup.subtree_control").write_text(f"+{controller}")
            probe.mkdir()
        except OSError:
            continue
        try:
            if (probe / _LIMIT_FILES[mode, controller]).exists():
                _sweep(parent)
                return parent
        finally:
            probe.rmdir()
    return None


def _sweep(parent: Path) -> None:
    """Remove what a harness that was killed could not; a group that is in use refuses."""
    for left in parent.glob("lightfr-*-*"):
        if not Path(f"/proc/{left.name.split('-')[1]}").exists():
            with suppress(OSError):
                left.rmdir()


_LIMIT_FILES = {
    (V2, "memory"): "memory.max",
    (V2, "cpu"): "cpu.max",
    (V1, "memory"): "memory.limit_in_bytes",
    (V1, "cpu"): "cpu.cfs_quota_us",
}


def _own_groups(mode: str, controller: str) -> list[Path]:
    """The group that this process is in; in v2 also the one above, since a group with processes delegates nothing."""
    mount = _mount(mode, controller)
    if mount is None:
        return []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" if mode == V2 else controller in controllers.split(","):
            own = mount / path.lstrip("/")
            return [own, own.parent] if mode == V2 and own != mount else [own]
    return []


def _mount(mode: str, controller: str) -> Path | None:
    kind = "cgroup2" if mode == V2 else "cgroup"
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return None
    for _, where, actual, options, *_ in map(str.split, mounts):
        if actual == kind and (mode == V2 or controller in options.split(",")):
            return Path(where)
    return None


@dataclass(frozen=True)
class Group:
    """One cgroup of ours, with one limited controller."""

    path: Path
    mode: str

    def read(self, name: str) -> str:
        """A file of the group; empty once it is gone."""
        try:
            return (self.path / name).read_text()
        except OSError:
            return ""

    def figure(self, name: str, key: str) -> int:
        """A `key number` line of a file; 0 without one."""
        for line in self.read(name).splitlines():
            if line.startswith(f"{key} "):
                return int(line.split()[1])
        return 0

    def remove(self) -> None:
        """Remove the empty group; the kernel may need a moment after the last process has ended."""
        deadline = time.monotonic() + _REMOVAL_SECONDS
        while self.path.exists():
            try:
                self.path.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


def _make_group(mode: str, controller: str, limits: Callable[[Group], None]) -> Group:
    parent = _parent(mode, controller)
    if parent is None:
        raise EnforcementError(f"{mode} offers no {controller} controller here: choose another enforcement")
    group = Group(parent / f"lightfr-{os.getpid()}-{next(_numbers)}", mode)
    group.path.mkdir()
    try:
        limits(group)
    except OSError as error:
        group.remove()
        raise EnforcementError(f"{mode} refused a {controller} limit: {error.strerror}") from error
    return group


def _limit_memory(limit_bytes: int) -> Callable[[Group], None]:
    def limit(group: Group) -> None:
        if group.mode == V2:
            (group.path / "memory.max").write_text(str(limit_bytes))
            swap = group.path / "memory.swap.max"
            swap_limit = 0
        else:
            (group.path / "memory.limit_in_bytes").write_text(str(limit_bytes))
            swap = group.path / "memory.memsw.limit_in_bytes"
            swap_limit = limit_bytes
        # Phones have no disk to swap to. Absent where the kernel does not account for swap.
        if swap.exists():
            swap.write_text(str(swap_limit))

    return limit


def quota_us(core_share: float) -> tuple[int, int]:
    """Quota and period, in microseconds, for a share of one core."""
    period = min(max(_SHORTEST_PERIOD_US, round(_LEAST_QUOTA_US / core_share)), _LONGEST_PERIOD_US)
    return max(round(core_share * period), _LEAST_QUOTA_US), period


def _limit_cpu(core_share: float) -> Callable[[Group], None]:
    def limit(group: Group) -> None:
        quota, period = quota_us(core_share)
        if group.mode == V2:
            (group.path / "cpu.max").write_text(f"{quota} {period}")
        else:
            (group.path / "cpu.cfs_period_us").write_text(str(period))
            (group.path / "cpu.cfs_quota_us").write_text(str(quota))

    return limit


@dataclass
class ProcessLimits:
    """The limits of one device, or none without a profile. Enter, start `command(...)`, leave when that has ended."""

    profile: Profile | None
    enforcement: Enforcement
    memory_group: Group | None = field(default=None, init=False)
    cpu_group: Group | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        if self.profile is None:
            return self
        if self.enforcement.memory != RLIMIT:
            limit = _limit_memory(self.profile.memory_bytes)
            self.memory_group = _make_group(self.enforcement.memory, "memory", limit)
        if self.enforcement.cpu != NONE:
            try:
                self.cpu_group = _make_group(self.enforcement.cpu, "cpu", _limit_cpu(self.profile.core_share))
            except EnforcementError:
                self._remove()
                raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._remove()

    def _remove(self) -> None:
        for group in (self.memory_group, self.cpu_group):
            if group is not None:
                group.remove()

    def command(self, program: Sequence[str]) -> list[str]:
        """The program, behind a shell that takes the limits on; if that fails, the program does not run."""
        if self.profile is None:
            return list(program)
        steps = ["set -e"]
        groups = [group for group in (self.memory_group, self.cpu_group) if group is not None]
        steps += [f"echo $$ > {shlex.quote(str(group.path / 'cgroup.procs'))}" for group in groups]
        if self.enforcement.memory == RLIMIT:
            steps.append(f"ulimit -d {self.profile.memory_bytes // 1024}")
        return ["/bin/sh", "-c", "; ".join([*steps, 'exec "$@"']), "sh", *program]

    def was_killed(self) -> bool:
        """Whether the kernel ended the process because of its memory."""
        group = self.memory_group
        if group is None:
            return False
        return group.figure("memory.events" if group.mode == V2 else "memory.oom_control", "oom_kill") > 0

    def most_charged_bytes(self) -> int:
        """The most that was charged at once, file pages included; 0 where nobody counts."""
        group = self.memory_group
        if group is None:
            return 0
        return int(group.read("memory.peak" if group.mode == V2 else "memory.max_usage_in_bytes") or 0)

    def throttled_seconds(self) -> float:
        """How long the process had to wait for its quota."""
        group = self.cpu_group
        if group is None:
            return 0.0
        microseconds = group.figure("cpu.stat", "throttled_usec")
        return microseconds / 1e6 if group.mode == V2 else group.figure("cpu.stat", "throttled_time") / 1e9
