"""The user fit: the kernel against a plain numpy version of the same equations, and how its CPU time grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from lightfr import UserCode, _kernel
from lightfr.interactions import Interactions
from lightfr.training import fit_for_round
from lightfr_harness import oracle
from lightfr_harness.bench.rounds import make_model
from lightfr_harness.bench.timing import interleave
from lightfr_harness.records import FitRecord

# How CPU time grows: samples of each size, and the sizes of what is not varied.
SAMPLES = 7
BITS, RATINGS, ITEMS = 64, 38, 20_000
# Sizes that are varied. Small ones would measure the overhead of a call, not its growth.
VARIED = {
    "bits": (128, 192, 256, 320, 384),
    "ratings": (8_000, 16_000, 24_000, 32_000, 64_000),
    "items": (50_000, 100_000, 200_000, 400_000, 800_000),
}
NOTES = {
    "bits": f"{ITEMS:,} items, {RATINGS} ratings; fit and Gram matrix",
    # A user cannot rate more items than there are, so the term of the items would hide that of the ratings.
    "ratings": f"{BITS} bits, Gram matrix at hand; fit alone",
    "items": f"{BITS} bits, {RATINGS} ratings; fit and Gram matrix",
}


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


def scaling(seed: int, progress: Callable[[float], None] = lambda share: None) -> dict[str, Any]:
    """CPU time of a device's fit against each size, varied alone.

    Samples of every size come in turns, so that a busy minute of the machine meets all of them.
    """
    sweeps: dict[str, Any] = {}
    for place, (name, sizes) in enumerate(VARIED.items()):
        calls = {size: _call(name, size, seed) for size in sizes}
        for call in calls.values():
            call()
        times = {size: [0.0] * SAMPLES for size in sizes}
        for sample in range(SAMPLES):
            for size, call in calls.items():
                times[size][sample] = call()
        sweeps[name] = {"points": [[size, times[size]] for size in sizes], "note": NOTES[name]}
        progress((place + 1) / len(VARIED))
    return sweeps


def _call(varied: str, size: int, seed: int) -> Callable[[], float]:
    """A fit of that size from a fixed start; returns its CPU seconds."""
    sizes = {"bits": BITS, "ratings": RATINGS, "items": ITEMS, varied: size}
    bits, ratings, items = sizes["bits"], sizes["ratings"], max(sizes["items"], sizes["ratings"])
    rng = np.random.default_rng([seed, 41])
    rated = Interactions((item, 0) for item in rng.choice(items, ratings, replace=False).tolist())
    start, model = UserCode(rng.bytes(bits // 8)), make_model(items, bits, seed)

    def timed() -> float:
        if varied != "ratings":
            model.__dict__.pop("fit", None)  # so that the Gram matrix is computed anew
        before = time.process_time_ns()
        fit_for_round(model, rated, start)
        return (time.process_time_ns() - before) / 1e9

    return timed
