"""Claims about the costs of all six federated methods, each beside what was measured of it.

The formulas of Table 5; the shares and factors of the text on Ciao; the ticks of Table 1, where a tick means costs well
below FCF's, which has none; and that encryption makes FedMF's numbers eight times as long.
"""

from __future__ import annotations

from collections.abc import Sequence

from lightfr_harness.audits.cost import cost_table, speed
from lightfr_harness.audits.cost.cost_table import DECRYPTED_ONCE, ROUNDING, SENT_OTHERWISE, SHARES, times_stated
from lightfr_harness.audits.cost.formulas import (
    FCF,
    FEDMF,
    FEDREC,
    FLOAT_BYTES,
    LIGHTFR,
    METAMF,
    OPEN,
    PACKED,
    PRIVREC,
    REAL_FACTORS,
    Shape,
)
from lightfr_harness.audits.finding import Finding, Measurement, counted, for_information, of_the_paper
from lightfr_harness.paper.stated import COLUMNS, TICKS
from lightfr_harness.records import PaperCostRow

TEXT = "the paper's text on Ciao"
SHARE_CLAIM, GROWTH_CLAIM = "storage as a share of another method's, measured", "growth of a number by encryption"
ONE_FEDMF_CLAIM = "FedMF's storage and inference on one device, as a multiple of the paper's"
# Two figures within this factor could be of the same system on different machines.
NEAR = 4.0
# "32 to 256", says the text.
STATED_GROWTH = 256 / 32
_REALS, _FEDMF, _METAMF = speed.STATED.values()
TIMES = {
    FCF.name: _REALS,
    FEDREC.name: _REALS,
    PRIVREC.name: _REALS,
    FEDMF.name: _FEDMF,
    DECRYPTED_ONCE: _FEDMF,
    METAMF.name: _METAMF,
}
# A method deserves a tick if it costs less than so much of what FCF does.
TICK_SHARE = 0.5
Rows = dict[str, PaperCostRow]


def audit(shape: Shape, measured: Sequence[PaperCostRow]) -> list[Finding]:
    """Every claim; each row holds what was measured of one method, or of one reading of it."""
    rows = {row["name"]: row for row in measured}
    return [
        *cost_table.storage(
            shape, {name: row["storage_bytes"] for name, row in rows.items() if name not in SENT_OTHERWISE}
        ),
        *cost_table.communication(
            shape, {name: round_bytes(row) for name, row in rows.items() if name != DECRYPTED_ONCE}
        ),
        *cost_table.text_percentages(),
        *_shares(rows),
        *_times(rows),
        _one_fedmf(rows),
        *_ticks(rows),
        _growth(shape, rows[FEDMF.name]),
    ]


def round_bytes(row: PaperCostRow) -> float:
    """Both ways."""
    return row["down_bytes"] + row["up_bytes"]


def _shares(rows: Rows) -> list[Finding]:
    """LightFR's files against those of the others."""
    findings, stated = [], {method.name: share for method, share in SHARES}
    for name, share in (*stated.items(), (DECRYPTED_ONCE, stated[FEDMF.name])):
        measured = rows[PACKED.name]["storage_bytes"] / rows[name]["storage_bytes"]
        what = counted(share, measured, f"codes packed; {times_stated(measured, share, 'the text')}")
        holds = abs(measured - share) <= ROUNDING * share
        findings.append(of_the_paper(SHARE_CLAIM, TEXT, what, "share", holds=holds, mode=f"of {name}"))
    return findings


def _times(rows: Rows) -> list[Finding]:
    """How many times slower the others recommend. A claim of so many times is one of at least so many."""
    findings = []
    for name, stated in TIMES.items():
        ratio, (low, high) = rows[name]["ratio"], rows[name]["ratio_interval"]
        if ratio is not None:
            note = times_stated(ratio, stated, "the text's factor")
            what = Measurement(stated, ratio, (low, high), f"{note}; top 10 of unrated items, CPU time, medians")
            findings.append(of_the_paper(speed.CLAIM, TEXT, what, "times", holds=ratio >= stated, mode=f"than {name}"))
    ratio, interval = rows[OPEN.name]["ratio"], rows[OPEN.name]["ratio_interval"]
    if ratio is not None:
        low, high = (1 / end for end in reversed(interval))
        what = Measurement(1.0, 1 / ratio, (low, high), "a search of open rows against one of a row for each item")
        findings.append(for_information(speed.SEARCH, "docs/artifacts.md", what, "times", "than all rows"))
    return findings


def _one_fedmf(rows: Rows) -> Finding:
    """The paper's storage and its speed of FedMF should be those of one device, but no reading has both."""
    off = {}
    for name in (FEDMF.name, DECRYPTED_ONCE):
        storage = rows[name]["storage_bytes"] / rows[name]["storage_formula_bytes"]
        factors = storage, (rows[name]["ratio"] or TIMES[name]) / TIMES[name]
        off[name] = max(max(factor, 1 / factor) for factor in factors)
    nearest = min(off, key=lambda name: off[name])
    note = "; ".join(f"{name}: off by {factor:,.3g} times in one of the two" for name, factor in off.items())
    what = counted(1.0, off[nearest], note)
    return of_the_paper(ONE_FEDMF_CLAIM, TEXT, what, "times", holds=off[nearest] <= NEAR, mode=nearest)


def _ticks(rows: Rows) -> list[Finding]:
    findings, of_fcf = [], _costs(rows[FCF.name])
    for column, what_costs in enumerate(COLUMNS[:-1]):
        for title, ticks in TICKS.items():
            name = PACKED.name if title == LIGHTFR.name else title
            share = _costs(rows[name])[column] / of_fcf[column]
            note = f"the table has a {'tick' if ticks[column] else 'cross'}; {share:.3g} of what FCF costs"
            what = counted(TICK_SHARE if ticks[column] else 1.0, share, note)
            holds = (share < TICK_SHARE) == ticks[column]
            claim = f"Table 1: {what_costs} beside FCF's, where a tick means half of it at most"
            findings.append(of_the_paper(claim, "the paper's Table 1", what, "times", holds=holds, mode=name))
    return findings


def _costs(row: PaperCostRow) -> tuple[float, float, float]:
    """In the order of COLUMNS, of which privacy is not a cost."""
    return row["storage_bytes"], row["median_ns"] or 0.0, round_bytes(row)


def _growth(shape: Shape, fedmf: PaperCostRow) -> Finding:
    growth = fedmf["down_bytes"] / (shape.items * REAL_FACTORS * FLOAT_BYTES)
    note = f"{times_stated(growth, STATED_GROWTH, 'the text')}; the formula counts 128 bytes for 8, which is 16 times"
    holds = abs(growth - STATED_GROWTH) <= ROUNDING * STATED_GROWTH
    what = counted(STATED_GROWTH, growth, note)
    return of_the_paper(GROWTH_CLAIM, "the paper's text", what, "times", holds=holds, mode="FedMF")
