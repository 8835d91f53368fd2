"""Claim: what every method sends in a round, up and down, by the paper's formulas."""

from __future__ import annotations

from lightfr_harness.audits.cost import by_formula
from lightfr_harness.audits.cost.formulas import FCF, METHODS, Shape
from lightfr_harness.audits.finding import Finding

CLAIM = "bytes of a round by the paper's formula"
ALL_GRADIENTS = "FCF, all gradients"
NOTE = "FCF weighs every item, rated or not, so as published it uploads a row for each; the formula counts rated ones"


def audit(shape: Shape, measured: dict[str, float]) -> list[Finding]:
    """One finding for each method, and one for FCF as published; `measured` holds bytes of messages by name."""
    predicted = {method: method.communication(shape) for method in METHODS}
    findings = by_formula.findings(CLAIM, predicted, measured)
    if ALL_GRADIENTS in measured:
        everything = measured[ALL_GRADIENTS]
        findings.append(by_formula.finding_of_the_paper(CLAIM, predicted[FCF], everything, ALL_GRADIENTS, NOTE))
    return findings
