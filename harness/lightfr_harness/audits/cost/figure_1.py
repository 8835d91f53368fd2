"""Claim (Figure 1): from 10^3 to 10^7 items at length 64, codes take less storage, traffic and time than real values."""

from __future__ import annotations

from typing import Any

from lightfr_harness.audits.finding import Finding, Measurement, counted, of_the_paper
from lightfr_harness.bench.figure1 import communication_bytes, storage_bytes

SOURCE = "the paper's Figure 1"
STORAGE, TRAFFIC, TIME = (f"Figure 1, {what}: real values / codes" for what in ("storage", "communication", "inference"))
CODE_BITS, RATED = 64, 100


def audit(timings: list[dict[str, Any]]) -> list[Finding]:
    """Three findings for each number of items that was timed. Each predicts a ratio above 1, the formulas as printed."""
    return [finding for timing in timings for finding in _panels(timing)]


def _panels(timing: dict[str, Any]) -> list[Finding]:
    items = timing["items"]
    mode = f"{items:,} items"
    low, high = timing["ratio_interval"]
    time = Measurement(1.0, timing["ratio"], (low, high), "the figure shows codes below real values throughout")
    return [
        _bytes(STORAGE, storage_bytes(items, CODE_BITS), mode),
        _bytes(TRAFFIC, communication_bytes(items, RATED, CODE_BITS), mode),
        of_the_paper(TIME, SOURCE, time, "times", holds=timing["ratio"] > 1, mode=mode),
    ]


def _bytes(claim: str, figures: dict[str, float], mode: str) -> Finding:
    real, printed, packed = (
        figures[name] for name in ("real values", "codes, the paper's formula", "codes, packed")
    )
    what = counted(real / printed, real / packed, "predicted: the formulas as printed; measured: codes packed")
    return of_the_paper(claim, SOURCE, what, "times", holds=real > packed, mode=mode)
