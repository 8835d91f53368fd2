"""Closed items share one row: whatever is computed from it must equal, bit for bit, what the full matrix gives."""

from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr import ItemCodes, ItemSet, OpenRows, Prior, UserCode, _kernel, errors, rank, rank_batch
from lightfr.interactions import LEVELS, Interactions
from lightfr.training import fit_for_round, fit_for_use
from tests.helpers import make_model, packed_codes
from tests.sdk.test_kernel_search import each_isa, make_signs

SEEDS = st.integers(0, 2**32 - 1)
KINDS = st.sampled_from(["none", "all", "prefix", "nearly a prefix", "random", "few"])
# On both sides of words and of blocks of 512 items.
N_ITEMS = st.sampled_from([1, 2, 7, 8, 63, 64, 65, 130, 300, 511, 512, 513, 1023, 1024, 1025, 1600])


def which_are_open(n_items, kind, rng):
    items = np.arange(n_items)
    match kind:
        case "none" | "all":
            return np.full(n_items, kind == "all")
        case "prefix":
            return items < rng.integers(n_items + 1)
        case "nearly a prefix":
            return items + rng.normal(0, n_items / 20, n_items) < n_items / 3
        case "few":
            return rng.random(n_items) < 0.02
    return rng.random(n_items) < 0.5


def bitmap_of(bits):
    return np.packbits(bits, bitorder="little").tobytes()


def with_shared_row(signs, is_open):
    """The full matrix: every closed item has the code of the first closed one."""
    full = signs.copy()
    if not is_open.all():
        full[~is_open] = signs[~is_open][0]
    return full


def steps_of(rng, n_items, kind):
    """Steps of a prior: none, few that mix with distances, or as many as there may be, some behind the last item."""
    if kind == "none":
        return None
    n_steps = 64 if kind == "many" else int(rng.integers(1, 6))
    firsts = sorted({0, *rng.integers(0, n_items + 20, n_steps - 1).tolist()})
    offsets = sorted(rng.integers(-20, 20, len(firsts)).tolist(), reverse=True)
    return list(zip(firsts, offsets, strict=True))


def plain_ranking(full, query, steps, excluded):
    """Every item that is left as (item index, score), by sorting all of them."""
    offsets = np.zeros(len(full), int)
    for first, offset in steps or ():
        offsets[first:] = offset
    scores = full.astype(int) @ query.astype(int) + offsets
    left = [(i, int(scores[i])) for i in np.flatnonzero(~excluded).tolist()]
    return sorted(left, key=lambda one: (-one[1], one[0]))


@settings(max_examples=100)
@given(
    st.sampled_from([8, 64, 72, 128, 256]),
    N_ITEMS,
    KINDS,
    st.sampled_from(["random", "clustered", "alike"]),
    st.sampled_from(["none", "few", "many"]),
    st.sampled_from([1, 10, 100, 2000]),
    st.sampled_from([0.0, 0.3, 0.99, 1.0]),
    SEEDS,
)
def test_every_search_gives_the_ranking_of_the_full_matrix(
    code_bits, n_items, kind, codes_kind, steps_kind, k, excluded_share, seed
):
    rng = np.random.default_rng(seed)
    is_open, signs = which_are_open(n_items, kind, rng), make_signs(n_items, code_bits, codes_kind, rng)
    codes, full = packed_codes(signs, is_open), with_shared_row(signs, is_open)
    queries = make_signs(2, code_bits, "random", rng)
    users = [UserCode(np.packbits(query > 0, bitorder="little").tobytes()) for query in queries]
    steps, excluded = steps_of(rng, n_items, steps_kind), rng.random(n_items) < excluded_share
    prior, left_out = steps and Prior(steps), ItemSet(n_items, np.flatnonzero(excluded).tolist())
    asked = np.flatnonzero(rng.random(n_items) < 0.3).tolist()
    wanted = plain_ranking(full, queries[0], steps, excluded)
    every = [plain_ranking(full, query, steps, np.zeros(n_items, bool))[:k] for query in queries]
    for _ in each_isa():
        assert as_pairs(rank(users[0], codes, k, exclude=left_out, prior=prior)) == wanted[:k]
        assert as_pairs(rank(users[0], codes, k, prior=prior)) == every[0]
        some = rank(users[0], codes, k, among=asked, exclude=left_out, prior=prior)
        assert as_pairs(some) == [one for one in wanted if one[0] in set(asked)][:k]
        assert [as_pairs(found) for found in rank_batch(users, codes, k, prior=prior)] == every


def as_pairs(ranked):
    return [(item.item_index, item.score) for item in ranked]


@settings(max_examples=60)
@given(st.sampled_from([8, 64, 128]), N_ITEMS, KINDS, st.sampled_from([1, 5, 24, 70]), st.integers(1, 40), SEEDS)
def test_a_batch_with_exclusions_gives_each_query_what_the_full_matrix_gives(
    code_bits, n_items, kind, n_queries, k, seed
):
    rng = np.random.default_rng(seed)
    is_open, signs = which_are_open(n_items, kind, rng), make_signs(n_items, code_bits, "clustered", rng)
    codes, full = packed_codes(signs, is_open), packed_codes(with_shared_row(signs, is_open))
    queries = _kernel.CodesPointer(rng.bytes(n_queries * code_bits // 8), code_bits)
    excludes = np.packbits(rng.random((n_queries, n_items)) < 0.3, axis=1, bitorder="little")
    prior = _kernel.PriorPointer(steps_of(rng, n_items, "few"))
    for _ in each_isa():
        found = _kernel.topk_batch(codes.kernel_pointer(), queries, k, excludes, prior)
        wanted = _kernel.topk_batch(full.kernel_pointer(), queries, k, excludes, prior)
        assert found == wanted


@settings(max_examples=50)
@given(N_ITEMS, KINDS, SEEDS)
def test_rows_and_items_lead_to_each_other(n_items, kind, seed):
    is_open = which_are_open(n_items, kind, np.random.default_rng(seed))
    rows = OpenRows(bitmap_of(is_open), n_items)
    opened = np.flatnonzero(is_open).tolist()
    assert (rows.n_items, rows.n_open, rows.bitmap) == (n_items, len(opened), bitmap_of(is_open))
    assert [rows.is_open(item) for item in range(n_items)] == is_open.tolist()
    assert [rows.item_of(row) for row in range(rows.n_open)] == opened
    expected = np.where(is_open, np.cumsum(is_open) - 1, len(opened)).tolist()
    assert [rows.row_of(item) for item in range(n_items)] == expected
    assert rows.rows_of(array("I", range(n_items))).tolist() == expected


@settings(max_examples=30)
@given(st.sampled_from([8, 64, 72]), N_ITEMS, KINDS, SEEDS)
def test_gram_and_column_sums_count_the_shared_row_for_every_closed_item(code_bits, n_items, kind, seed):
    rng = np.random.default_rng(seed)
    is_open, signs = which_are_open(n_items, kind, rng), make_signs(n_items, code_bits, "random", rng)
    wide = with_shared_row(signs, is_open).astype(np.int64)
    for _ in each_isa():
        gram, sums = np.empty((code_bits, code_bits), np.int64), np.empty(code_bits, np.int64)
        _kernel.gram(packed_codes(signs, is_open).kernel_pointer(), gram, sums)
        assert (gram == wide.T @ wide).all()
        assert (sums == wide.sum(axis=0)).all()


@settings(max_examples=30)
@given(st.sampled_from([8, 64, 128]), N_ITEMS, KINDS, st.booleans(), SEEDS)
def test_every_fit_takes_the_bits_that_the_full_matrix_gives(code_bits, n_items, kind, refine, seed):
    rng = np.random.default_rng(seed)
    is_open, signs = which_are_open(n_items, kind, rng), make_signs(n_items, code_bits, "random", rng)
    mean = rng.integers(-256, 257, code_bits).astype("<i2").tobytes()
    packed = make_model(signs, is_open=is_open, mean_user=mean)
    full = make_model(with_shared_row(signs, is_open), mean_user=mean)
    rated = rng.permutation(n_items)[:30].tolist()
    opinions = Interactions(
        (item, int(level)) for item, level in zip(rated, rng.integers(0, LEVELS + 1, len(rated)), strict=True)
    )
    start = UserCode(rng.bytes(code_bits // 8))
    assert fit_for_round(packed, opinions, start) == fit_for_round(full, opinions, start)
    assert fit_for_use(packed, opinions, start, refine=refine) == fit_for_use(full, opinions, start, refine=refine)


def test_the_code_of_a_closed_item_is_the_shared_row():
    codes = ItemCodes(b"abc", 8, OpenRows(b"\x0a", 5))
    assert [codes.row(item) for item in range(5)] == [b"c", b"a", b"c", b"b", b"c"]
    assert (codes.n_items, codes.n_rows, len(codes), codes.open_rows.n_open) == (5, 3, 5, 2)
    for item in (-1, 5):
        with pytest.raises(errors.ItemIndexError):
            codes.row(item)


def test_a_bitmap_that_does_not_fit_is_refused():
    for bitmap, n_items in ((b"\x01", 9), (b"\x01\x00", 8), (b"\x20", 5), (b"", 1)):
        with pytest.raises(errors.InvalidInputError):
            OpenRows(bitmap, n_items)
    with pytest.raises(errors.BufferSizeError):
        ItemCodes(b"ab", 8, OpenRows(b"\x03", 5))
    assert repr(OpenRows(b"\x03", 5)) == "<OpenRows: 2 of 5 items>"


def test_an_item_or_a_row_outside_is_refused():
    rows = OpenRows(b"\x03", 5)
    for look in (rows.is_open, rows.row_of):
        for item in (-1, 5):
            with pytest.raises(errors.ItemIndexError):
                look(item)
    with pytest.raises(errors.ItemIndexError):
        rows.rows_of(array("I", [0, 5]))
    for row in (-1, 2):
        with pytest.raises(errors.ItemIndexError):
            rows.item_of(row)


def test_a_file_of_codes_must_have_the_rows_of_its_open_items(tmp_path):
    path, rows = tmp_path / "codes", OpenRows(b"\x03", 5)
    path.write_bytes(b"abc")
    with ItemCodes.open(path, 8, n_items=5, open_rows=rows) as codes:
        assert (codes.n_items, codes.row(4)) == (5, b"c")
    path.write_bytes(b"abcde")
    with pytest.raises(errors.ArtifactFileError, match="5 bytes, expected 3"):
        ItemCodes.open(path, 8, n_items=5, open_rows=rows)
