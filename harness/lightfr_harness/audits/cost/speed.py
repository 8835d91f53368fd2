"""Claims: inference from codes is about 7 times faster than FCF's, 30 times than FedMF's, 100 times than MetaMF's;
and (Figure 1) from 10^3 to 10^7 items at length 64, codes take less storage, traffic and time than real values.
"""

from __future__ import annotations

from typing import Any

from lightfr_harness.audits.finding import Finding, Measurement, counted, for_information, formula_only, of_the_paper

SEARCH = "search of open rows, times faster"
CLAIM, SOURCE = "inference, times faster", "the paper's text on Ciao"
STATED = {"than FCF, FedRec, PrivRec": 7.0, "than FedMF": 30.0, "than MetaMF": 100.0}
NOTE = "top 10 by our kernel against float64 inner products of 32 factors, CPU time, interleaved; medians"
FIGURE_1 = "the paper's Figure 1"
FIGURE_1_STORAGE, FIGURE_1_TRAFFIC, FIGURE_1_TIME = (
    f"Figure 1, {what}: real values / codes" for what in ("storage", "communication", "inference")
)
FIGURE_1_BITS, FIGURE_1_RATED = 64, 100


def inference(timing: dict[str, Any] | None) -> list[Finding]:
    """The first ratio is measured for the audited catalogue; those to other methods by `paper costs`."""
    real, *others = STATED
    findings = [
        formula_only(CLAIM, SOURCE, STATED[name], "times", name, "measured by lightfr-harness paper costs")
        for name in others
    ]
    if timing is None:
        return findings
    low, high = timing["ratio_interval"]
    what = Measurement(STATED[real], timing["ratio"], (low, high), f"{NOTE}; {timing['items']:,} items")
    return [of_the_paper(CLAIM, SOURCE, what, "times", holds=timing["ratio"] >= STATED[real], mode=real), *findings]


def search(timing: dict[str, Any] | None) -> list[Finding]:
    """A search reads a row for each open item and one for all the others: so many times fewer than the items."""
    if timing is None:
        return []
    low, high = timing["ratio_interval"]
    note = f"{timing['open_rows_ns'] / 1000:.1f} us beside {timing['every_item_ns'] / 1000:.1f} us, CPU time; medians"
    what = Measurement(timing["items"] / timing["rows"], timing["ratio"], (low, high), note)
    mode = f"{timing['rows']:,} rows of {timing['items']:,}"
    return [for_information(SEARCH, "docs/artifacts.md", what, "times", mode)]


def figure_1(timings: list[dict[str, Any]]) -> list[Finding]:
    """Three findings for each number of items that was timed, panel by panel."""
    panels: tuple[list[Finding], list[Finding], list[Finding]] = ([], [], [])
    for timing in timings:
        mode = f"{timing['items']:,} items"
        for panel, claim, key in (
            (panels[0], FIGURE_1_STORAGE, "storage_bytes"),
            (panels[1], FIGURE_1_TRAFFIC, "communication_bytes"),
        ):
            figures = timing[key]
            real, printed, packed = (
                figures[name] for name in ("real values", "codes, the paper's formula", "codes, packed")
            )
            note = "predicted: the formulas as printed; measured: codes packed"
            what = counted(real / printed, real / packed, note)
            panel.append(of_the_paper(claim, FIGURE_1, what, "times", holds=real > packed, mode=mode))
        low, high = timing["ratio_interval"]
        time = Measurement(1.0, timing["ratio"], (low, high), "the figure shows codes below real values throughout")
        panels[2].append(of_the_paper(FIGURE_1_TIME, FIGURE_1, time, "times", holds=timing["ratio"] > 1, mode=mode))
    return [finding for of_one_size in zip(*panels, strict=True) for finding in of_one_size]
