"""A formula of the paper for every method, beside what was measured of those that are implemented here."""

from __future__ import annotations

from collections.abc import Mapping

from lightfr_harness.audits.cost.formulas import METHODS, PACKED, Method
from lightfr_harness.audits.finding import Finding, counted, for_information, formula_only, of_the_paper

SOURCE = "the paper's cost table"
# Framing, such as the numbers of the rows that a message carries.
TOLERANCE = 0.02


def findings(claim: str, predicted: Mapping[Method, float], measured: Mapping[str, float]) -> list[Finding]:
    """One for each method, by its name in `measured` where it is there."""
    return [_finding(claim, method, predicted[method], measured.get(method.name)) for method in METHODS]


def finding_of_the_paper(claim: str, predicted: float, measured: float, mode: str, note: str = "") -> Finding:
    """Confirmed when the figures agree but for framing."""
    holds = abs(measured - predicted) <= TOLERANCE * predicted
    return of_the_paper(claim, SOURCE, counted(predicted, measured, note), "bytes", holds=holds, mode=mode)


def _finding(claim: str, method: Method, predicted: float, measured: float | None) -> Finding:
    if measured is None:
        return formula_only(claim, SOURCE, predicted, "bytes", method.name)
    if method is PACKED:
        return for_information(claim, "bits packed", counted(predicted, measured), "bytes", method.name)
    return finding_of_the_paper(claim, predicted, measured, method.name)
