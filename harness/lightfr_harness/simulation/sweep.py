"""The paper's sensitivity plots (code length, lambda, cohort share) and ablation, as many runs in one record."""

from __future__ import annotations

import json
import platform
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lightfr import __version__, _kernel
from lightfr.errors import InvalidInputError
from lightfr_harness.data import Candidates
from lightfr_harness.journal import Journal
from lightfr_harness.records import SweepPoint, SweepRecord
from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.train import load_split, train

BITS = (8, 16, 32, 64)
# The paper's own values, and before them those that can work: as printed its balance term is f^2 times too strong.
LAMBDAS = (0.0, 0.0001, 0.001, 0.2, 0.4, 0.6, 0.8, 1.0)
FRACTIONS = (0.2, 0.4, 0.6, 0.8, 1.0)
ABLATION = ("random", "init", "para", "grad")


@dataclass(frozen=True)
class Point:
    """One run of a sweep: which panel and line it belongs to, and its place on the axis."""

    panel: str
    line: str
    x: str
    options: TrainOptions

    @property
    def key(self) -> str:
        return f"{self.panel}/{self.line}/{self.x}/seed {self.options.seed}"


def plan(base: TrainOptions, seeds: int) -> list[Point]:
    """Every run of the four panels; `base` says the data and the rounds."""
    points = [point for seed in range(seeds) for point in _of_seed(replace(base, seed=seed))]
    return sorted(points, key=lambda point: point.key)


def _of_seed(base: TrainOptions) -> Iterator[Point]:
    # As the paper has it: every rating is a positive, and none weighs more than another.
    ours = replace(base, positives="all", recency="off")
    ours = replace(ours, objective="catalogue", aggregate="", upload="", gate=None, max_rows=None)
    paper = replace(base, objective="paper", aggregate="", upload="", gate=None, max_rows=None)
    for line, options in (("catalogue", ours), ("paper", paper)):
        for bits in BITS:
            yield Point("code bits f", line, str(bits), replace(options, bits=bits))
        for fraction in FRACTIONS:
            yield Point("cohort share p", line, str(fraction), replace(options, fraction=fraction))
    for value in LAMBDAS:
        yield Point("lambda", "paper", str(value), replace(paper, regularization=value))
    for name in ABLATION:
        yield Point("ablation", "paper", name, replace(paper, aggregate=name))
    yield Point("ablation", "catalogue", "catalogue", ours)


def run_all(
    base: TrainOptions, seeds: int, points: list[Point], path: Path, step: Callable[[Point], None]
) -> SweepRecord:
    """Run what is not in `path` yet, and add each run to it as a line, so that a stopped sweep goes on where it was."""
    data, journal, done = _data_of(base), Journal(path), []
    for point in points:
        key = json.dumps([data, base.rounds, point.key])
        done.append(journal.result(key, partial(named, point))["point"])
        step(point)
    return SweepRecord(
        points=done,
        rounds=base.rounds,
        seeds=seeds,
        data=str(base.data) if base.data else f"synthetic {base.synthetic}",
        isa=_kernel.isa_name(),
        machine=platform.machine(),
        lightfr=__version__,
    )


def _data_of(base: TrainOptions) -> str:
    """Tells data sets apart, what is held out of them included."""
    split = load_split(base)
    held_out = split.test if isinstance(split.test, Candidates) else split.test.held_out
    return f"{split.train.fingerprint()}-{zlib.crc32(held_out.item_index.tobytes()):08x}"


def named(point: Point) -> dict[str, SweepPoint]:
    """A point has a key of its own, which is not the journal's."""
    return {"point": run(point)}


def run(point: Point) -> SweepPoint:
    """Train, and keep what is drawn."""
    record = train(point.options).record
    if record.hr is None:
        raise InvalidInputError("a sweep ranks candidates: use ratings that --split last-out can split")
    return {
        "key": point.key,
        "panel": point.panel,
        "line": point.line,
        "x": point.x,
        "seed": point.options.seed,
        "hr": record.hr,
        "ndcg": record.ndcg,
        "popularity": record.popularity,
    }
