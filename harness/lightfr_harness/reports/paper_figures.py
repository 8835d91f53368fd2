"""The paper's Figures 1, 4, 5 and 6 as a page: our curves, and what the text says of its own."""

from __future__ import annotations

from lightfr_harness.audits.sensitivity import CLAIMS, FIGURES
from lightfr_harness.records import PaperFiguresRecord
from lightfr_harness.reports.cost import figure_1_panels
from lightfr_harness.reports.findings import claims, of_the_paper
from lightfr_harness.reports.page import Part, Section, Text, Verdict, document
from lightfr_harness.reports.training import sweep_panel

TITLE = "The paper's figures, drawn anew"
FIGURE_1_CLAIM = (
    "Codes take less storage, traffic and time than real values, from 1,000 to 10 million items of length 64."
)


def page(record: PaperFiguresRecord) -> str:
    """One self-contained HTML page of `paper figures`."""
    judged = [each for each in record.findings if each["verdict"] in ("confirmed", "refuted")]
    confirmed = sum(each["verdict"] == "confirmed" for each in judged)
    parts = [
        *of_the_paper(record.findings),
        Text(about(record)),
        Section("Figure 1", [Text(FIGURE_1_CLAIM, "The paper:"), *figure_1_panels(record.figure_1)]),
        *(
            Section(name, [Text(CLAIMS[panel], "The paper:"), *sweep_panels(record, panel)])
            for panel, name in FIGURES.items()
        ),
        Section("Claims", claims(record.findings)),
    ]
    return document(TITLE, Verdict(f"{confirmed} of {len(judged)} claims are confirmed."), parts)


def about(record: PaperFiguresRecord) -> str:
    seeds = f"{record.seeds} seed{'s' if record.seeds > 1 else ''}"
    return (
        f"Figures 4 to 6: {record.rounds} rounds, {seeds}; objective paper is as printed, catalogue is ours. The line "
        "across is the HR@10 of the popularity list. Figure 1: CPU time of one thread's top 10, in turns."
    )


def sweep_panels(record: PaperFiguresRecord, panel: str) -> list[Part]:
    """One figure for each data set."""
    return [
        Section(sweep["data"], sweep_panel([point for point in sweep["points"] if point["panel"] == panel]))
        for sweep in record.sweeps
    ]
