"""Claims of the paper about bytes: its cost table, the percentages of its text, and 10 million items.

The table is set beside what was measured of the methods that are implemented here. The text is set beside the table:
nothing needs to be run to see that the two differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lightfr_harness.audits.cost.formulas import (
    DATASETS,
    FCF,
    FEDMF,
    FEDREC,
    FLOAT_BYTES,
    LIGHTFR,
    METAMF,
    METHODS,
    OURS,
    PACKED,
    PRIVREC,
    Method,
    Shape,
)
from lightfr_harness.audits.finding import Finding, counted, for_information, formula_only, of_the_paper

SOURCE = "the paper's cost table"
STORAGE, COMMUNICATION = "storage by the paper's formula", "bytes of a round by the paper's formula"
# Framing, such as the numbers of the rows that a message carries.
FRAMING = 0.02
ALL_GRADIENTS, ALL_ROWS = "FCF, all gradients", "FedMF, all rows up"
DECRYPTED_ONCE, MULTIPLIED = "FedMF, decrypted once", "MetaMF, server multiplies"
# Other readings of a method: whose formula they are judged by, and how they differ.
READINGS = {
    ALL_GRADIENTS: (
        FCF,
        "FCF weighs every item, rated or not, so as published it uploads a row for each; the formula counts rated ones",
    ),
    ALL_ROWS: (FEDMF, "every row goes up, in ciphertexts of 2,048 bits, so that nobody sees which are rated"),
    DECRYPTED_ONCE: (FEDMF, "the device decrypts what it downloads and keeps plain numbers"),
    MULTIPLIED: (METAMF, "the server multiplies the user's A and B, so that the whole item table comes down"),
}
# These differ from their methods in what they send alone, and the other reading in what it stores.
SENT_OTHERWISE = (ALL_GRADIENTS, ALL_ROWS, MULTIPLIED)
# Why a measured figure is not the formula's.
REASONS = {
    FEDMF.name: "a key of 1,024 bits makes ciphertexts of 2,048 bits",
    METAMF.name: "the layers are f h + 2 h + 1 numbers, down come A and B only, and gradients of rated rows go up",
    LIGHTFR.name: "the formula has a byte for each bit; here bits are packed",
}
SHARES = ((FEDMF, 0.031), (METAMF, 0.081), (FCF, 0.08), (FEDREC, 0.08), (PRIVREC, 0.08))
TEN_MILLION = Shape(items=10_000_000, ratings=0, bits=128)
TEN_MILLION_REAL_BYTES, TEN_MILLION_CODE_BYTES = 10.2e9, 1.3e9
# Of a figure in the text: it is rounded to two digits.
ROUNDING = 0.05


def storage(shape: Shape, measured: Mapping[str, float]) -> list[Finding]:
    """What every method keeps on the device; `measured` holds bytes on disk by the method's name."""
    return _by_formulas(STORAGE, {method: method.storage(shape) for method in METHODS}, measured)


def communication(shape: Shape, measured: Mapping[str, float]) -> list[Finding]:
    """What every method sends in a round, up and down; `measured` holds bytes by name."""
    return _by_formulas(COMMUNICATION, {method: method.communication(shape) for method in METHODS}, measured)


def _by_formulas(claim: str, predicted: Mapping[Method, float], measured: Mapping[str, float]) -> list[Finding]:
    """The methods of the table, and those other readings of them that were measured."""
    findings = []
    for method, formula in predicted.items():
        name = method.name
        if name not in measured:
            findings.append(formula_only(claim, SOURCE, formula, "bytes", name))
        elif method in OURS:
            what = counted(formula, measured[name])
            findings.append(for_information(claim, "bits packed", what, "bytes", name))
        else:
            findings.append(_table_finding(claim, formula, measured[name], name, REASONS.get(name, "")))
    for name, (method, note) in READINGS.items():
        if name in measured:
            findings.append(_table_finding(claim, predicted[method], measured[name], name, note))
    return findings


def _table_finding(claim: str, predicted: float, measured: float, mode: str, reason: str) -> Finding:
    """Confirmed when the figures agree but for framing. The note has the factor, and the reason where they do not."""
    holds = abs(measured - predicted) <= FRAMING * predicted
    note = times_stated(measured, predicted, "the formula's") + (f": {reason}" if reason and not holds else "")
    return of_the_paper(claim, SOURCE, counted(predicted, measured, note), "bytes", holds=holds, mode=mode)


def times_stated(measured: float, stated: float, whose: str) -> str:
    """The factor between two figures, as notes have it."""
    return f"{measured / stated:.4g} times {whose}"


def text_percentages() -> list[Finding]:
    """On Ciao, LightFR's storage is 3.1 % of FedMF's, 8.1 % of MetaMF's and 8 % of the others', says the text."""
    shape, findings = Shape(*DATASETS["ciao"]), []
    claim, source = "storage as a share of another method's", "the paper's text on Ciao, against its own formulas"
    for method, stated in SHARES:
        share = LIGHTFR.storage(shape) / method.storage(shape)
        what = counted(stated, share, "both figures are the paper's: its text, and its formulas")
        holds = abs(share - stated) <= ROUNDING * stated
        findings.append(of_the_paper(claim, source, what, "share", holds=holds, mode=f"of {method.name}"))
    return findings


def ten_million_items(shape: Shape, disk: Mapping[str, Any] | None) -> list[Finding]:
    """10 million items at length 128 take 10.2 GB as real values and at most 1.3 GB as codes, says the introduction.

    Packed they take 160 MB. `disk` counts if the device audited had just these items, all of them open.
    """
    claim, source = "storage of 10 M items at length 128", "the paper's introduction"

    def against(mode: str, stated: float, computed: float, note: str) -> Finding:
        holds = abs(computed - stated) <= ROUNDING * stated
        return of_the_paper(claim, source, counted(stated, computed, note), "bytes", holds=holds, mode=mode)

    real = (1 + TEN_MILLION.items) * TEN_MILLION.bits * FLOAT_BYTES
    packed, stated = PACKED.storage(TEN_MILLION), TEN_MILLION_CODE_BYTES
    findings = [
        against("real values", TEN_MILLION_REAL_BYTES, real, "128 float64 values a row"),
        against("codes", stated, packed, "128 bits are 16 bytes; the text has one byte for each bit"),
    ]
    if disk is not None and (shape.rows, shape.bits) == (TEN_MILLION.items, TEN_MILLION.bits):
        return [*findings, against("codes on disk", stated, disk["codes"], "the codes on the audited device's disk")]
    note = "measure it with --items 10000000 --open-rows 10000000 --bits 128 --privacy clear"
    return [*findings, formula_only(claim, source, packed, "bytes", "codes on disk", note)]
