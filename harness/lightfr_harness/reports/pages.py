"""One page for any record, and the files that --json and --report ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightfr_harness import records
from lightfr_harness.console import write_text
from lightfr_harness.records import Record
from lightfr_harness.reports import (
    bench,
    cost,
    demo,
    learns,
    paper,
    paper_costs,
    paper_figures,
    privacy,
    scale,
    training,
)

# Pages of audits are drawn from what JSON has.
PAGES: dict[type[Record], Callable[[Any], str]] = {
    records.TrainRecord: training.train_page,
    records.SweepRecord: training.sweep_page,
    records.AccuracyRecord: training.accuracy_page,
    records.TopkRecord: bench.topk_page,
    records.Figure1Record: bench.figure_1_page,
    records.FitRecord: bench.fit_page,
    records.OpenRowsRecord: bench.open_rows_page,
    records.RoundsRecord: bench.rounds_page,
    records.LoadRecord: bench.load_page,
    records.SecureLoadRecord: bench.secure_load_page,
    records.DeviceRecord: bench.device_page,
    records.DemoRecord: demo.page,
    records.CostRecord: lambda record: cost.page(records.to_dict(record)),
    records.PrivacyRecord: privacy.page,
    records.MethodsPrivacyRecord: learns.page,
    records.PaperAccuracyRecord: paper.accuracy_page,
    records.PaperCostsRecord: paper_costs.page,
    records.PaperFiguresRecord: paper_figures.page,
    records.ScaleRecord: scale.page,
    records.ScaleRealRecord: scale.real_page,
}


def page_of(record: Record) -> str:
    """One self-contained HTML page of a record."""
    return PAGES[type(record)](record)


def save(record: Record, json_file: str | None, report: Path | None) -> None:
    """Do what --json FILE and --report FOLDER ask for; the files in the folder are named after the kind of record."""
    # What was measured first: it can be drawn again.
    if json_file is not None:
        records.write(record, json_file)
    if report is not None:
        records.write(record, report / f"{record.kind}.json")
        write_text(report / f"{record.kind}.html", page_of(record))
