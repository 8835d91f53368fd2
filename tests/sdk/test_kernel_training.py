"""Every instruction set against the plain oracle: Gram, user fit, gradients, ternary rows, aggregation, packing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr import _kernel, errors
from lightfr_harness import oracle
from tests.sdk.test_kernel_search import each_isa, make_signs, packed

CODE_BITS = st.sampled_from([8, 16, 40, 64, 72, 128, 200])
SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=60)
@given(CODE_BITS, st.sampled_from([0, 1, 63, 64, 65, 255, 256, 257, 700]), SEEDS)
def test_gram_and_column_sums_equal_matrix_products(code_bits, n_items, seed):
    signs = make_signs(n_items, code_bits, "random", np.random.default_rng(seed))
    wide = signs.astype(np.int64)
    for _ in each_isa():
        gram, sums = np.empty((code_bits, code_bits), np.int64), np.empty(code_bits, np.int64)
        _kernel.gram(_kernel.CodesPointer(packed(signs), code_bits), gram, sums)
        assert (gram == wide.T @ wide).all()
        assert (sums == wide.sum(axis=0)).all()


@st.composite
def fit_problems(draw):
    code_bits = draw(CODE_BITS)
    rng = np.random.default_rng(draw(SEEDS))
    n_rows = draw(st.sampled_from([0, 1, 5, 64, 166, 257]))
    terms = oracle.FitTerms(
        rows=make_signs(n_rows, code_bits, "random", rng),
        targets=rng.integers(-code_bits, code_bits + 1, n_rows).astype(np.int32),
        row_factor=draw(st.sampled_from([1, 5, 1682])),
        target_factor=draw(st.sampled_from([-3, 1, 1682])),
        balance=draw(st.sampled_from([0, 7])),
    )
    if draw(st.booleans()):
        items = make_signs(300, code_bits, "clustered", rng).astype(np.int64)
        terms.gram, terms.gram_factor = items.T @ items, draw(st.sampled_from([1, n_rows]))
        terms.extra = rng.integers(-(10**6), 10**6, code_bits)
    if draw(st.booleans()):
        terms.weights = rng.integers(0, draw(st.sampled_from([2, 97, 65536])), n_rows).astype(np.uint16)
    return terms, make_signs(1, code_bits, "random", rng)[0], draw(st.sampled_from([1, 2, 10]))


def kernel_fit(terms, start, max_sweeps):
    fit = _kernel.Fit(len(start))
    if terms.gram is not None:
        half = terms.extra // 2  # the linear part through both of its ways in
        fit.use_catalogue(terms.gram, half, terms.extra - half)
    fit.prepare(
        packed(terms.rows),
        terms.targets,
        len(terms.rows),
        weights=terms.weights,
        row_factor=terms.row_factor,
        target_factor=terms.target_factor,
        gram_factor=terms.gram_factor,
        column_factor=1,
        balance=terms.balance,
    )
    code = bytearray(oracle.pack(start))
    loss = fit.sweep(code, max_sweeps)
    return code, loss, fit


@settings(max_examples=120)
@given(fit_problems())
def test_the_fit_takes_the_same_bits_as_the_printed_equations(problem):
    terms, start, max_sweeps = problem
    expected = oracle.fit_sweeps(terms, start, max_sweeps)
    for _ in each_isa():
        code, loss, _fit = kernel_fit(terms, start, max_sweeps)
        assert bytes(code) == oracle.pack(expected)
        assert loss == oracle.fit_loss(terms, expected)


def test_a_zero_gradient_keeps_the_old_bit():
    terms = oracle.FitTerms(np.zeros((0, 8), np.int8), np.zeros(0, np.int32), 1, 1)
    code, _, fit = kernel_fit(terms, np.array([1, -1, 1, 1, -1, -1, 1, -1], np.int8), 3)
    assert code == bytes([0b01001101])
    assert fit.linear_signs(b"\xa5") == b"\xa5"


def fit_two_rows_of_ones(row_factor, target_factor):
    terms = oracle.FitTerms(np.ones((2, 8), np.int8), np.ones(2, np.int32), row_factor, target_factor)
    return kernel_fit(terms, np.ones(8, np.int8), 1)


@pytest.mark.parametrize(("row_factor", "target_factor"), [(2**54 - 1, 8), (0, 2**57), (0, -(2**57)), (2**58, 1)])
def test_a_fit_that_might_overflow_is_refused_instead_of_wrapping(row_factor, target_factor):
    """Two rows of 8 bits: 16 (8 row_factor + |target_factor|) must stay below 2^61."""
    with pytest.raises(errors.InvalidInputError, match="might not fit 64-bit integers"):
        fit_two_rows_of_ones(row_factor, target_factor)


@pytest.mark.parametrize(("row_factor", "target_factor"), [(2**54 - 1, 7), (0, 2**57 - 1), (0, 1 - 2**57)])
def test_a_fit_is_accepted_up_to_the_last_unit_below_the_bound(row_factor, target_factor):
    fit_two_rows_of_ones(row_factor, target_factor)


@settings(max_examples=60)
@given(CODE_BITS, st.integers(0, 20), st.sampled_from([1, 5, 1000]), SEEDS)
def test_row_gradients_follow_their_definition(code_bits, n_rows, scale, seed):
    rng = np.random.default_rng(seed)
    rows, code = make_signs(n_rows, code_bits, "random", rng), make_signs(1, code_bits, "random", rng)[0]
    targets = rng.integers(-(2**20), 2**20, n_rows).astype(np.int32)
    got = np.frombuffer(
        _kernel.row_gradients(packed(rows), n_rows, packed(code), code_bits, targets, scale), np.int32
    ).reshape(n_rows, code_bits)
    assert (got == oracle.row_gradients(rows, code, targets, scale)).all()


@settings(max_examples=60)
@given(st.sampled_from([0, 8, 64, 640]), st.sampled_from([1, 64, 100, 1024]), SEEDS)
def test_ternary_rounding_and_its_sum_follow_their_definition(n, full, seed):
    rng = np.random.default_rng(seed)
    gradients = rng.integers(-2 * full, 2 * full + 1, n).astype(np.int32)
    random = rng.integers(0, 65536, n).astype("<u2")
    nonzero, positive = _kernel.ternary(gradients, n, full, random)
    expected = oracle.ternary(gradients.astype(np.int64), full, random)
    sums, places = np.full((n // 8, 8), 3, np.int32), np.arange(n // 8, dtype=np.uint32)[::-1].copy()
    _kernel.ternary_add(nonzero, positive, places, n // 8, 8, n // 8, sums)
    assert (sums[::-1].reshape(-1) - 3 == expected).all()


def test_ternary_rounding_is_unbiased():
    rng = np.random.default_rng(1)
    n = 80_000
    gradients = np.full(n, 16, np.int32)
    nonzero, positive = _kernel.ternary(gradients, n, 64, rng.integers(0, 65536, n).astype("<u2"))
    share = np.unpackbits(np.frombuffer(positive, np.uint8)).mean()
    assert positive == nonzero
    assert abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / n)


def test_a_ternary_row_that_is_positive_where_it_is_zero_adds_nothing():
    sums, row = np.zeros(16, np.int32), np.zeros(1, np.uint32)
    with pytest.raises(errors.InvalidInputError):
        _kernel.ternary_add(b"\xff\x00", b"\xff\x01", row, 1, 16, 1, sums)
    with pytest.raises(errors.ItemIndexError):
        _kernel.ternary_add(b"\xff\x01", b"\xff\x01", row + 1, 1, 16, 1, sums)
    assert not sums.any()


@settings(max_examples=80)
@given(st.sampled_from([8, 64, 136]), st.integers(0, 31), SEEDS, st.sampled_from([2, 300, 2**31]))
def test_the_server_rule_rounds_down_and_keeps_bits_at_zero(n, shift, seed, span):
    rng = np.random.default_rng(seed)
    memory, sums = (rng.integers(-span, span, n).astype(np.int32) for _ in range(2))
    codes = make_signs(1, n, "random", rng)[0]
    expected = oracle.aggregate(memory.astype(np.int64), sums.astype(np.int64), codes, shift)
    bits = bytearray(oracle.pack(codes))
    _kernel.aggregate(sums, n, shift, memory, bits)
    assert (memory == expected[0]).all()
    assert bytes(bits) == oracle.pack(expected[1])


@settings(max_examples=40)
@given(st.integers(0, 20), SEEDS)
def test_packing_and_unpacking_are_inverse_with_bit_0_lowest(n_bytes, seed):
    signs = make_signs(1, 8 * n_bytes, "random", np.random.default_rng(seed))[0]
    codes, back = bytearray(n_bytes), np.zeros(8 * n_bytes, np.int8)
    _kernel.pack(signs, 8 * n_bytes, codes)
    assert bytes(codes) == oracle.pack(signs)
    _kernel.unpack(codes, 8 * n_bytes, back)
    assert (back == signs).all()


def test_a_sign_that_is_neither_minus_nor_plus_one_is_refused():
    with pytest.raises(errors.InvalidInputError):
        _kernel.pack(np.zeros(8, np.int8), 8, bytearray(1))


def test_gathering_copies_the_named_rows_and_refuses_others_without_naming_them():
    items = _kernel.CodesPointer(bytes(range(40)), 64)
    assert _kernel.gather(items, np.array([4, 0], np.uint32), 2) == bytes(range(32, 40)) + bytes(range(8))
    with pytest.raises(errors.ItemIndexError, match="number of items, 5") as caught:
        _kernel.gather(items, np.array([0, 7], np.uint32), 2)
    assert "7" not in str(caught.value)
