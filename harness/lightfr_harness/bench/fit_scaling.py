"""CPU time of a device's fit for a round against the code length, the ratings and the items, each varied alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from lightfr import UserCode
from lightfr.interactions import Interactions
from lightfr.training import fit_for_round
from lightfr_harness.bench.rounds import make_model

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


def run(seed: int, progress: Callable[[float], None] = lambda share: None) -> dict[str, Any]:
    """Samples of every size in turns, so that a busy minute of the machine meets all of them."""
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
