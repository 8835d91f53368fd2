"""The paper's Tables 4 and 6: every method, with its authors' constants and with tuned ones, by the same protocol."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import cast

from lightfr import __version__
from lightfr_harness.data import Candidates, Ratings, Split
from lightfr_harness.errors import CannotRunError
from lightfr_harness.journal import Journal
from lightfr_harness.paper.protocols import PROTOCOLS
from lightfr_harness.paper.runs import RunResult, Watch, final_run, tuning_run
from lightfr_harness.paper.sources import fingerprint
from lightfr_harness.paper.stated import STATED
from lightfr_harness.records import PaperAccuracyRecord, PaperRow, SeedFigures
from lightfr_harness.simulation.baselines.method import STEPS, Entry, Settings
from lightfr_harness.simulation.baselines.registry import METHODS

AUTHORS, TUNED, ONLY = "authors", "tuned", "only"
CHOICES = {AUTHORS: (AUTHORS,), TUNED: (TUNED,), "both": (AUTHORS, TUNED)}
SEEDS = 3
QUICK_STEPS, QUICK_GRID = 10, 2
# Called with what is being done, and how many runs are done, parts of runs included.
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class AccuracyOptions:
    """What to measure. No methods means all of them; `quick` has few steps and tries two settings."""

    methods: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("last-out-49",)
    settings: str = "both"
    seeds: int = SEEDS
    quick: bool = False

    def __post_init__(self) -> None:
        for what, given, known in (
            ("method", self.methods, METHODS),
            ("protocol", self.protocols, PROTOCOLS),
            ("settings", (self.settings,), CHOICES),
        ):
            for name in given:
                if name not in known:
                    raise CannotRunError(f"unknown {what} '{name}', choose from: {', '.join(known)}")
        if self.seeds < 1:
            raise CannotRunError(f"seeds is {self.seeds}; at least 1 is needed")

    @property
    def entries(self) -> list[Entry]:
        """In the order of the registry, whatever the order they were asked for in."""
        return [entry for name, entry in METHODS.items() if name in self.methods or not self.methods]

    def grid(self, entry: Entry) -> tuple[Settings, ...]:
        return entry.grid[:QUICK_GRID] if self.quick else entry.grid

    def steps(self, entry: Entry, settings: str) -> int:
        """How many steps an authors' run takes, and how many a tuned one may take."""
        own = entry.authors_steps
        steps = own if own is not None and (settings != TUNED or own == 0) else STEPS
        return min(steps, QUICK_STEPS) if self.quick else steps

    def choices(self, entry: Entry) -> tuple[str, ...]:
        """Which settings the method is run with; where there is nothing to choose, only one."""
        return (ONLY,) if entry.authors_steps == 0 and not entry.authors else CHOICES[self.settings]

    @property
    def n_runs(self) -> int:
        runs = 0
        for entry in self.entries:
            for choice in self.choices(entry):
                runs += self.seeds + (len(self.grid(entry)) if choice == TUNED else 0)
        return runs * len(self.protocols)


def measure(
    ratings: Ratings, data: str, stated: str, options: AccuracyOptions, path: Path, progress: Progress
) -> PaperAccuracyRecord:
    """Run what `path` does not have yet. `stated` names the paper's data set that this is; empty: none of them."""
    table = _Table(ratings, stated, options, Journal(path), progress)
    rows = list(table.rows())
    progress("", options.n_runs)
    return PaperAccuracyRecord(
        rows=rows,
        data=data,
        users=ratings.n_users,
        items=ratings.n_items,
        ratings=len(ratings),
        held_out=table.held_out,
        seeds=options.seeds,
        quick=options.quick,
        machine=platform.machine(),
        lightfr=__version__,
        dataset=stated if stated in STATED else "",
    )


class _Table:
    """The rows, one after the other. Every run has a key, by which the journal knows it."""

    def __init__(
        self, ratings: Ratings, stated: str, options: AccuracyOptions, journal: Journal, progress: Progress
    ) -> None:
        self._ratings, self._options, self._journal, self._progress = ratings, options, journal, progress
        self._stated = STATED.get(stated, {})
        self._data = fingerprint(ratings)
        self._finished = 0
        self.held_out: dict[str, str] = {}

    def rows(self) -> Iterator[PaperRow]:
        for protocol in self._options.protocols:
            split = PROTOCOLS[protocol](self._ratings)
            choosing = PROTOCOLS[protocol](self._ratings, validation_in_train=False)
            self.held_out[protocol] = split.held_out
            for entry in self._options.entries:
                for settings in self._options.choices(entry):
                    yield self._row(protocol, split, choosing, entry, settings)

    def _row(self, protocol: str, split: Split, choosing: Split, entry: Entry, settings: str) -> PaperRow:
        constants, steps, chosen, seconds = entry.authors, self._options.steps(entry, settings), None, None
        if settings == TUNED:
            constants, chosen, seconds = self._tune(protocol, choosing, entry)
            steps = chosen["steps"]
        finals = []
        if chosen is None or not chosen["outcome"]:
            finals = self._finals(protocol, split, entry, settings, constants, steps)
        else:
            self._finished += self._options.seeds
        good = [each for _, each in finals if not each["outcome"]]
        failed = [each["outcome"] for each in [chosen, *(each for _, each in finals)] if each and each["outcome"]]
        hr, ndcg = self._stated.get(entry.name, (None, None))
        whole = good if not failed else []
        return {
            "protocol": protocol,
            "method": entry.name,
            "title": entry.title,
            "family": entry.family,
            "settings": settings,
            "constants": dict(constants),
            "steps": steps,
            "hr": _mean([each["hr"] for each in whole]),
            "ndcg": _mean([each["ndcg"] for each in whole]),
            "by_seed": [_seed_figures(seed, each) for seed, each in finals if not each["outcome"]],
            "validation_ndcg": chosen["ndcg"] if chosen else None,
            "cpu_seconds": _mean([each["cpu_seconds"] for each in good]),
            "tuning_cpu_seconds": seconds,
            "down_bytes": _mean([each["down_bytes"] for each in good]),
            "up_bytes": _mean([each["up_bytes"] for each in good]),
            "stated_hr": hr,
            "stated_ndcg": ndcg,
            "outcome": failed[0] if failed else "",
            "note": entry.note,
        }

    def _tune(self, protocol: str, split: Split, entry: Entry) -> tuple[Settings, RunResult, float]:
        """The constants with the best NDCG on validation, what they gave there, and the CPU seconds of all."""
        most, validation = self._options.steps(entry, TUNED), cast("Candidates", split.validation)
        tried = []
        for constants in self._options.grid(entry):
            key = [self._data, protocol, entry.name, "validation", dict(constants), most]
            run = partial(tuning_run, entry, constants, most, split.train, validation)
            tried.append((constants, self._run(f"{entry.title}, tuning, {protocol}", key, run)))
        best = max(tried, key=lambda each: -1.0 if each[1]["ndcg"] is None else each[1]["ndcg"])
        return *best, sum(each["cpu_seconds"] for _, each in tried)

    def _finals(
        self, protocol: str, split: Split, entry: Entry, settings: str, constants: Settings, steps: int
    ) -> list[tuple[int, RunResult]]:
        finals = []
        for seed in range(self._options.seeds):
            key = [self._data, protocol, entry.name, "test", dict(constants), steps, seed]
            run = partial(final_run, entry, constants, steps, seed, split.train, split.test)
            finals.append((seed, self._run(f"{entry.title}, {settings}, {protocol}, seed {seed}", key, run)))
        return finals

    def _run(self, label: str, key: list[object], run: Callable[[Watch], RunResult]) -> RunResult:
        self._progress(label, self._finished)
        result = self._journal.result(
            json.dumps(key, sort_keys=True), lambda: run(lambda share: self._progress(label, self._finished + share))
        )
        self._finished += 1
        self._progress(label, self._finished)
        return cast("RunResult", result)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if known else None


def _seed_figures(seed: int, result: RunResult) -> SeedFigures:
    return {
        "seed": seed,
        "hr": result["hr"] or 0.0,
        "ndcg": result["ndcg"] or 0.0,
        "cpu_seconds": result["cpu_seconds"],
    }
