"""Claim: 10 million items at length 128 take 10.2 GB as real values and at most 1.3 GB as codes. Packed, 160 MB."""

from __future__ import annotations

from typing import Any

from lightfr_harness.audits.cost.formulas import FLOAT_BYTES, PACKED, Shape
from lightfr_harness.audits.finding import Finding, counted, formula_only, of_the_paper

CLAIM, SOURCE = "storage of 10 M items at length 128", "the paper's introduction"
SHAPE = Shape(items=10_000_000, ratings=0, bits=128)
REAL_BYTES, CODE_BYTES = 10.2e9, 1.3e9
TOLERANCE = 0.05


def audit(shape: Shape, disk: dict[str, Any] | None) -> list[Finding]:
    """The text's two figures against the bytes themselves. `disk` counts if the device audited had just these items."""
    real = (1 + SHAPE.items) * SHAPE.bits * FLOAT_BYTES
    packed = PACKED.storage(SHAPE)
    findings = [
        _against("real values", REAL_BYTES, real, "128 float64 values a row"),
        _against("codes", CODE_BYTES, packed, "128 bits are 16 bytes; the text has one byte for each bit"),
    ]
    if disk is not None and (shape.items, shape.bits) == (SHAPE.items, SHAPE.bits):
        note = "the codes on the disk of the audited device"
        return [*findings, _against("codes on disk", CODE_BYTES, disk["codes"], note)]
    note = "measure it with --items 10000000 --bits 128 --profile mid-phone"
    return [*findings, formula_only(CLAIM, SOURCE, packed, "bytes", "codes on disk", note)]


def _against(mode: str, stated: float, computed: float, note: str) -> Finding:
    holds = abs(computed - stated) <= TOLERANCE * stated
    return of_the_paper(CLAIM, SOURCE, counted(stated, computed, note), "bytes", holds=holds, mode=mode)
