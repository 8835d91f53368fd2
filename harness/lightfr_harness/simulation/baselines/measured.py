"""What an FCF device stores and sends, counted on disk and in messages."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from lightfr_harness.simulation.baselines.fcf import FcfDevice, FcfOptions, FcfServer, save


def fcf_bytes(n_items: int, n_ratings: int, seed: int) -> dict[str, int]:
    """One round of one device: download all item factors, fit, upload the gradients of rated items, or of all."""
    rng = np.random.default_rng([seed, 43])
    rated = np.sort(rng.choice(n_items, n_ratings, replace=False)).astype(np.uint32)
    options = FcfOptions(unrated_weight=0.0)
    server = FcfServer(n_items, options, seed)
    device = FcfDevice(rated, rng.random(n_ratings), options)
    device.fit(server.item_factors)
    with tempfile.TemporaryDirectory() as folder:
        storage = save(Path(folder), server.item_factors, device.user_factors)
    download, upload = server.item_factors.nbytes, device.upload(server.item_factors).encode()
    published = FcfDevice(rated, np.ones(n_ratings), replace(options, unrated_weight=1.0))
    published.fit(server.item_factors)
    everything = published.upload(server.item_factors).encode()
    return {
        "storage_bytes": storage,
        "round_bytes": download + len(upload),
        "published_round_bytes": download + len(everything),
    }
