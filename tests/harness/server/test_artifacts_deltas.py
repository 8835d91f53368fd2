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
    assert HEADER.unpack_from(delta)[-3:] == (1000, 1000, 0)
    assert len(delta) < 60


def test_making_a_delta_leaves_both_versions_as_they_were():
    old, new = np.zeros((3, 8), np.uint8), np.ones((4, 8), np.uint8)
    make_delta(old, new)
    assert not old.any()
    assert (new == 1).all()


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ((4, 8), (3, 8), errors.OutOfRangeError),
        ((4, 8), (4, 16), errors.CodeLengthError),
        ((4, 0), (4, 0), errors.CodeLengthError),
        ((4, 129), (4, 129), errors.CodeLengthError),
    ],
)
def test_versions_that_have_no_delta_are_refused(old, new, error):
    with pytest.raises(error):
        make_delta(np.zeros(old, np.uint8), np.zeros(new, np.uint8))
