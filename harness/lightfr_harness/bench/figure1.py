"""Figure 1 of the paper: storage, communication and inference time against item count, codes against real values."""

from __future__ import annotations

from dataclasses import asdict

from lightfr_harness.bench.topk import REAL_FACTORS
from lightfr_harness.records import Figure1Record, TopkRecord

# Rated items of the user whose round the communication panel shows.
RATED = 100


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


def make_record(timings: list[TopkRecord], code_bits: int) -> Figure1Record:
    """The table of timings, and the bytes of the two other panels at the item counts that were timed."""
    chosen = [timing for timing in timings if timing.bits == code_bits and timing.batch == 1]
    counts = sorted(timing.items for timing in chosen)
    return Figure1Record(
        timings=[asdict(timing) for timing in timings],
        figure_bits=code_bits,
        storage_bytes=[{"items": m, **storage_bytes(m, code_bits)} for m in counts],
        communication_bytes=[{"items": m, **communication_bytes(m, RATED, code_bits)} for m in counts],
    )
