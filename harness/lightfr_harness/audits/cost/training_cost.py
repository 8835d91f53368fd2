"""Claim: training takes O(T E f^2 (|I| + m)): at most quadratic in the code length, linear in ratings and in items.

Each size is varied alone, in a range where its own term decides, and CPU time of the real fit, the Gram matrix of the
catalogue included, is fitted by a power law: the slope of its logarithms. The interval is a bootstrap over the samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr_harness.audits.finding import RESAMPLES, Finding, Interval, Measurement, of_the_paper

CLAIM, SOURCE = "training cost, exponent", "the paper's complexity O(T E f^2 (|I| + m))"
STATED = {
    "bits": ("of the code length f", 2.0),
    "ratings": ("of the ratings |I|", 1.0),
    "items": ("of the items m", 1.0),
}
# Caches make the larger sizes a little slower than the smaller ones, in a way that no operation count knows.
TOLERANCE = 0.15

Samples = dict[float, list[float]]


def audit(sweeps: dict[str, Any]) -> list[Finding]:
    """One exponent for each size that was varied: {"bits": {"points": [[size, [seconds, ...]], ...], "fixed": ...}}."""
    findings = []
    for name, (mode, stated) in STATED.items():
        if name in sweeps:
            exponent, interval = fitted_exponent(dict(sweeps[name]["points"]))
            what = Measurement(stated, exponent, interval, sweeps[name]["note"])
            # An O() is an upper bound: only growth that is surely faster refutes it.
            holds = interval[0] <= stated + TOLERANCE
            findings.append(of_the_paper(CLAIM, SOURCE, what, "exponent", holds=holds, mode=mode))
    return findings


def fitted_exponent(samples: Samples, seed: int = 0) -> tuple[float, Interval]:
    """The slope of log(median seconds) against log(size), and its 95 % interval over resampled samples."""
    sizes = np.log(np.array(sorted(samples), np.float64))
    times = [np.log(np.array(samples[size], np.float64)) for size in sorted(samples)]
    rng = np.random.default_rng([seed, 31])
    resampled = [np.median(rng.choice(one, (RESAMPLES, len(one))), axis=1) for one in times]
    slopes = _slopes(sizes, np.stack(resampled, axis=1))
    exponent = _slopes(sizes, np.array([[np.median(one) for one in times]]))[0]
    low, high = np.quantile(slopes, [0.025, 0.975])
    return float(exponent), (float(low), float(high))


def _slopes(x: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Least-squares slope of every row against x."""
    centred = x - x.mean()
    return np.asarray(rows @ centred / (centred @ centred))
