"""Every table and figure of the paper in one folder: costs, figures, accuracy of each data set, and one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from lightfr_harness.audits.cost.run import FIGURE_1_ITEMS
from lightfr_harness.console import write_text
from lightfr_harness.paper import accuracy, costs, figures
from lightfr_harness.paper.accuracy import AUTHORS, SEEDS, AccuracyOptions
from lightfr_harness.paper.costs import CostsOptions
from lightfr_harness.paper.figures import FiguresOptions
from lightfr_harness.paper.sources import Source
from lightfr_harness.reports import paper_all
from lightfr_harness.reports.pages import save
from lightfr_harness.reports.paper_all import Parts

PAGE = "paper.html"
QUICK_ROUNDS, QUICK_ITEMS = 10, FIGURE_1_ITEMS[:-1]
# Called with what is being done, and the share of it that is done.
Progress = Callable[[str, float], None]


def measure(sources: Sequence[Source], folder: Path, progress: Progress, *, quick: bool = False) -> Path:
    """Measure what the folder does not have yet, write the page anew whenever a part is there, and return its path."""
    # A file that cannot be read is noticed before anything is measured.
    loaded = [source.load() for source in sources]
    parts, page = Parts(), folder / PAGE

    def take(more: Parts) -> Parts:
        write_text(page, paper_all.page(more))
        return more

    def steps(label: str, total: int) -> Progress:
        return lambda detail, done: progress(f"{label}: {detail}", done / total)

    take(parts)
    found_costs = costs.measure(CostsOptions(), folder / "costs.jsonl", steps("costs", len(costs.PARTS)))
    save(found_costs, None, folder)
    parts = take(replace(parts, costs=found_costs))
    drawing = FiguresOptions(sources, QUICK_ROUNDS, 1, QUICK_ITEMS) if quick else FiguresOptions(sources, seeds=SEEDS)
    found_figures = figures.measure(drawing, folder / "figures.jsonl", steps("figures", drawing.n_runs))
    save(found_figures, None, folder)
    parts = take(replace(parts, figures=found_figures))
    judging = AccuracyOptions(settings=AUTHORS, seeds=1, quick=True) if quick else AccuracyOptions()
    for place, (source, ratings) in enumerate(zip(sources, loaded, strict=True), start=1):
        own = folder / f"data-{place}"
        told = steps(f"accuracy on {source.name}", judging.n_runs)
        path = own / "accuracy.jsonl"
        record = accuracy.measure(ratings, source.name, source.stated, judging, path, told)
        save(record, None, own)
        parts = take(replace(parts, accuracy=[*parts.accuracy, record]))
    return page
