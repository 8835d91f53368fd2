"""Claim (Figure 1): from 10^3 to 10^7 items at length 64, codes take less storage, traffic and time than reals."""

from __future__ import annotations

from typing import Any

from lightfr_harness.audits.finding import Finding, Measurement, counted, of_the_paper

SOURCE = "the paper's Figure 1"
STORAGE, TRAFFIC, TIME = (
    f"Figure 1, {what}: real values / codes" for what in ("storage", "communication", "inference")
)
CODE_BITS, RATED = 64, 100


def audit(timings: list[dict[str, Any]]) -> list[Finding]:
    """Three findings for each number of items that was timed."""
    panels = [_panels(timing) for timing in timings]
    return [finding for panel in zip(*panels, strict=True) for finding in panel]


def _panels(timing: dict[str, Any]) -> list[Finding]:
    mode = f"{timing['items']:,} items"
    low, high = timing["ratio_interval"]
    time = Measurement(1.0, timing["ratio"], (low, high), "the figure shows codes below real values throughout")
    return [
        _bytes(STORAGE, timing["storage_bytes"], mode),
        _bytes(TRAFFIC, timing["communication_bytes"], mode),
        of_the_paper(TIME, SOURCE, time, "times", holds=timing["ratio"] > 1, mode=mode),
    ]


def _bytes(claim: str, figures: dict[str, float], mode: str) -> Finding:
    real, printed, packed = (figures[name] for name in ("real values", "codes, the paper's formula", "codes, packed"))
    what = counted(real / printed, real / packed, "predicted: the formulas as printed; measured: codes packed")
    return of_the_paper(claim, SOURCE, what, "times", holds=real > packed, mode=mode)
