"""The run record: what audits read. Plain dicts and lists, ready for JSON.

    {"format": 1, "seed", "machine": {...}, "interrupted": bool,
     "enforcement": {"memory", "cpu", "memory_meaning", "cpu_meaning"},
     "scenario": {"items", "ratings", "bits", "dataset", "privacy", "cohort", "open_rows"},
     "devices": [{
        "number", "finished": bool, "ended": how it ended where not finished,
        "profile": {every figure of the profile, "sources": {...}},
        "phases": {"open" | "sync" | "fit" | "round" | "recommend": {
            "ended_seconds": since the device's start, "cpu_seconds", "wall_seconds", "throttled_seconds",
            "up_bytes", "down_bytes",                                      # at the socket
            "peak_rss_bytes", "threads", "latencies_ms": [...],
            "stages": {stage: {the figures of a phase, without latencies}}}},  # of the round; only phases that ended
        "memory_timeline": [[seconds, resident bytes, phase], ...],
        "peak_anonymous_bytes", "peak_data_bytes", "peak_charged_bytes",   # over the whole session
        "disk_bytes": {"codes", "open_rows", "catalogue", "store", "other"},
        "message_bytes": {name: [up, down]}, "message_counts": {name: n},  # inside TLS, without HTTP headers
        "loaded": [modules that a device must do without],
        "breaches": [{"kind": "memory" | "link" | "latency" | "traffic" | "storage" | "error",
                      "phase", "seconds": since the device's start, "limit", "actual"}]}]}

The stages of a round are those of lightfr.RoundStage, each from the end of the one before, and "finished", from the
last of them to the end of the phase. The fleet works while the device waits between two stages, and that wait counts
nowhere: the latency of a round is the time that the device itself takes.

Latencies are judged by their p95. The first fit after a sync reads all codes, the next ones do not. Memory breaches are
in bytes; "link" and "error" count failures, of which none is allowed.

A CPU quota slows a device down, it does not end it: what it costs shows as throttled_seconds and in the latencies, and
is a breach where a latency budget is passed. The same seed gives the same record but for times, memory and, by a few
bytes, what TLS adds.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from lightfr_harness.devices.profiles import MIB, Profile

FORMAT = 1
PHASES = ("open", "sync", "fit", "round", "recommend")

Record = dict[str, Any]


def machine() -> dict[str, Any]:
    """Where the run took place."""
    processor = "unknown"
    with suppress(OSError), open("/proc/cpuinfo") as file:
        named = (line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
        processor = next(named, processor)
    return {
        "system": platform.platform(),
        "processor": processor,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of all does not exceed; NaN of none."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else math.nan


def breach(kind: str, phase: str, seconds: float, limit: float, actual: float) -> Record:
    return {"kind": kind, "phase": phase, "seconds": round(seconds, 3), "limit": limit, "actual": actual}


def budget_breaches(profile: Profile, device: Record) -> list[Record]:
    """Latency, traffic and storage beyond the profile's budgets."""
    budgets = {"fit": profile.fit_ms, "round": profile.round_ms, "recommend": profile.recommend_ms}
    found = []
    for phase, ms in budgets.items():
        figures = device["phases"].get(phase, {"latencies_ms": []})
        if (p95 := quantile(figures["latencies_ms"], 0.95)) > ms:
            found.append(breach("latency", phase, figures["ended_seconds"], ms, p95))
    # A day's budget against one session, in the phase in which it was passed.
    for way, limit_mib in (("up_bytes", profile.up_mib_per_day), ("down_bytes", profile.down_mib_per_day)):
        total, limit = 0, round(limit_mib * MIB)
        for phase, figures in device["phases"].items():
            before, total = total, total + figures[way]
            if before <= limit < total:
                found.append(breach("traffic", phase, figures["ended_seconds"], limit, total))
    used, limit = sum(device["disk_bytes"].values()), round(profile.storage_mib * MIB)
    if used > limit:
        phase = list(device["phases"] or ["open"])[-1]
        ended = device["phases"].get(phase, {}).get("ended_seconds", 0.0)
        found.append(breach("storage", phase, ended, limit, used))
    return found
