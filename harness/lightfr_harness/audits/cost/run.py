"""From options to a cost record: emulated devices, the baseline, and timings; then the findings.

A record that was interrupted holds what was measured until then, and the same options continue it.
"""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from lightfr import __version__, _kernel
from lightfr_harness.audits.cost import findings
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.intervals import bootstrap_median_ratio
from lightfr_harness.baselines.measured import fcf_bytes
from lightfr_harness.bench import fit_scaling, topk

FORMAT = 1
FIGURE_1_ITEMS = (10**3, 10**4, 10**5, 10**6, 10**7)
FIGURE_1_BITS = 64
# Real-valued factors of more items are gigabytes; the formula alone stands then.
MOST_BASELINE_ITEMS = 1_000_000
TIMING_SECONDS = 0.1

# Called with what is being done and the share of all work that is done.
Progress = Callable[[str, float], None]
Step = Callable[[Callable[[float], None]], Any]


@dataclass(frozen=True)
class CostOptions:
    """What a cost audit is asked for."""

    scenario: Scenario = field(default_factory=Scenario)
    profiles: tuple[str, ...] = ("mid-phone",)
    seed: int = 0

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {"profiles": list(self.profiles), "seed": self.seed}


def run(
    options: CostOptions, progress: Progress = lambda what, share: None, earlier: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Measure and judge. Parts that `earlier`, an interrupted record of the same options, already has are taken over."""
    record = _start(options)
    if earlier is not None and continues(earlier, options):
        record |= {name: earlier[name] for name, _, _ in _steps(options, {}) if name in earlier}
    done, steps = 0.0, _steps(options, record)
    whole = sum(weight for _, weight, _ in steps)
    try:
        for name, weight, step in steps:
            if not _is_whole(record.get(name)):
                record[name] = step(lambda share, at=done, name=name, of=weight: progress(name, (at + share * of) / whole))
            done += weight
            progress(name, done / whole)
            record["interrupted"] = not _is_whole(record[name])
            if record["interrupted"]:
                break
    except KeyboardInterrupt:
        record["interrupted"] = True
    record["findings"] = [finding.record() for finding in findings.audit(record)]
    return record
