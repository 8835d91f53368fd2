"""Confidence intervals against textbook values and against simulation."""

import numpy as np
import pytest

from lightfr_harness.audits.intervals import bootstrap_ratio, wilson


def test_wilson_equals_the_textbook():
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 100) == pytest.approx((0.0, 0.0370), abs=1e-4)
    assert wilson(100, 100) == pytest.approx((0.9630, 1.0), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def test_the_bootstrap_covers_the_truth_about_as_often_as_it_says():
    rng, covered = np.random.default_rng(1), 0
    for seed in range(100):
        sizes = rng.integers(5, 50, 80).astype(float)
        low, high = bootstrap_ratio(rng.binomial(sizes.astype(int), 0.3).astype(float), sizes, seed)
        covered += low <= 0.3 <= high
    assert 86 <= covered <= 100


def test_users_who_are_all_right_or_all_wrong_give_a_wider_interval_than_their_ratings_would():
    hits, sizes = np.repeat([0.0, 100.0], 20), np.full(40, 100.0)
    low, high = bootstrap_ratio(hits, sizes)
    assert high - low > 3 * (wilson(2000, 4000)[1] - wilson(2000, 4000)[0])
    assert bootstrap_ratio(hits, sizes) == (low, high)
