"""The user fit: the kernel against a plain numpy version of the same equations, with identical bits."""

from __future__ import annotations

import numpy as np

from lightfr import _kernel
from lightfr_harness import oracle
from lightfr_harness.bench.timing import interleave
from lightfr_harness.records import FitRecord


def run(n_rated: int, code_bits: int, n_items: int, seed: int, seconds: float) -> FitRecord:
    """Time ten sweeps of the catalogue fit; raise unless every bit agrees."""
    rng = np.random.default_rng(seed)
    signs = rng.choice(np.array([-1, 1], np.int8), (n_items, code_bits))
    packed = np.packbits(signs > 0, axis=1, bitorder="little")
    gram, sums = np.zeros((code_bits, code_bits), np.int64), np.zeros(code_bits, np.int64)
    _kernel.gram(_kernel.CodesPointer(packed.data, code_bits), gram.data, sums.data)
    targets = rng.integers(0, code_bits, n_rated).astype(np.int32)
    start = packed[-1].tobytes()
    fit, extra = _kernel.Fit(code_bits), -n_rated * (3 * code_bits // 10) * sums
    fit.use_catalogue(gram.data, sums.data, extra.data)

    def kernel() -> bytes:
        code = bytearray(start)
        fit.prepare(
            packed[:n_rated].data, targets.data, n_rated, row_factor=n_items, target_factor=n_items, gram_factor=n_rated
        )
        fit.sweep(code, 10)
        return bytes(code)

    def plain() -> bytes:
        terms = oracle.FitTerms(signs[:n_rated], targets, n_items, n_items, gram, n_rated, extra)
        code = oracle.fit_sweeps(terms, oracle.unpack(start), 10)
        return oracle.pack(code)

    if kernel() != plain():
        raise AssertionError("kernel and oracle fit different bits")
    timings = interleave({"ours": kernel, "numpy": plain}, seconds)
    ours, plain_numpy = timings["ours"], timings["numpy"]
    return FitRecord(
        rated=n_rated,
        bits=code_bits,
        numpy_ratio=plain_numpy.min_ns / ours.min_ns,
        numpy_ratio_median=plain_numpy.median_ns / ours.median_ns,
        ours_ns=ours.min_ns,
        repeats=ours.repeats,
    )
