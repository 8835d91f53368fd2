"""Top-K search: our kernel, faiss, float64 inner products, and a plain read of the same bytes.

Also the paper's Figure 1: storage, communication and inference time against item count, codes against real values.
"""

from __future__ import annotations

import mmap
import platform
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr import _kernel
from lightfr.errors import CodeLengthError
from lightfr_harness.bench._floor import ffi as floor_ffi
from lightfr_harness.bench._floor import lib as floor_lib
from lightfr_harness.bench.timing import interleave, interleave_samples
from lightfr_harness.errors import import_package
from lightfr_harness.records import Figure1Record, TopkRecord

Codes = npt.NDArray[np.uint8]

K = 10
REAL_FACTORS = 32  # f of the real-valued methods in the paper
# Rated items of the user whose round the communication panel of the paper's Figure 1 shows.
FIGURE_1_RATED = 100
CLUSTERS = 200
FLIP_CHANCE = 0.12


def make_codes(n_items: int, code_bits: int, kind: str, rng: np.random.Generator) -> Codes:
    """Make packed codes: uniformly random, or clustered as learned codes are.

    Learned codes lie around few tastes of very different sizes; here, CLUSTERS centres with Zipf-like shares, each bit
    turned over with FLIP_CHANCE. A trained matrix of 10^7 rows does not exist to be taken instead.
    """
    code_bytes = code_bits // 8
    if kind == "random":
        return rng.integers(0, 256, (n_items, code_bytes), dtype=np.uint8)
    centres = rng.integers(0, 256, (CLUSTERS, code_bytes), dtype=np.uint8)
    shares = 1 / np.arange(1, CLUSTERS + 1)
    codes = centres[rng.choice(CLUSTERS, n_items, p=shares / shares.sum())]
    for start in range(0, n_items, 1_000_000):
        part = codes[start : start + 1_000_000]
        part ^= np.packbits(rng.random((len(part), code_bits), dtype=np.float32) < FLIP_CHANCE, axis=1)
    return codes


def page_aligned(codes: Codes) -> Codes:
    """Copy to the start of a page, as mapped files lie, in huge pages where offered, as numpy does for large arrays."""
    memory = mmap.mmap(-1, codes.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    copy = np.frombuffer(memory, np.uint8).reshape(codes.shape)
    copy[:] = codes
    return copy


def ours(codes: Codes, queries: Codes) -> Callable[[], Any]:
    """Our kernel, with the pointers made once as the SDK does."""
    code_bits = codes.shape[1] * 8
    items, wanted = _kernel.CodesPointer(codes.data, code_bits), _kernel.CodesPointer(queries.data, code_bits)
    if len(queries) == 1:
        return lambda: _kernel.topk(items, wanted, K)
    return lambda: _kernel.topk_batch(items, wanted, K)


def faiss_flat(codes: Codes, queries: Codes) -> Callable[[], Any]:
    """faiss IndexBinaryFlat on one thread."""
    faiss = import_package("faiss", "faiss-cpu", "The top-K benchmark")
    faiss.omp_set_num_threads(1)
    index = faiss.IndexBinaryFlat(codes.shape[1] * 8)
    index.add(codes)
    return lambda: index.search(queries, K)


def float64_product(n_items: int, n_queries: int, rng: np.random.Generator) -> Callable[[], Any]:
    """What a real-valued method does: inner products in float64, then the K largest."""
    # A block of a million rows, 256 MB, is beyond every cache: reading it again costs what reading the next one would.
    block = rng.standard_normal((min(n_items, 1_000_000), REAL_FACTORS))
    queries = rng.standard_normal((n_queries, REAL_FACTORS))
    scores = np.empty(n_items)

    def search() -> None:
        for query in queries:
            for start in range(0, n_items, len(block)):
                part = scores[start : start + len(block)]
                np.dot(block[: len(part)], query, out=part)
            best = np.argpartition(scores, max(n_items - K, 0))[-K:]
            best[np.argsort(-scores[best])]

    return search


def against_real_values(
    n_items: int, code_bits: int, seed: int, seconds: float, least: int = 3
) -> dict[str, list[float]]:
    """CPU nanoseconds, sample by sample, of a top-K from codes and of one from real values, in turns."""
    rng = np.random.default_rng(seed)
    codes = page_aligned(make_codes(n_items, code_bits, "random", rng))
    contenders = {"codes": ours(codes, codes[:1].copy()), "real values": float64_product(n_items, 1, rng)}
    return interleave_samples(contenders, seconds, least)


def floor_read(codes: Codes) -> Callable[[], Any]:
    """Read the bytes of the codes once."""
    pointer, n_bytes = floor_ffi.from_buffer("uint8_t[]", codes), codes.nbytes
    return lambda: floor_lib.lfr_floor_read(pointer, n_bytes)


def require_equal(codes: Codes, queries: Codes, search: Callable[[], Any], name: str) -> None:
    """Stop the benchmark unless both find the same distances."""
    found = ours(codes, queries)()
    mine = [distances for _, distances in ([found] if len(queries) == 1 else found)]
    theirs = np.sort(search()[0], axis=1).tolist()
    if mine != theirs:
        raise AssertionError(f"our distances differ from those of {name}: the benchmark would compare different work")


def run(n_items: int, code_bits: int, batch: int, kind: str, seed: int, seconds: float) -> TopkRecord:
    """Time all contenders in one interleaved run; ratios are of the minima, medians beside them."""
    if not 8 <= code_bits <= 1024 or code_bits % 8:
        raise CodeLengthError(code_bits)
    rng = np.random.default_rng(seed)
    codes = page_aligned(make_codes(n_items, code_bits, kind, rng))
    queries = codes[rng.integers(0, n_items, batch)] ^ np.packbits(rng.random((batch, code_bits)) < 0.1, axis=1)
    search = faiss_flat(codes, queries)
    require_equal(codes, queries, search, "faiss")
    real = float64_product(n_items, batch, rng)
    contenders = {"ours": ours(codes, queries), "floor": floor_read(codes), "faiss": search, "float64": real}
    timings = interleave(contenders, seconds)
    least = {name: timing.min_ns for name, timing in timings.items()}
    median = {name: timing.median_ns for name, timing in timings.items()}
    return TopkRecord(
        items=n_items,
        bits=code_bits,
        batch=batch,
        codes=kind,
        k=K,
        seed=seed,
        isa=_kernel.isa_name(),
        machine=platform.machine(),
        faiss_ratio=least["faiss"] / least["ours"],
        float64_ratio=least["float64"] / least["ours"],
        floor_ratio=least["ours"] / least["floor"],
        faiss_ratio_median=median["faiss"] / median["ours"],
        float64_ratio_median=median["float64"] / median["ours"],
        floor_ratio_median=median["ours"] / median["floor"],
        ours_ns=least["ours"],
        ours_median_ns=median["ours"],
        floor_ns=least["floor"],
        floor_median_ns=median["floor"],
        faiss_ns=least["faiss"],
        faiss_median_ns=median["faiss"],
        float64_ns=least["float64"],
        float64_median_ns=median["float64"],
        repeats=timings["ours"].repeats,
    )


def storage_bytes(n_items: int, code_bits: int) -> dict[str, float]:
    """Bytes on the device: one row per item and one for the user."""
    return {
        "codes, packed": (1 + n_items) * code_bits / 8,
        "codes, the paper's formula": (1 + n_items) * code_bits,
        "real values": (1 + n_items) * REAL_FACTORS * 8,
    }


def communication_bytes(n_items: int, n_rated: int, code_bits: int) -> dict[str, float]:
    """Bytes of one round, up and down, by the paper's formula with packed rows and as printed."""
    return {
        "codes, packed": (n_rated + n_items) * code_bits / 8,
        "codes, the paper's formula": (n_rated + n_items) * code_bits,
        "real values": (n_rated + n_items) * REAL_FACTORS * 8,
    }


def figure_1_record(timings: list[TopkRecord], code_bits: int) -> Figure1Record:
    """The table of timings, and the bytes of the two other panels at the item counts that were timed."""
    chosen = [timing for timing in timings if timing.bits == code_bits and timing.batch == 1]
    counts = sorted(timing.items for timing in chosen)
    return Figure1Record(
        timings=[asdict(timing) for timing in timings],
        figure_bits=code_bits,
        storage_bytes=[{"items": m, **storage_bytes(m, code_bits)} for m in counts],
        communication_bytes=[{"items": m, **communication_bytes(m, FIGURE_1_RATED, code_bits)} for m in counts],
    )
