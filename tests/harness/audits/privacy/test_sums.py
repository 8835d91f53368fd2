"""Codes from rows: lone rows are joined, quiet ones separated, and nothing is read where nothing is."""

import numpy as np
import pytest

from lightfr_harness.audits.capture import CohortSum
from lightfr_harness.audits.privacy import sums
from lightfr_harness.audits.privacy.scoring import best_agreement
from tests.helpers import random_signs


def sum_of(codes, rows):
    return CohortSum(rows, codes.astype(np.int64).sum(axis=0), len(codes), len(codes))


def planted_rows(codes, rows_each, density, seed, noise=0.0):
    """Rows that one device alone sent, each with some bits of its code, under noise of a standard deviation."""
    rng = np.random.default_rng(seed)
    lone = np.repeat(codes.astype(np.int64), rows_each, axis=0)
    return lone * (rng.random(lone.shape) < density) + np.rint(rng.normal(0, noise, lone.shape)).astype(np.int64)


def test_lone_rows_of_a_large_cohort_are_joined_to_codes():
    codes = random_signs(100, 64, 6)
    rows = planted_rows(codes[:10], 6, 0.6, 7)
    claims, sources = sums.codes_from_lone_rows(sum_of(codes, rows))
    assert (best_agreement(claims, codes[:10]) >= 0.95).all()
    assert sorted(map(len, sources)) == [6] * 10


@pytest.mark.parametrize("others", [3, 20])
def test_rows_that_many_devices_share_name_nobody(others):
    codes = random_signs(100, 64, 8)
    rows = np.random.default_rng(9).integers(-others, others + 1, (300, 64))
    claims, _ = sums.codes_from_lone_rows(sum_of(codes, rows))
    assert len(claims) == 0


@pytest.mark.parametrize(
    ("noise", "rounds", "reads"), [(0.0, 1, True), (0.5, 1, False), (0.5, 10, True), (8**0.5, 10, False)]
)
def test_quiet_rows_are_separated_and_several_rounds_see_through_more_noise(noise, rounds, reads):
    codes = random_signs(20, 64, 10)
    loud = np.random.default_rng(11).integers(-20, 21, (300, 64))
    totals = [
        sum_of(codes, np.concatenate([planted_rows(codes, 6, 0.5, 12 + index, noise), loud])) for index in range(rounds)
    ]
    claims = sums.codes_by_separation(totals)
    assert len(claims) <= len(codes)
    assert (np.mean(best_agreement(claims, codes) >= 0.9) > 0.5) == reads


def test_separation_claims_nothing_from_rows_that_are_empty():
    assert sums.codes_by_separation([sum_of(random_signs(3, 64, 0), np.zeros((5, 64), np.int64))]).shape == (0, 64)
