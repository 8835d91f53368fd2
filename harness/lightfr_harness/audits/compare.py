"""What got worse between two records with findings, beyond noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lightfr_harness.audits.finding import BROKEN

WORSE, BETTER, SAME, NEW, GONE = "worse", "better", "same", "new", "gone"
# Change of a figure that is noise. Bytes are counted, and move only by what TLS adds; the rest is timed on a shared
# machine: two runs of the same code were seen 46 % apart in a latency and 34 % in a ratio of times.
NOISE = {"bytes": 0.01, "ms": 1.0, "times": 0.5}
MEMORY, MEMORY_NOISE = "budget: memory", 0.05
TIMED_NOISE = 0.1
# Figures of which more is better, by their unit.
MORE_IS_BETTER = ("times",)

Finding = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One claim in one setting, before and after."""

    claim: str
    mode: str
    unit: str
    before: Finding | None
    after: Finding | None
    what: str


def compare(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """Every finding of either record, in the order of the second; what only the first has comes last."""
    old, new = _by_key(before), _by_key(after)
    changes = [_change(old.get(key), finding) for key, finding in new.items()]
    return changes + [_change(finding, None) for key, finding in old.items() if key not in new]


def worse(changes: list[Change]) -> list[Change]:
    """What got worse, and what is broken and was not there before."""
    return [c for c in changes if c.what == WORSE or (c.what == NEW and c.after and c.after["verdict"] == BROKEN)]


def _by_key(record: dict[str, Any]) -> dict[tuple[str, str], Finding]:
    return {(finding["claim"], finding["mode"]): finding for finding in record["findings"]}


def _change(before: Finding | None, after: Finding | None) -> Change:
    known = after or before or {}
    return Change(known["claim"], known["mode"], known["unit"], before, after, _what(before, after))


def _what(before: Finding | None, after: Finding | None) -> str:
    if before and after and before["measured"] is None and after["measured"] is None:
        return SAME
    if before is None or before["measured"] is None:
        return NEW
    if after is None or after["measured"] is None:
        return GONE
    if (before["verdict"] == BROKEN) != (after["verdict"] == BROKEN):
        return WORSE if after["verdict"] == BROKEN else BETTER
    step = after["measured"] - before["measured"]
    if _is_noise(before, after, step):
        return SAME
    return BETTER if (step > 0) == _more_is_better(after) else WORSE


def _is_noise(before: Finding, after: Finding, step: float) -> bool:
    share = MEMORY_NOISE if after["claim"] == MEMORY else NOISE.get(after["unit"], TIMED_NOISE)
    small = abs(step) <= share * max(abs(before["measured"]), 1e-12)
    return small or (_has_width(before, after) and _overlap(before["interval"], after["interval"]))


def _has_width(*findings: Finding) -> bool:
    return any(finding["interval"][0] < finding["interval"][1] for finding in findings)


def _overlap(one: list[float], other: list[float]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _more_is_better(finding: Finding) -> bool:
    return finding["at_least"] or finding["unit"] in MORE_IS_BETTER
