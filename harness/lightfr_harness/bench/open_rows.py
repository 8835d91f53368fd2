"""Top-K search over the rows of open items, and the row that the closed ones share, against a row for every item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr import OpenRows, _kernel
from lightfr_harness.bench.timing import interleave
from lightfr_harness.bench.topk import K, make_codes, page_aligned
from lightfr_harness.records import OpenRowsRecord

STEPS = 64
# The most that popularity adds to scores of 64 bits, for one of the middle candidates that evaluations compare.
MOST_OFFSET = 12
# A bitmap that is nearly a prefix turns from open to closed over this share of the open items.
BLUR = 0.1


def open_items(n_items: int, n_open: int, kind: str, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Say of each item whether it is open: nearly a prefix, as in catalogues numbered by popularity, or at random."""
    order = rng.random(n_items)
    if kind == "prefix":
        order = np.arange(n_items) + order * BLUR * n_open
    is_open = np.zeros(n_items, np.bool_)
    is_open[np.argpartition(order, n_open - 1)[:n_open]] = True
    return is_open


def falling_steps(n_items: int) -> list[tuple[int, int]]:
    """Steps of a prior, as many as there may be, that become ever longer, as those of real catalogues do."""
    firsts = sorted({0, *np.geomspace(1, n_items - 1, STEPS - 1).astype(int).tolist()})
    return [(first, MOST_OFFSET * (STEPS - place) // STEPS) for place, first in enumerate(firsts)]


def run(n_items: int, n_open: int, code_bits: int, kind: str, seed: int, seconds: float) -> OpenRowsRecord:
    """Time both, with and without a prior, in one interleaved run; raise unless they find the same."""
    rng = np.random.default_rng(seed)
    is_open = open_items(n_items, n_open, kind, rng)
    rows = page_aligned(make_codes(n_open + 1, code_bits, "random", rng))
    every = page_aligned(rows[np.where(is_open, np.cumsum(is_open) - 1, n_open)])
    bitmap = OpenRows(np.packbits(is_open, bitorder="little").tobytes(), n_items)
    opened = _kernel.CodesPointer(rows.data, code_bits, bitmap.kernel_pointer())
    full = _kernel.CodesPointer(every.data, code_bits)
    query = _kernel.CodesPointer(rng.bytes(code_bits // 8), code_bits)
    prior = _kernel.PriorPointer(falling_steps(n_items))
    contenders: dict[str, Callable[[], Any]] = {
        "open": lambda: _kernel.topk(opened, query, K),
        "full": lambda: _kernel.topk(full, query, K),
        "open, prior": lambda: _kernel.topk(opened, query, K, prior=prior),
        "full, prior": lambda: _kernel.topk(full, query, K, prior=prior),
    }
    for how in ("", ", prior"):
        if contenders[f"open{how}"]() != contenders[f"full{how}"]():
            raise AssertionError("the rankings differ: the benchmark would compare different work")
    timings = interleave(contenders, seconds)
    least = {name: timing.min_ns for name, timing in timings.items()}
    median = {name: timing.median_ns for name, timing in timings.items()}
    return OpenRowsRecord(
        items=n_items,
        open_items=n_open,
        bits=code_bits,
        bitmap=kind,
        k=K,
        seed=seed,
        ratio=least["full"] / least["open"],
        ratio_median=median["full"] / median["open"],
        open_ns=least["open"],
        full_ns=least["full"],
        prior_ratio=least["full, prior"] / least["open, prior"],
        prior_ratio_median=median["full, prior"] / median["open, prior"],
        prior_open_ns=least["open, prior"],
        prior_full_ns=least["full, prior"],
        repeats=timings["open"].repeats,
    )
