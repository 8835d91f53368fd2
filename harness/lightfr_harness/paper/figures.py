"""The paper's Figures 1, 4, 5 and 6: codes against real values by the number of items, and what accuracy depends on."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from lightfr import __version__, _kernel
from lightfr_harness.audits import sensitivity
from lightfr_harness.audits.cost import speed
from lightfr_harness.audits.cost.run import FIGURE_1_ITEMS, figure_1_point
from lightfr_harness.errors import CannotRunError
from lightfr_harness.journal import Journal
from lightfr_harness.paper.sources import Source
from lightfr_harness.records import PaperFiguresRecord, PaperSweep
from lightfr_harness.simulation import sweep
from lightfr_harness.simulation.options import TrainOptions

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class FiguresOptions:
    """On which data Figures 4 to 6 are measured, with how many rounds and seeds; how large Figure 1 gets."""

    sources: Sequence[Source]
    rounds: int = 50
    seeds: int = 1
    items: Sequence[int] = field(default=FIGURE_1_ITEMS)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise CannotRunError(f"seeds is {self.seeds}; at least 1 is needed")

    def points(self, source: Source) -> list[sweep.Point]:
        """The runs of one data set. The ablation is Table 6, which `paper accuracy` measures."""
        base = TrainOptions(
            data=source.path,
            format=source.format,
            data_options=dict(source.data_options),
            synthetic=source.synthetic,
            rounds=self.rounds,
        )
        return [point for point in sweep.plan(base, self.seeds) if point.panel in sensitivity.FIGURES]

    @property
    def n_runs(self) -> int:
        return len(self.items) + sum(len(self.points(source)) for source in self.sources)


def measure(options: FiguresOptions, path: Path, progress: Progress) -> PaperFiguresRecord:
    """Run what `path` does not have yet."""
    # A file that cannot be read is noticed before anything is timed.
    data = [source.load().fingerprint() for source in options.sources]
    journal, finished = Journal(path), 0

    def run(label: str, key: list[object], work: Callable[[], object]) -> dict[str, Any]:
        nonlocal finished
        progress(label, finished)
        result: dict[str, Any] = journal.result(json.dumps(key), work)
        finished += 1
        return {name: value for name, value in result.items() if name != "key"}

    figure_1 = [
        run(
            f"Figure 1, {items:,} items",
            ["figure 1", items, options.seed],
            partial(figure_1_point, items, options.seed),
        )
        for items in options.items
    ]
    sweeps: list[PaperSweep] = []
    for source, known in zip(options.sources, data, strict=True):
        points = [
            run(point.key, [known, options.rounds, point.key], partial(sweep.named, point))
            for point in options.points(source)
        ]
        sweeps.append(
            {"data": source.path.name if source.path else source.name, "points": [point["point"] for point in points]}
        )
    progress("", finished)
    findings = [*speed.figure_1(figure_1), *(found for each in sweeps for found in sensitivity.audit(each))]
    return PaperFiguresRecord(
        figure_1=figure_1,
        sweeps=sweeps,
        findings=[finding.record() for finding in findings],
        rounds=options.rounds,
        seeds=options.seeds,
        isa=_kernel.isa_name(),
        machine=platform.machine(),
        lightfr=__version__,
    )
