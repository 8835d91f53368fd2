"""Figures as people read them, by their unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PREFIXES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
MIB = 2**20
_TIMES = ((3.6e12, "hours"), (1e9, "s"), (1e6, "ms"))


def figure(value: float | None, unit: str) -> str:
    """A value with its unit; a dash for what was not measured."""
    if value is None:
        return "-"
    if unit == "bytes":
        return in_bytes(value)
    if unit == "bytes of memory":
        return in_mib(value)
    if unit == "joules":
        return in_joules(value)
    if unit.startswith("share"):
        return f"{100 * value:.1f} %"
    if unit == "accuracy":
        return f"{value:.4f}"
    if unit in ("times", "times the floor"):
        return f"{value:,.1f} x" if value < 100 else f"{value:,.0f} x"
    if unit == "ms":
        return f"{value:,.2f} ms" if value < 100 else f"{value:,.0f} ms"
    return f"{value:,.2f}"


def in_bytes(value: float) -> str:
    """Files and traffic: in powers of 1000, as the paper counts."""
    for size, name in _PREFIXES:
        if value >= size:
            return f"{value / size:,.1f} {name}"
    return f"{value:,.0f} B"


def in_mib(size_bytes: float) -> str:
    """Memory: in powers of 1024, as profiles and systems count."""
    return f"{size_bytes / MIB:,.1f} MiB" if size_bytes >= MIB else f"{size_bytes / MIB:.2g} MiB"


def in_joules(value: float) -> str:
    """Two digits: it is an estimate."""
    return f"{value:,.0f} J" if value >= 10 else f"{value:.2g} J"


def in_time(ns: float) -> str:
    """From nanoseconds."""
    for size, name in _TIMES:
        if ns >= size:
            return f"{ns / size:,.2f} {name}"
    return f"{ns / 1e3:,.1f} us"


def times_tick(value: float) -> str:
    """A factor on an axis."""
    return f"{value:,.10g} x" if value < 1e6 else f"{value:.0e} x".replace("e+0", "e")


def bytes_tick(value: float) -> str:
    """The same for an axis: no digits that say nothing."""
    return in_bytes(value).replace(".0 ", " ")


def limit_of(finding: Mapping[str, Any]) -> str:
    """A limit with its direction."""
    if finding["limit"] is None:
        return "none"
    return f"{'at least' if finding['at_least'] else 'at most'} {figure(finding['limit'], finding['unit'])}"


def ratio_of(finding: Mapping[str, Any]) -> str:
    """Measured over predicted, where both say something."""
    if finding["measured"] is None or not finding["predicted"]:
        return "-"
    return f"{finding['measured'] / finding['predicted']:.3g}"


def interval_of(finding: Mapping[str, Any]) -> str:
    """A 95 % interval; a dash for what was counted, not sampled."""
    if not finding["interval"] or finding["interval"][0] == finding["interval"][1]:
        return "-"
    low, high = (figure(end, finding["unit"]) for end in finding["interval"])
    return f"{low} to {high}"
