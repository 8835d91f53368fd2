"""Codes from sums: exact while there are fewer devices than bits, nothing where nothing is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr_harness.audits.capture import CohortSum
from lightfr_harness.audits.privacy import sums
from lightfr_harness.audits.privacy.scoring import best_agreement
from tests.helpers import random_signs


def sum_of(codes, rows=None, seed=0):
    weights = np.random.default_rng(seed).integers(32, 65, len(codes))
    wide = codes.astype(np.int64)
    rows = np.zeros((5, codes.shape[1]), np.int64) if rows is None else rows
    return CohortSum(rows, (wide * weights[:, None]).T @ wide, weights @ wide, int(weights.sum()), len(codes))


@settings(max_examples=20)
@given(n=st.integers(1, 12), seed=st.integers(0, 1000))
def test_every_code_of_a_small_cohort_is_read_exactly_with_its_sign(n, seed):
    codes = random_signs(n, 64, seed)
    assert {code.tobytes() for code in sums.codes_from_products(sum_of(codes, seed=seed))} == {
        code.tobytes() for code in codes
    }


def test_a_search_goes_on_where_counting_through_all_candidates_ends():
    codes = random_signs(sums.MOST_ENUMERATED + 4, 64, 3)
    assert (best_agreement(sums.codes_from_products(sum_of(codes)), codes) == 1).mean() > 0.9


def test_as_many_devices_as_bits_leave_no_proven_code():
    assert len(sums.codes_from_products(sum_of(random_signs(80, 64, 4)))) == 0


def test_no_code_is_proven_in_products_that_no_cohort_made():
    noise = np.random.default_rng(5).normal(scale=40, size=(6, 64))
    total = CohortSum(
        np.zeros((5, 64), np.int64), np.rint(noise.T @ noise).astype(np.int64), np.ones(64, np.int64), 9, 6
    )
    assert len(sums.codes_from_products(total)) == 0


def planted_rows(codes, rows_each, density, seed):
    """Rows that one device alone sent, each with some bits of its code."""
    rng = np.random.default_rng(seed)
    lone = np.repeat(codes.astype(np.int64), rows_each, axis=0)
    return lone * (rng.random(lone.shape) < density)


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
