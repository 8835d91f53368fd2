"""What an audit says about one claim."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

HOLDS, BROKEN, FOR_INFORMATION = "holds", "broken", "for information"

Interval = tuple[float, float]


@dataclass(frozen=True)
class Finding:
    """One claim in one setting, measured. Made by `at_most`, `at_least` or `for_information`, which set the verdict.

    `predicted` is what the claim's author expects; for the privacy audits, what guessing reaches without any capture.
    `interval` holds the true value with 95 % confidence. The verdict compares `measured` itself with the limit.
    """

    claim: str
    source: str
    predicted: float
    measured: float
    unit: str
    limit: float | None
    verdict: str
    interval: Interval
    mode: str = ""
    at_least: bool = False
    note: str = ""

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Measurement:
    """A figure beside the one it is judged by, before any limit."""

    predicted: float
    measured: float
    interval: Interval
    note: str = ""


def at_most(claim: str, source: str, what: Measurement, unit: str, limit: float, mode: str = "") -> Finding:
    """The claim holds while the figure does not pass the limit."""
    return _make(claim, source, what, unit, limit, HOLDS if what.measured <= limit else BROKEN, mode, at_least=False)


def at_least(claim: str, source: str, what: Measurement, unit: str, limit: float, mode: str = "") -> Finding:
    """The claim holds while the figure reaches the limit."""
    return _make(claim, source, what, unit, limit, HOLDS if what.measured >= limit else BROKEN, mode, at_least=True)


def for_information(claim: str, source: str, what: Measurement, unit: str, mode: str = "") -> Finding:
    """A figure that nothing promises anything about."""
    return _make(claim, source, what, unit, None, FOR_INFORMATION, mode, at_least=False)


def _make(
    claim: str,
    source: str,
    what: Measurement,
    unit: str,
    limit: float | None,
    verdict: str,
    mode: str,
    *,
    at_least: bool,
) -> Finding:
    # Rounding noise must not decide a verdict's JSON: nine digits are beyond any figure here.
    low, high = (round(float(end), 9) for end in what.interval)
    predicted, measured = round(float(what.predicted), 9), round(float(what.measured), 9)
    return Finding(
        claim, source, predicted, measured, unit, limit, verdict, (low, high), mode, at_least=at_least, note=what.note
    )


def broken(findings: list[Finding]) -> list[Finding]:
    """Those whose limit is broken."""
    return [finding for finding in findings if finding.verdict == BROKEN]
