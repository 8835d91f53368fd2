"""What an audit says about one claim, and how sure it is.

A verdict is about somebody's promise. Ours are limits: they hold or are broken, and a broken one makes the exit code 1.
The paper's are claims: they are confirmed or refuted, and refuting one is a result, not a failure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lightfr_harness.records import FindingFields

HOLDS, BROKEN, FOR_INFORMATION = "holds", "broken", "for information"
CONFIRMED, REFUTED = "confirmed", "refuted"

Interval = tuple[float, float]


@dataclass(frozen=True)
class Finding:
    """One claim in one setting, measured. Made by the functions below, which set the verdict.

    `predicted` is what the claim's author expects; for the privacy audits, what guessing reaches without any capture.
    `interval` holds the true value with 95 % confidence. The verdict compares `measured` itself with the limit.
    `measured` is None where there is only a formula so far, and `interval` then empty.
    """

    claim: str
    source: str
    predicted: float
    measured: float | None
    unit: str
    limit: float | None
    verdict: str
    interval: Interval | tuple[()]
    mode: str = ""
    at_least: bool = False
    note: str = ""

    def record(self) -> FindingFields:
        """The finding as records have it."""
        return {
            "claim": self.claim,
            "source": self.source,
            "predicted": self.predicted,
            "measured": self.measured,
            "unit": self.unit,
            "limit": self.limit,
            "verdict": self.verdict,
            "interval": list(self.interval),
            "mode": self.mode,
            "at_least": self.at_least,
            "note": self.note,
        }


@dataclass(frozen=True)
class Measurement:
    """A figure beside the one it is judged by, before any limit."""

    predicted: float
    measured: float
    interval: Interval
    note: str = ""


def counted(predicted: float, measured: float, note: str = "") -> Measurement:
    """A figure without uncertainty, such as a number of bytes."""
    return Measurement(predicted, measured, (measured, measured), note)


def at_most(claim: str, source: str, what: Measurement, unit: str, limit: float, mode: str = "") -> Finding:
    """The claim holds while the figure does not pass the limit."""
    return _make(claim, source, what, unit, limit, HOLDS if what.measured <= limit else BROKEN, mode, at_least=False)


def for_information(claim: str, source: str, what: Measurement, unit: str, mode: str = "") -> Finding:
    """A figure that nothing promises anything about."""
    return _make(claim, source, what, unit, None, FOR_INFORMATION, mode, at_least=False)


def enforced(claim: str, source: str, what: Measurement, unit: str, limit: float, *, holds: bool, mode: str) -> Finding:
    """A limit that somebody else enforces and judges, such as the kernel a process's memory."""
    return _make(claim, source, what, unit, limit, HOLDS if holds else BROKEN, mode, at_least=False)


def formula_only(claim: str, source: str, predicted: float, unit: str, mode: str = "", note: str = "") -> Finding:
    """A prediction with nothing measured beside it yet."""
    return Finding(claim, source, round(float(predicted), 9), None, unit, None, FOR_INFORMATION, (), mode, note=note)


def of_the_paper(claim: str, source: str, what: Measurement, unit: str, *, holds: bool, mode: str = "") -> Finding:
    """A claim of the paper, which what was measured confirms or refutes. It has no limit and breaks nothing of ours."""
    return _make(claim, source, what, unit, None, CONFIRMED if holds else REFUTED, mode, at_least=False)


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


# 95 % confidence intervals: Wilson for independent trials, bootstrap over users where one user gives many trials.

Z = 1.959964
RESAMPLES = 1_000


def wilson(successes: float, trials: int) -> Interval:
    """Of a share of independent trials."""
    if trials == 0:
        return 0.0, 1.0
    share, factor = successes / trials, 1 + Z**2 / trials
    middle = (share + Z**2 / (2 * trials)) / factor
    half = Z * np.sqrt(share * (1 - share) / trials + Z**2 / (4 * trials**2)) / factor
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))


def bootstrap_ratio(
    numerators: npt.NDArray[np.float64], denominators: npt.NDArray[np.float64], seed: int = 0
) -> Interval:
    """Of sum(numerators) / sum(denominators), resampling users: the percentile interval of 1,000 resamples."""
    if len(numerators) == 0 or denominators.sum() == 0:
        return 0.0, 1.0
    rng = np.random.default_rng([seed, 7])
    # How often each user is drawn; multinomial counts are the bootstrap without an index per draw.
    draws = rng.multinomial(len(numerators), np.full(len(numerators), 1 / len(numerators)), RESAMPLES)
    ratios = (draws @ numerators) / np.maximum(draws @ denominators, 1e-12)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)


def bootstrap_median_ratio(above: list[float], below: list[float], seed: int = 0) -> Interval:
    """Of median(above) / median(below), resampling the samples of each."""
    rng = np.random.default_rng([seed, 11])
    medians = [np.median(rng.choice(np.asarray(one), (RESAMPLES, len(one))), axis=1) for one in (above, below)]
    low, high = np.quantile(medians[0] / medians[1], [0.025, 0.975])
    return float(low), float(high)
