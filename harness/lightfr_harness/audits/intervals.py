"""95 % confidence intervals: Wilson for independent trials, bootstrap over users where one user gives many trials."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lightfr_harness.audits.finding import Interval

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
