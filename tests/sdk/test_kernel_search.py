"""Every instruction set against the plain oracle: exact top-K, single and batch, and distances."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr import _kernel
from lightfr_harness import oracle

ISAS = _kernel.supported_isas()

# Around a lane, a vector and a cache line: 1 to 7 bytes, 8, 9, 15, 16, 17, 24, 31, 32, 33, 64, 128.
CODE_BITS = st.sampled_from([8, 16, 24, 32, 40, 56, 64, 72, 120, 128, 136, 192, 248, 256, 264, 512, 1024])
N_ITEMS = st.one_of(st.integers(0, 90), st.sampled_from([255, 256, 257, 300, 511, 513]))


@pytest.fixture(params=ISAS)
def isa(request):
    before = _kernel.isa_name()
    _kernel.select_isa(request.param)
    yield request.param
    _kernel.select_isa(before)


def each_isa():
    before = _kernel.isa_name()
    for name in ISAS:
        _kernel.select_isa(name)
        yield name
    _kernel.select_isa(before)


def make_signs(n_items, code_bits, kind, rng):
    """Random codes, a few clusters (many ties), or all rows alike (nothing but ties)."""
    if kind == "alike":
        return np.ones((n_items, code_bits), np.int8)
    if kind == "clustered":
        centres = rng.choice(np.array([-1, 1], np.int8), (3, code_bits))
        return centres[rng.integers(0, 3, n_items)]
    return rng.choice(np.array([-1, 1], np.int8), (n_items, code_bits))


def packed(signs):
    return np.packbits(signs > 0, axis=-1, bitorder="little")


def as_pairs(hits):
    return list(zip(*hits, strict=True))


@settings(max_examples=150)
@given(
    CODE_BITS,
    N_ITEMS,
    st.sampled_from(["random", "clustered", "alike"]),
    st.sampled_from([1, 2, 10, 100, 1000]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.3, 1.0]),
)
def test_every_isa_finds_what_sorting_all_rows_finds(code_bits, n_items, kind, k, seed, excluded_share):
    rng = np.random.default_rng(seed)
    signs, query = make_signs(n_items, code_bits, kind, rng), make_signs(1, code_bits, "random", rng)[0]
    excluded = rng.random(n_items) < excluded_share
    bitmap = np.packbits(excluded, bitorder="little") if excluded_share else None
    expected = oracle.topk(signs, query, k, set(np.flatnonzero(excluded).tolist()))
    items, wanted = _kernel.CodesPointer(packed(signs), code_bits), _kernel.CodesPointer(packed(query), code_bits)
    for _ in each_isa():
        assert as_pairs(_kernel.topk(items, wanted, k, bitmap)) == expected


@settings(max_examples=60)
@given(
    st.sampled_from([8, 56, 64, 72, 128, 256]),
    N_ITEMS,
    st.sampled_from([0, 1, 5, 23, 24, 64, 65, 130]),
    st.sampled_from(["random", "clustered", "alike"]),
    st.sampled_from([1, 10, 300]),
    st.integers(0, 2**32 - 1),
)
def test_a_batch_gives_each_query_what_it_gets_alone(code_bits, n_items, n_queries, kind, k, seed):
    rng = np.random.default_rng(seed)
    signs, queries = make_signs(n_items, code_bits, kind, rng), make_signs(n_queries, code_bits, "random", rng)
    excluded = rng.random((n_queries, n_items)) < 0.2
    bitmaps = np.packbits(excluded, axis=1, bitorder="little")
    items = _kernel.CodesPointer(packed(signs), code_bits)
    wanted = _kernel.CodesPointer(packed(queries), code_bits)
    expected = [
        oracle.topk(signs, query, k, set(np.flatnonzero(row).tolist()))
        for query, row in zip(queries, excluded, strict=True)
    ]
    for _ in each_isa():
        assert [as_pairs(hits) for hits in _kernel.topk_batch(items, wanted, k, bitmaps)] == expected


@settings(max_examples=60)
@given(CODE_BITS, N_ITEMS, st.integers(0, 2**32 - 1))
def test_distances_are_the_number_of_differing_signs(code_bits, n_items, seed):
    rng = np.random.default_rng(seed)
    signs, query = make_signs(n_items, code_bits, "random", rng), make_signs(1, code_bits, "random", rng)[0]
    items, wanted = _kernel.CodesPointer(packed(signs), code_bits), _kernel.CodesPointer(packed(query), code_bits)
    for _ in each_isa():
        out = np.zeros(n_items, np.uint16)
        _kernel.distances(items, wanted, out)
        assert out.tolist() == oracle.distances(signs, query).tolist()


def test_rows_read_beyond_the_cache_limit_are_ranked_the_same(isa):
    """Large matrices take another loop (with prefetching); its result must not differ from the plain one."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 256, (2_200_000, 8), dtype=np.uint8)
    query = rng.integers(0, 256, 8, dtype=np.uint8)
    distance = np.unpackbits(codes ^ query, axis=1).sum(axis=1, dtype=np.int64)
    best = np.lexsort((np.arange(len(codes)), distance))[:50]
    hits = _kernel.topk(_kernel.CodesPointer(codes, 64), _kernel.CodesPointer(query, 64), 50)
    assert as_pairs(hits) == [(int(i), int(distance[i])) for i in best]


def test_worst_order_for_a_heap_is_still_exact(isa):
    """Rows come nearest last, so that every one of them enters the heap."""
    signs = np.tril(np.ones((65, 64), np.int8), -1) * 2 - 1
    signs = np.repeat(signs, 50, axis=0).astype(np.int8)
    query = np.ones(64, np.int8)
    hits = _kernel.topk(_kernel.CodesPointer(packed(signs), 64), _kernel.CodesPointer(packed(query), 64), 120)
    assert as_pairs(hits) == oracle.topk(signs, query, 120, set())


def test_searches_in_many_threads_do_not_write_over_each_other():
    """The room for hits is reused, and the kernel runs without the interpreter's lock."""
    rng = np.random.default_rng(3)
    items = _kernel.CodesPointer(rng.integers(0, 256, (20_000, 8), dtype=np.uint8), 64)
    queries = [_kernel.CodesPointer(rng.bytes(8), 64) for _ in range(8)]
    wanted = [_kernel.topk(items, query, 100) for query in queries]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda query: [_kernel.topk(items, query, 100) for _ in range(100)], queries))
    assert found == [[hits] * 100 for hits in wanted]
