"""Counts become the steps of a manifest's prior."""

from itertools import accumulate
from math import log

import numpy as np
import pytest

from lightfr.rankings import Rankings
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.server.rules.popularity import prior_of


def steps(prior):
    return list(zip(prior.first_items, prior.popularities, strict=True))


def by_row(prior, n_items):
    """Popularity of each row, as a device reads it after its checks."""
    model = model_pb2.RoundModel(item_count=n_items)
    read = Rankings.of(manifest_pb2.Manifest(model=model, prior=prior)).popularities
    ends = [first for first, _ in read[1:]] + [n_items]
    return np.repeat([popularity for _, popularity in read], np.diff([first for first, _ in read] + [ends[-1]]))


def test_popularity_is_sixteen_times_the_logarithm_of_one_more_than_the_count():
    assert steps(prior_of(np.array([1000, 1000, 10, 1, 0]))) == [(0, 111), (2, 38), (3, 11), (4, 0)]


def test_counts_below_the_least_are_told_as_none():
    assert steps(prior_of(np.array([50, 10, 9, 3]), least=10)) == [(0, 63), (1, 38), (2, 0)]


@pytest.mark.parametrize(("counts", "least"), [([0, 0], 1), ([9, 9, -4], 10)])
def test_without_a_count_to_tell_there_is_no_prior(counts, least):
    assert prior_of(np.array(counts), least) is None


def test_rows_that_rise_share_their_mean():
    assert steps(prior_of(np.array([7, 0, 54, 0]))) == [(0, 33), (1, 32), (3, 0)]


def test_many_levels_become_at_most_sixty_four_that_stay_close():
    counts = np.geomspace(10**9, 1, 5000).astype(np.int64)
    prior = prior_of(counts)
    assert 32 < len(prior.first_items) <= 64
    error = by_row(prior, len(counts)) - 16 * np.log1p(counts)
    assert np.abs(error).max() <= 4
    assert abs(error.mean()) < 1


def test_counts_of_any_order_and_noise_give_what_a_device_takes():
    rng = np.random.default_rng(1)
    for _ in range(50):
        counts = rng.integers(-40, 10 ** int(rng.integers(1, 12)), int(rng.integers(1, 300)))
        prior = prior_of(counts, int(rng.integers(1, 30)))
        if prior is not None:
            by_row(prior, len(counts))


def test_the_largest_counts_stay_within_the_range():
    assert max(prior_of(np.array([2**62, 1])).popularities) <= 1023


def test_items_that_left_have_no_say_and_steps_go_by_index_all_the_same():
    counts, removed = np.array([1000, 0, 1000, 10, 0, 1, 0]), np.array([0, 1, 0, 0, 1, 0, 0], bool)
    assert steps(prior_of(counts, removed=removed)) == [(0, 111), (3, 38), (5, 11), (6, 0)]
    assert steps(prior_of(np.array([0, 5]), removed=np.array([True, False]))) == [(0, 29)]
    assert prior_of(np.array([5, 0]), removed=np.array([True, False])) is None


def as_documented(counts, least):
    """docs/protocol.md, "The prior": the popularity of each item."""
    values = [16 * log(1 + (c if c >= least else 0)) for c in counts]
    before, n = [0, *accumulate(values)], len(values)
    # Of all numbers that never rise the nearest: the least over the first of the largest over the last of all means.
    most = [[0.0] * n for _ in range(n)]
    for first in range(n):
        largest = 0.0
        for last in reversed(range(first, n)):
            largest = max(largest, (before[last + 1] - before[first]) / (last + 1 - first))
            most[first][last] = largest
    levels = [round(min(most[first][i] for first in range(i + 1))) for i in range(n)]
    width = next(d for d in range(1, 1024) if len({level // d for level in levels}) <= 64)
    if width == 1:
        return levels
    return [min(level // width * width + width // 2, max(levels)) for level in levels]


def of_steps(n_steps):
    """Counts whose popularities are 690, 686 and so on: so many."""
    return np.exp((690 - 4 * np.arange(n_steps)) / 16).astype(np.int64)


@pytest.mark.parametrize("seed", range(8))
def test_priors_are_those_of_the_document(seed):
    rng = np.random.default_rng(seed)
    counts = np.exp(np.linspace(4 * rng.random() + 10 * (seed % 4), 0, 90) + rng.normal(0, 0.3, 90)).astype(np.int64)
    assert by_row(prior_of(counts, 2 + seed), 90).tolist() == as_documented(counts.tolist(), 2 + seed)


@pytest.mark.parametrize("n", [64, 65, 127, 128, 129])
def test_sixty_four_levels_stay_as_they_are_and_more_become_the_middles_of_the_narrowest_intervals(n):
    counts = of_steps(n)
    told = by_row(prior_of(counts), n).tolist()
    assert told == as_documented(counts.tolist(), 1)
    assert (told == [690 - 4 * i for i in range(n)]) == (n == 64)


def test_a_single_item_has_one_step():
    assert steps(prior_of(np.array([1000]))) == [(0, 111)]
