"""Masks and packed integers against plain Python integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightfr import _kernel
from lightfr.errors import BufferSizeError, InvalidInputError, OutOfRangeError

BITS = st.integers(1, 32)
COUNTS = st.integers(0, 70)
SEEDS = st.integers(0, 2**32 - 1)


def numbers(bits, n, seed):
    kind = np.uint16 if bits <= 16 else np.uint32
    return np.random.default_rng(seed).integers(0, np.iinfo(kind).max, n, kind, endpoint=True)


@given(BITS, COUNTS, SEEDS, st.booleans())
def test_a_mask_is_added_or_subtracted_with_wrapping(bits, n, seed, subtract):
    values, mask = numbers(bits, n, seed), numbers(bits, n, seed + 1)
    expected = [(int(v) - int(m) if subtract else int(v) + int(m)) for v, m in zip(values, mask, strict=True)]
    stream = mask.astype(mask.dtype.newbyteorder("<")).tobytes()
    _kernel.mask(values, n, bits, stream, subtract=subtract)
    assert values.tolist() == [e % 2 ** (8 * values.itemsize) for e in expected]
    assert len(stream) == n * _kernel.number_bytes(bits)


@given(BITS, COUNTS, SEEDS)
def test_packed_numbers_are_the_digits_of_one_large_number_and_come_back(bits, n, seed):
    values, sums = numbers(bits, n, seed), numbers(bits, n, seed + 1)
    low = [int(v) % 2**bits for v in values]
    packed = _kernel.pack_bits(values, n, bits)
    assert int.from_bytes(packed, "little") == sum(v << (i * bits) for i, v in enumerate(low))
    assert len(packed) == (n * bits + 7) // 8
    expected = [(int(s) + v) % 2 ** (8 * sums.itemsize) for s, v in zip(sums, low, strict=True)]
    _kernel.unpack_add(packed, n, bits, sums)
    assert sums.tolist() == expected


@pytest.mark.parametrize("bits", [0, 33])
def test_numbers_of_no_or_too_many_bits_are_refused(bits):
    with pytest.raises(OutOfRangeError):
        _kernel.pack_bits(bytes(4), 1, bits)
    with pytest.raises(OutOfRangeError):
        _kernel.number_bytes(bits)


def test_buffers_of_another_size_are_refused():
    with pytest.raises(BufferSizeError):
        _kernel.mask(bytearray(4), 2, 16, bytes(3), subtract=False)
    with pytest.raises(BufferSizeError):
        _kernel.pack_bits(bytes(4), 2, 17)
    with pytest.raises(BufferSizeError):
        _kernel.unpack_add(bytes(2), 3, 3, bytearray(4))


def test_a_set_bit_behind_the_last_number_is_refused_and_nothing_is_added():
    sums = bytearray(4)
    with pytest.raises(InvalidInputError):
        _kernel.unpack_add(b"\x41", 2, 3, sums)
    assert sums == bytes(4)
