"""Claim: the device's budgets are enough. Each breach that the emulation recorded is a finding, with its moment and phase.

What a profile grants is enforced and judged where the device runs; here it is only told. Devices of one profile stand
together: the worst figure of them, and every breach of any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lightfr_harness.audits.finding import Finding, counted, enforced

SOURCE = "the device's profile"
MIB = 2**20
Device = dict[str, Any]


@dataclass(frozen=True)
class Budget:
    """One figure of a profile: which breaches are about it, and what of a device is measured against it."""

    claim: str
    kind: str
    figure: str
    factor: float
    unit: str
    measured: Callable[[Device], float]
    # Only breaches of this phase; None for all.
    phase: str | None = None
    # Only breaches that name this, of those with the same kind.
    what: str | None = None

    def is_about(self, breach: dict[str, Any]) -> bool:
        """Whether a breach is one of this budget."""
        same = breach["kind"] == self.kind and self.what in (None, breach.get("what"))
        return same and self.phase in (None, breach["phase"])


def percentile(latencies: list[float], share: float) -> float:
    """The least latency that `share` of the calls do not pass; 0 without calls."""
    ordered = sorted(latencies)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _p95(phase: str) -> Callable[[Device], float]:
    return lambda device: percentile(device["phases"].get(phase, {}).get("latencies_ms", []), 0.95)


def _sum(direction: str) -> Callable[[Device], float]:
    return lambda device: sum(phase[direction] for phase in device["phases"].values())


def _peak(device: Device) -> float:
    return max((phase["peak_rss_bytes"] for phase in device["phases"].values()), default=0)


def _disk(device: Device) -> float:
    return sum(device["disk_bytes"].values())


BUDGETS = (
    Budget("memory", "memory", "memory_mib", MIB, "bytes", _peak),
    Budget("storage", "storage", "storage_mib", MIB, "bytes", _disk),
    Budget("upload a day", "traffic", "up_mib_per_day", MIB, "bytes", _sum("up_bytes"), what="up"),
    Budget("download a day", "traffic", "down_mib_per_day", MIB, "bytes", _sum("down_bytes"), what="down"),
    *(Budget(f"latency of {p}, p95", "latency", f"{p}_ms", 1, "ms", _p95(p), phase=p) for p in ("fit", "round", "recommend")),
)


def audit(devices: list[Device]) -> list[Finding]:
    """Every budget of every profile in the record, and whatever else was breached."""
    findings = []
    for name in dict.fromkeys(device["profile"]["name"] for device in devices):
        same = [device for device in devices if device["profile"]["name"] == name]
        for budget in BUDGETS:
            findings += _findings(budget, name, same)
        findings += [_other(name, breach) for breach in _breaches(same) if _is_other(breach)]
    return findings


def _findings(budget: Budget, name: str, devices: list[Device]) -> list[Finding]:
    """The worst breach of each phase, or one finding that the budget holds."""
    limit = budget.factor * devices[0]["profile"][budget.figure]
    worst = {}
    for breach in sorted(filter(budget.is_about, _breaches(devices)), key=lambda breach: breach["actual"]):
        worst[breach["phase"]] = breach
    if not worst:
        if not any(device["finished"] for device in devices):
            return []
        what = counted(limit, max(budget.measured(device) for device in devices))
        return [enforced(f"budget: {budget.claim}", SOURCE, what, budget.unit, limit, holds=True, mode=name)]
    return [_broken(f"budget: {budget.claim}", name, breach, budget.unit) for breach in worst.values()]


def _breaches(devices: list[Device]) -> list[dict[str, Any]]:
    return [breach for device in devices for breach in device["breaches"]]


def _is_other(breach: dict[str, Any]) -> bool:
    return not any(budget.is_about(breach) for budget in BUDGETS)


def _other(name: str, breach: dict[str, Any]) -> Finding:
    return _broken(f"budget: {breach['kind']}", name, breach, breach.get("unit", ""))


def _broken(claim: str, name: str, breach: dict[str, Any], unit: str) -> Finding:
    moment = f"{breach['seconds']:.1f} s after the start, in phase {breach['phase']}"
    what = counted(breach["limit"], breach["actual"], moment)
    mode = f"{name}, {breach['phase']}"
    return enforced(claim, SOURCE, what, unit, breach["limit"], holds=False, mode=mode)
