"""`serve` with a stand-in for aggregation: each round changes 1 % of the rows, to random bits.

That is what a delta costs in a late round at its worst, since random bits cannot be compressed; training a catalogue
of a million items until its rounds are late is not possible here. Used by `bench device` alone.
"""

from __future__ import annotations

import numpy as np

from lightfr_harness.cli import app
from lightfr_harness.server.rules import CatalogueRule

CHANGED = 0.01


def _change_some(server: CatalogueRule, *, balanced: bool) -> None:
    rng = np.random.default_rng(server.n_items)
    rows = rng.choice(server.n_items, round(CHANGED * server.n_items), replace=False)
    # Never zero in the first byte, so that each of these rows does change.
    server.codes[rows] ^= rng.integers(1, 256, (len(rows), server.codes.shape[1]), dtype=np.uint8)


if __name__ == "__main__":
    CatalogueRule._apply = _change_some  # type: ignore[method-assign]
    app()
