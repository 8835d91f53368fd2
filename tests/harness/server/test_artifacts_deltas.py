import zlib

import numpy as np
import pytest

from lightfr import errors
from lightfr.model.deltas import HEADER
from lightfr_harness.server.artifacts import make_delta

ITEMS = 1_000_000


def changed_codes(share, flip_bits, seed=1):
    """Old codes of zeros, 64 bits, and new ones; rows change by random bytes, or by at most so many bits."""
    random = np.random.default_rng(seed)
    n = int(ITEMS * share)
    bits = np.zeros((n, 64), np.uint8)
    if flip_bits is None:
        bits[:] = random.integers(0, 2, bits.shape)
    else:
        np.put_along_axis(bits, random.integers(0, 64, (n, flip_bits)), 1, axis=1)
    new = np.zeros((ITEMS, 8), np.uint8)
    new[random.choice(ITEMS, n, replace=False)] = np.packbits(bits, axis=1, bitorder="little")
    return np.zeros_like(new), new


@pytest.mark.parametrize("share", [0.001, 0.003, 0.01, 0.1, 0.3])
@pytest.mark.parametrize(("flip_bits", "limit"), [(None, 1.2), (3, 0.6)])
def test_a_delta_stays_within_its_multiple_of_the_changed_rows(share, flip_bits, limit):
    old, new = changed_codes(share, flip_bits)
    assert len(make_delta(old, new)) <= limit * 8 * int(ITEMS * share)


def test_equal_codes_make_a_delta_without_rows():
    codes = np.ones((1000, 8), np.uint8)
    delta = make_delta(codes, codes)
    assert HEADER.unpack_from(delta)[-4:] == (1000, 1000, 1, 0)
    assert len(delta) < 80


@pytest.mark.parametrize(("scattered", "limit"), [(False, 1.1), (True, 2.0)])
def test_rows_that_join_cost_little_more_than_themselves(scattered, limit):
    """1 % of 10^5 rows of 64 bits, in one place or each in its own; everything behind them moves."""
    random = np.random.default_rng(1)
    old = random.integers(0, 256, (100_000, 8), np.uint8)
    moved_from = np.insert(np.arange(100_000), random.integers(0, 100_000, 1000) if scattered else [50_000] * 1000, -1)
    new = old[moved_from]
    new[moved_from < 0] = random.integers(0, 256, (1000, 8), np.uint8)
    assert len(make_delta(old, new, moved_from)) <= limit * 8 * 1000


def test_rows_that_join_side_by_side_are_one_run_and_those_that_stay_side_by_side_another():
    old, moved_from = np.ones((4, 8), np.uint8), np.array([-1, -1, 2, 3, 0, 1, -1])
    delta = make_delta(old, np.ones((7, 8), np.uint8), moved_from)
    zeros = 2**32 - 1
    runs = np.frombuffer(zlib.decompress(delta[HEADER.size :])[: 4 * 8], "<u4").reshape(-1, 2)
    assert runs.tolist() == [[zeros, 2], [2, 2], [0, 2], [zeros, 1]]


def test_making_a_delta_leaves_both_versions_as_they_were():
    old, new = np.zeros((3, 8), np.uint8), np.ones((4, 8), np.uint8)
    make_delta(old, new)
    assert not old.any()
    assert (new == 1).all()


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ((4, 8), (4, 16), errors.CodeLengthError),
        ((4, 0), (4, 0), errors.CodeLengthError),
        ((4, 129), (4, 129), errors.CodeLengthError),
    ],
)
def test_versions_that_have_no_delta_are_refused(old, new, error):
    with pytest.raises(error):
        make_delta(np.zeros(old, np.uint8), np.zeros(new, np.uint8))


@pytest.mark.parametrize(
    ("moved_from", "error"),
    [
        ([0, 1], errors.InvalidInputError),
        ([0, 1, 4], errors.OutOfRangeError),
        ([0, 1, -2], errors.OutOfRangeError),
    ],
)
def test_rows_that_come_from_nowhere_are_refused(moved_from, error):
    with pytest.raises(error, match="moved_from"):
        make_delta(np.zeros((4, 8), np.uint8), np.zeros((3, 8), np.uint8), np.array(moved_from))
