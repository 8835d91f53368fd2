"""The paper's sensitivity plots (code length, lambda, cohort share) and ablation, as many runs and one figure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.train import train

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
    ours = replace(base, objective="catalogue", aggregate="", upload="", gate=None, max_rows=None)
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


def run_all(points: list[Point], path: Path, step: Callable[[Point], None]) -> list[dict[str, Any]]:
    """Run what is not in `path` yet, one JSON record a line, so that a stopped sweep goes on where it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {record["key"]: record for record in _read(path)}
    for point in points:
        if point.key not in done:
            record = {"key": point.key, "panel": point.panel, "line": point.line, "x": point.x}
            done[point.key] = record | train(point.options).record
            with path.open("a") as file:
                file.write(json.dumps(done[point.key]) + "\n")
        step(point)
    return [done[point.key] for point in points]


def _read(path: Path) -> list[dict[str, Any]]:
    """Records of an earlier sweep; a last line that a kill cut short is dropped."""
    if not path.exists():
        return []
    whole = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    path.write_text("".join(whole))
    return [json.loads(line) for line in whole]


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Four panels, as the paper draws them; lines are HR@10 and NDCG@10, dotted is the popularity list."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(2, 2, figsize=(12, 8), layout="constrained")
    names = ("code bits f", "lambda", "cohort share p", "ablation")
    for panel, name in zip(panels.flat, names, strict=True):
        chosen = [record for record in records if record["panel"] == name]
        (_draw_bars if name == "ablation" else _draw_lines)(panel, chosen)
        for metric, colour in (("hr", "C0"), ("ndcg", "C1")):
            panel.axhline(records[0]["popularity"][metric], color=colour, ls=":", lw=1)
        panel.set(title=name, ylim=(0, 1))
        panel.grid(alpha=0.3)
        panel.legend(frameon=False, fontsize=8)
    figure.suptitle("HR@10 and NDCG@10 (expected under random tie-breaking); dotted: popularity list")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _means(records: list[dict[str, Any]], line: str | None, metric: str) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for record in records:
        if line is None or record["line"] == line:
            values.setdefault(record["x"], []).append(record[metric])
    return {x: sum(found) / len(found) for x, found in values.items()}


def _draw_lines(panel: Any, records: list[dict[str, Any]]) -> None:
    places = sorted({record["x"] for record in records}, key=float)
    for line, style in (("catalogue", "o-"), ("paper", "s--")):
        for metric, colour in (("hr", "C0"), ("ndcg", "C1")):
            means = _means(records, line, metric)
            if means:
                panel.plot(
                    places, [means[x] for x in places], style, color=colour, label=f"{line}, {metric.upper()}@10"
                )


def _draw_bars(panel: Any, records: list[dict[str, Any]]) -> None:
    for shift, (metric, colour) in enumerate((("hr", "C0"), ("ndcg", "C1"))):
        means = _means(records, None, metric)
        names = [name for name in (*ABLATION, "catalogue") if name in means]
        places = [place + 0.4 * shift for place in range(len(names))]
        panel.bar(places, [means[name] for name in names], width=0.38, color=colour, label=f"{metric.upper()}@10")
        panel.set_xticks([place + 0.2 for place in range(len(names))], names)
