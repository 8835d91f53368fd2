"""Claims of the paper's Figures 4 to 6: how accuracy follows the code length, lambda and the share of devices.

The figures are not at hand, so the claims are what the text says of them. Accuracy is HR@10, averaged over seeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean

from lightfr_harness.audits.finding import Finding, counted, of_the_paper
from lightfr_harness.records import PaperSweep

BITS, LAMBDA, SHARE = "code bits f", "lambda", "cohort share p"
FIGURES = {BITS: "Figure 4", LAMBDA: "Figure 5", SHARE: "Figure 6"}
CLAIMS = {
    BITS: "Accuracy rises with the code length from 8 to 64 bits, and flattens.",
    LAMBDA: "Accuracy rises with lambda from 0.2 on and then falls slightly until 1; the effect is small.",
    SHARE: "Accuracy rises with the share of devices in a round, and is flat beyond 0.8 (Filmtrust: 0.6).",
}
# What counts as a small effect, and as flat, in HR@10.
SMALL, FLAT = 0.05, 0.01
LEAST_LAMBDA, MOST_LAMBDA = 0.2, 1.0
Line = Mapping[float, float]


def audit(sweep: PaperSweep) -> list[Finding]:
    """Each claim for each line of its panel: the paper's objective as printed, and ours where it has such a panel."""
    findings = []
    for panel, judge in ((BITS, _bits), (LAMBDA, _lambda), (SHARE, _share)):
        for line in dict.fromkeys(point["line"] for point in sweep["points"] if point["panel"] == panel):
            findings += judge(_line(sweep, panel, line), f"{sweep['data']}, objective {line}")
    return findings


def _line(sweep: PaperSweep, panel: str, line: str) -> Line:
    chosen = [point for point in sweep["points"] if (point["panel"], point["line"]) == (panel, line)]
    places = sorted({float(point["x"]) for point in chosen})
    return {x: mean(point["hr"] for point in chosen if float(point["x"]) == x) for x in places}


def _claim(panel: str, claim: str, predicted: float, measured: float, mode: str, *, holds: bool, note: str) -> Finding:
    name = f"{FIGURES[panel]}: {claim}"
    what = counted(predicted, measured, note)
    return of_the_paper(name, "the paper's text", what, "accuracy", holds=holds, mode=mode)


def _bits(hr: Line, mode: str) -> list[Finding]:
    """`hr` has the paper's four lengths."""
    least, second, *_, last_but_one, most = hr
    gain, first, last = hr[most] - hr[least], hr[second] - hr[least], hr[most] - hr[last_but_one]
    rises, flattens = f"HR@10 gained from {least:g} to {most:g} bits", "HR@10 gained by the last doubling"
    return [
        _claim(BITS, rises, 0.0, gain, mode, holds=gain > 0, note="stated: more than 0"),
        _claim(BITS, flattens, first, last, mode, holds=last < first, note="stated: less than by the first"),
    ]


def _lambda(hr: Line, mode: str) -> list[Finding]:
    stated = {value: figure for value, figure in hr.items() if LEAST_LAMBDA <= value <= MOST_LAMBDA}
    spread = max(stated.values()) - min(stated.values())
    inner = max(figure for value, figure in stated.items() if LEAST_LAMBDA < value < MOST_LAMBDA)
    hump = inner - max(stated[LEAST_LAMBDA], stated[MOST_LAMBDA])
    without = f"without the term HR@10 is {hr[0.0]:.4f}" if 0.0 in hr else ""
    note = f"between {min(stated.values()):.4f} and {max(stated.values()):.4f}; {without}"
    return [
        _claim(LAMBDA, "largest difference in HR@10", SMALL, spread, mode, holds=spread <= SMALL, note=note),
        _claim(LAMBDA, "HR@10 between, above both ends", 0.0, hump, mode, holds=hump > 0, note="stated: more than 0"),
    ]


def _share(hr: Line, mode: str) -> list[Finding]:
    *_, last_but_one, most = hr
    gain, end = hr[most] - hr[min(hr)], hr[most] - hr[last_but_one]
    rises, flat = f"HR@10 gained from {min(hr):g} to {most:g}", f"HR@10 gained beyond {last_but_one:g}"
    return [
        _claim(SHARE, rises, 0.0, gain, mode, holds=gain > 0, note="stated: more than 0"),
        _claim(SHARE, flat, 0.0, end, mode, holds=abs(end) <= FLAT, note=f"flat means a change of {FLAT} at most"),
    ]
