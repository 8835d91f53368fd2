"""Claim: what every method keeps on the device and sends in a round, by the paper's formulas, beside FCF as implemented here."""

from __future__ import annotations

from typing import Any

from lightfr_harness.audits.cost.formulas import FCF, METHODS, Shape
from lightfr_harness.audits.finding import Finding, Measurement, counted, formula_only, of_the_paper

STORAGE, COMMUNICATION = "storage by the paper's formula", "bytes of a round by the paper's formula"
SOURCE = "the paper's cost table"
TOLERANCE = 0.02


def audit(shape: Shape, baselines: dict[str, Any]) -> list[Finding]:
    """Two findings for each method, and one for FCF as its own authors describe it."""
    measured = {FCF.name: baselines["fcf"]} if "fcf" in baselines else {}
    findings = []
    for method in METHODS:
        figures = measured.get(method.name, {})
        findings.append(_finding(STORAGE, method.name, method.storage(shape), figures.get("storage_bytes")))
        findings.append(_finding(COMMUNICATION, method.name, method.communication(shape), figures.get("round_bytes")))
    return findings + [_as_published(shape, figures["published_round_bytes"]) for figures in measured.values()]


def _finding(claim: str, name: str, predicted: float, measured: float | None) -> Finding:
    if measured is None:
        return formula_only(claim, SOURCE, predicted, "bytes", name)
    return of_the_paper(claim, SOURCE, counted(predicted, measured), "bytes", holds=_near(measured, predicted), mode=name)


def _as_published(shape: Shape, measured: float) -> Finding:
    """FCF weighs every item, rated or not, so its devices upload a gradient for each."""
    note = "FCF as its authors publish it uploads a row for every item; the formula counts the rated ones"
    what: Measurement = counted(FCF.communication(shape), measured, note)
    holds = _near(measured, what.predicted)
    return of_the_paper(COMMUNICATION, SOURCE, what, "bytes", holds=holds, mode="FCF, all gradients")


def _near(measured: float, predicted: float) -> bool:
    return abs(measured - predicted) <= TOLERANCE * predicted
