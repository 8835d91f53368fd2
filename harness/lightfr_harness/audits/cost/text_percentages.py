"""Claim: on Ciao, LightFR's storage is 3.1 % of FedMF's, 8.1 % of MetaMF's and 8 % of the others'.

The paper's own formulas say otherwise; nothing needs to be run to see it.
"""

from __future__ import annotations

from lightfr_harness.audits.cost.formulas import DATASETS, FCF, FEDMF, FEDREC, LIGHTFR, METAMF, PRIVREC, Shape
from lightfr_harness.audits.finding import Finding, counted, of_the_paper

CLAIM, SOURCE = "storage as a share of another method's", "the paper's text on Ciao, against its own formulas"
STATED = ((FEDMF, 0.031), (METAMF, 0.081), (FCF, 0.08), (FEDREC, 0.08), (PRIVREC, 0.08))
TOLERANCE = 0.05  # of the stated figure: it is rounded to two digits


def audit() -> list[Finding]:
    """One finding for each method that the text compares with."""
    shape = Shape(*DATASETS["ciao"])
    findings = []
    for method, stated in STATED:
        share = LIGHTFR.storage(shape) / method.storage(shape)
        what = counted(stated, share, "both figures are the paper's: its text, and its formulas")
        holds = abs(share - stated) <= TOLERANCE * stated
        findings.append(of_the_paper(CLAIM, SOURCE, what, "share", holds=holds, mode=f"of {method.name}"))
    return findings
