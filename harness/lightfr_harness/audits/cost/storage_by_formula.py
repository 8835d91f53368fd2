"""Claim: what every method keeps on the device, by the paper's formulas."""

from __future__ import annotations

from lightfr_harness.audits.cost import by_formula
from lightfr_harness.audits.cost.formulas import METHODS, Shape
from lightfr_harness.audits.finding import Finding

CLAIM = "storage by the paper's formula"


def audit(shape: Shape, measured: dict[str, float]) -> list[Finding]:
    """One finding for each method; `measured` holds bytes on disk by the method's name."""
    return by_formula.findings(CLAIM, {method: method.storage(shape) for method in METHODS}, measured)
