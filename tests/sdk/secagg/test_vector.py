"""Vectors have just enough bits for the sum of a cohort, and masks that are added and subtracted leave no trace."""

import math
import os
import tracemalloc
from array import array
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr.errors import BufferSizeError, InvalidInputError
from lightfr.secagg import Block, Vector, gate_blocks, round_blocks
from lightfr.v1 import model_pb2


@pytest.mark.parametrize("n", [2, 3, 64, 255, 256, 512, 8192])
def test_bits_are_just_enough_for_the_sum(n):
    """Each number is at most 1 or 64, and the noise of the sum is within 32, or ten deviations of 4 n."""
    rows, user_sum, weight = round_blocks(10, 16, n)
    largest = n + min(n, 32)
    assert 2 ** (rows.bits - 1) < 2 * largest + 1 <= 2**rows.bits
    assert 2 ** (weight.bits - 1) < 2 * 104 * n + 1 <= 2**weight.bits
    assert user_sum.bits == weight.bits
    assert [b.count for b in (rows, user_sum, weight)] == [160, 16, 1]
    (counts,) = gate_blocks(99, n)
    assert (counts.bits, counts.count) == (rows.bits, 99)


def test_an_upload_of_512_devices_and_128000_values_is_within_its_limit():
    blocks = round_blocks(2000, 64, 512)
    assert blocks[0].bits == 11
    assert Vector(blocks).packed_bytes == 128_000 * 11 // 8 + 64 * 17 // 8 + 3


@given(st.integers(2, 8192), *[st.integers(500, 1_000_000)] * 3)
def test_with_an_epsilon_bits_leave_room_for_10_deviations_of_the_sum_and_no_weight_is_sent(n, rows, sums, counts):
    """A gradient of f = 16 is at most t + f = 26, the other numbers 1."""
    noise = model_pb2.Noise(rows_thousandths=rows, sums_thousandths=sums, counts_thousandths=counts)
    blocks = (*round_blocks(10, 16, n, noise), *gate_blocks(9, n, noise))
    assert [b.name for b in blocks] == ["rows", "user_sum", "counts"]
    for block, largest, thousandths in zip(blocks, (26, 1, 1), (rows, sums, counts), strict=True):
        room = Fraction(largest * n) + Fraction(10 * thousandths, 1000) * Fraction(math.sqrt(n))
        assert 2 ** (block.bits - 2) <= room + 1
        assert room <= 2 ** (block.bits - 1)
        assert block.bits <= 32


def test_the_room_for_noise_is_rounded_up():
    """354 devices and 10 deviations of 9 sqrt(354), 1693.4, are 2,048: one more than 12 bits have."""
    noise = model_pb2.Noise(counts_thousandths=9000)
    assert gate_blocks(9, 354, noise)[0].bits == 13


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 32)), max_size=4), st.binary(min_size=32, max_size=32))
def test_a_mask_that_is_subtracted_again_leaves_no_trace(shapes, key):
    vector = Vector([Block(str(i), count, bits) for i, (count, bits) in enumerate(shapes)])
    plain = vector.pack()
    assert plain == bytes(vector.packed_bytes)
    vector.mask(key, subtract=False)
    vector.mask(key, subtract=True)
    assert vector.pack() == plain


def test_a_mask_continues_over_pieces_and_blocks():
    """One stream covers the whole vector: a block of many pieces equals the same numbers in two blocks."""
    key = os.urandom(32)
    whole, parts = Vector([Block("all", 100_001, 16)]), Vector([Block("a", 70_001, 16), Block("b", 30_000, 16)])
    for vector in (whole, parts):
        vector.mask(key, subtract=False)
    assert whole["all"].tolist() == parts["a"].tolist() + parts["b"].tolist()
    assert len(set(whole["all"])) > 40_000


def test_packed_vectors_add_up():
    blocks = [Block("a", 3, 5), Block("b", 2, 20)]
    vector, total = Vector(blocks), Vector(blocks)
    vector["a"][0], vector["b"][1] = 3, -7
    for _ in range(2):
        total.add_packed(vector.pack())
    assert total["a"][0] % 2**5 == 6
    assert total["b"][1] % 2**20 == -14 % 2**20


def test_packed_bytes_that_do_not_fit_are_refused_and_nothing_is_added():
    total = Vector([Block("a", 8, 1), Block("b", 3, 5)])
    sizes = (b"\xff\0", BufferSizeError, "^packed vector has 2 bytes, expected 3")
    for bad, error, reason in (sizes, (b"\xff\0\x80", InvalidInputError, "a bit behind the last number")):
        with pytest.raises(error, match=reason):
            total.add_packed(bad)
    assert total.pack() == bytes(3)


def test_a_block_keeps_its_size():
    vector = Vector([Block("a", 3, 5)])
    with pytest.raises(ValueError, match="different structures"):
        vector["a"][:] = array("h", [1, 2])


def test_a_vector_shows_no_values():
    assert repr(Vector([Block("a", 3, 5)])) == "<Vector of 3 numbers>"


def test_masking_and_packing_need_little_memory_beside_the_vector():
    vector, key = Vector(round_blocks(2000, 64, 512)), os.urandom(32)
    tracemalloc.start()
    try:
        vector.mask(key, subtract=False)
        packed = vector.pack()
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 2 * len(packed) + 200_000
