"""Top-K search over the rows of open items, and the row that the closed ones share, against a row for every item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr import ItemCodes, OpenRows, Prior, UserCode, rank
from lightfr_harness.bench.timing import interleave
from lightfr_harness.bench.topk import K, make_codes, page_aligned

STEPS = 64
# The share of a nearly-prefix bitmap over which it turns from open to closed.
BLUR = 0.1


def open_items(n_items: int, n_open: int, kind: str, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Say of each item whether it is open: nearly a prefix, as in catalogues numbered by popularity, or at random."""
    order = rng.random(n_items)
    if kind == "prefix":
        order = np.arange(n_items) + order * BLUR * n_open
    is_open = np.zeros(n_items, np.bool_)
    is_open[np.argpartition(order, n_open - 1)[:n_open]] = True
    return is_open


def falling_steps(n_items: int) -> Prior:
    """A prior of as many steps as there may be, which halve in popularity as those of real catalogues do."""
    firsts = sorted({0, *np.geomspace(1, n_items - 1, STEPS - 1).astype(int).tolist()})
    return Prior((first, 4 * (STEPS - place)) for place, first in enumerate(firsts))


def run(n_items: int, n_open: int, code_bits: int, kind: str, seed: int, seconds: float) -> dict[str, Any]:
    """Time both, with and without a prior, in one interleaved run; raise unless their rankings are equal."""
    rng = np.random.default_rng(seed)
    is_open = open_items(n_items, n_open, kind, rng)
    rows = page_aligned(make_codes(n_open + 1, code_bits, "random", rng))
    full = page_aligned(rows[np.where(is_open, np.cumsum(is_open) - 1, n_open)])
    packed = ItemCodes(rows.data, code_bits, OpenRows(np.packbits(is_open, bitorder="little").tobytes(), n_items))
    plain, user = ItemCodes(full.data, code_bits), UserCode(rng.bytes(code_bits // 8))
    prior = falling_steps(n_items)
    contenders: dict[str, Callable[[], Any]] = {
        "open rows": lambda: rank(user, packed, K),
        "full": lambda: rank(user, plain, K),
        "open rows, prior": lambda: rank(user, packed, K, prior=prior),
        "full, prior": lambda: rank(user, plain, K, prior=prior),
    }
    for ours, theirs in (("open rows", "full"), ("open rows, prior", "full, prior")):
        if contenders[ours]() != contenders[theirs]():
            raise AssertionError("the rankings differ: the benchmark would compare different work")
    timings = interleave(contenders, seconds)
    result: dict[str, Any] = {"items": n_items, "open": n_open, "bits": code_bits, "bitmap": kind}
    for name, suffix in (("", ""), (", prior", "_with_prior")):
        ours, theirs = timings[f"open rows{name}"], timings[f"full{name}"]
        result[f"ratio{suffix}"] = theirs.min_ns / ours.min_ns
        result[f"ratio_median{suffix}"] = theirs.median_ns / ours.median_ns
        result[f"open_ns{suffix}"], result[f"full_ns{suffix}"] = ours.min_ns, theirs.min_ns
    return result
