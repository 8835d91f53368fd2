"""Figure 1 of the paper: storage, communication and inference time against item count, codes against real values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lightfr_harness.bench.topk import REAL_FACTORS


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


def draw(records: list[dict[str, Any]], code_bits: int, path: Path) -> None:
    """Draw the three panels from records of bench.topk (one per item count) and save them."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(13, 4), layout="constrained")
    counts = sorted(record["items"] for record in records)
    tables = (
        ("Storage on the device", "bytes", [storage_bytes(m, code_bits) for m in counts]),
        ("Communication of one round", "bytes", [communication_bytes(m, 100, code_bits) for m in counts]),
        ("Inference, one top-10 query", "CPU ms", [_inference(records, m) for m in counts]),
    )
    for panel, (title, unit, rows) in zip(panels, tables, strict=True):
        for style, name in zip(("o-", "s--", "^-", "v:"), rows[0], strict=False):
            panel.plot(counts, [row[name] for row in rows], style, label=name)
        panel.set(title=title, xlabel="items", ylabel=unit, xscale="log", yscale="log")
        panel.grid(alpha=0.3)
        panel.legend(frameon=False)
    figure.suptitle(f"{code_bits}-bit codes against {REAL_FACTORS} float64 factors")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _inference(records: list[dict[str, Any]], n_items: int) -> dict[str, float]:
    record = next(record for record in records if record["items"] == n_items)
    times = {"codes, our kernel": record["ours_ns"] / 1e6, "real values, numpy": record["float64_ns"] / 1e6}
    if record.get("faiss_ns"):
        times["codes, faiss"] = record["faiss_ns"] / 1e6
    return times
