"""Claim: the device's budgets are enough. Each recorded breach is a finding, with its moment and phase.

What a profile grants is enforced and judged where the device runs; here it is only told. Devices of one profile stand
together: the worst figure of them, and every breach of any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lightfr_harness.audits.finding import Finding, counted, enforced
from lightfr_harness.devices.record import quantile

SOURCE = "the device's profile"
_UNITS = {"latency": "ms", "memory": "bytes of memory"}
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
    # Of latencies: a breach in another phase is another budget's.
    phase: str | None = None
    # Of traffic: which way.
    way: str = ""
    note: str = ""

    def limit(self, profile: dict[str, Any]) -> float:
        """What the profile grants."""
        return self.factor * float(profile[self.figure])

    def is_about(self, breach: dict[str, Any], device: Device) -> bool:
        """Whether a breach is one of this budget. Two of one kind are told apart by phase, or by what had passed."""
        if breach["kind"] != self.kind or self.phase not in (None, breach["phase"]):
            return False
        same_limit = abs(breach["limit"] - self.limit(device["profile"])) < 1
        return same_limit and (not self.way or breach["actual"] == _passed(device, self.way, breach["phase"]))


def _p95(phase: str) -> Callable[[Device], float]:
    def measured(device: Device) -> float:
        latencies = device["phases"].get(phase, {}).get("latencies_ms")
        return quantile(latencies, 0.95) if latencies else 0.0

    return measured


def _sum(direction: str) -> Callable[[Device], float]:
    return lambda device: sum(phase[direction] for phase in device["phases"].values())


def _passed(device: Device, way: str, last: str) -> float:
    """What had passed in a direction when a phase ended: more may have come after the one that broke the budget."""
    names = list(device["phases"])
    return float(sum(device["phases"][name][way] for name in names[: names.index(last) + 1]))


def own_memory(device: Device) -> float:
    """What cannot be dropped and read again, where a group counts; elsewhere the limit is on the data segment."""
    return float(device["peak_anonymous_bytes"] if device["peak_charged_bytes"] else device["peak_data_bytes"])


_OWN_MEMORY = "memory of its own; resident memory is more, by pages of files that can be dropped and read again"
BUDGETS = (
    Budget("memory", "memory", "memory_mib", MIB, "bytes of memory", own_memory, note=_OWN_MEMORY),
    Budget("storage", "storage", "storage_mib", MIB, "bytes", lambda device: sum(device["disk_bytes"].values())),
    Budget("upload a day", "traffic", "up_mib_per_day", MIB, "bytes", _sum("up_bytes"), way="up_bytes"),
    Budget("download a day", "traffic", "down_mib_per_day", MIB, "bytes", _sum("down_bytes"), way="down_bytes"),
    *(Budget(f"latency of {p}, p95", "latency", f"{p}_ms", 1, "ms", _p95(p), p) for p in ("fit", "round", "recommend")),
)


def audit(devices: list[Device]) -> list[Finding]:
    """Every budget of every profile in the record, and whatever else was breached."""
    names = dict.fromkeys(device["profile"]["name"] for device in devices)
    groups = {name: [device for device in devices if device["profile"]["name"] == name] for name in names}
    findings = [found for budget in BUDGETS for name, same in groups.items() for found in _findings(budget, name, same)]
    for name, same in groups.items():
        # No figure of a profile stands for these: a device that was given up, lost its link or failed.
        breaches = [(breach, device) for device in same for breach in device["breaches"]]
        others = [b for b, device in breaches if not any(budget.is_about(b, device) for budget in BUDGETS)]
        findings += [_broken(f"budget: {b['kind']}", name, b, _UNITS.get(b["kind"], "")) for b in others]
    return findings


def _findings(budget: Budget, name: str, devices: list[Device]) -> list[Finding]:
    """The worst breach of each phase, or one finding that the budget holds."""
    profile, claim, worst = devices[0]["profile"], f"budget: {budget.claim}", {}
    breaches = [breach for device in devices for breach in device["breaches"] if budget.is_about(breach, device)]
    for breach in sorted(breaches, key=lambda breach: breach["actual"]):
        worst[breach["phase"]] = breach
    if worst:
        return [_broken(claim, name, breach, budget.unit) for breach in worst.values()]
    measured = [budget.measured(device) for device in devices if device["finished"]]
    if not measured:
        return []
    what = counted(budget.limit(profile), max(measured), budget.note)
    return [enforced(claim, SOURCE, what, budget.unit, budget.limit(profile), holds=True, mode=name)]


def _broken(claim: str, name: str, breach: dict[str, Any], unit: str) -> Finding:
    moment = f"{breach['seconds']:.1f} s after the start, in phase {breach['phase']}"
    what = counted(breach["limit"], breach["actual"], moment)
    mode = f"{name}, {breach['phase']}"
    return enforced(claim, SOURCE, what, unit, breach["limit"], holds=False, mode=mode)
