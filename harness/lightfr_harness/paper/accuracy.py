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
from lightfr_harness.data import Candidates, Ratings
from lightfr_harness.errors import CannotRunError
from lightfr_harness.journal import Journal
from lightfr_harness.paper.protocols import HOLD_OUTS, PROTOCOLS, Parts
from lightfr_harness.paper.runs import VALIDATION, RunResult, Watch, final_run, tuning_run
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
    def hold_outs(self) -> list[str]:
        """What the protocols hold out, each once: protocols that hold out the same ratings share their runs."""
        return list(dict.fromkeys(PROTOCOLS[name] for name in self.protocols))

    @property
    def n_runs(self) -> int:
        runs = 0
        for entry in self.entries:
            for choice in self.choices(entry):
                runs += self.seeds + (len(self.grid(entry)) if choice == TUNED else 0)
        return runs * len(self.hold_outs)


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


@dataclass(frozen=True)
class _Runs:
    """All that was run for one method with one choice of constants; it serves every protocol of its hold-out."""

    constants: Settings
    steps: int
    chosen: RunResult | None
    tuning_cpu_seconds: float | None
    finals: list[RunResult]


class _Table:
    """The rows, one after the other. Every run has a key, by which the journal knows it."""

    def __init__(
        self, ratings: Ratings, stated: str, options: AccuracyOptions, journal: Journal, progress: Progress
    ) -> None:
        self._ratings, self._options, self._journal, self._progress = ratings, options, journal, progress
        self._stated = STATED.get(stated, {})
        self._data = ratings.fingerprint()
        self._finished = 0
        self.held_out: dict[str, str] = {}

    def rows(self) -> Iterator[PaperRow]:
        """By protocol, as they were asked for; each run is done when the first protocol needs it."""
        parts = {name: HOLD_OUTS[name].parts(self._ratings) for name in self._options.hold_outs}
        runs: dict[tuple[str, str, str], _Runs] = {}
        for protocol in self._options.protocols:
            held = PROTOCOLS[protocol]
            self.held_out[protocol] = parts[held].final.held_out
            for entry in self._options.entries:
                for settings in self._options.choices(entry):
                    key = (held, entry.name, settings)
                    if key not in runs:
                        runs[key] = self._runs(held, parts[held], entry, settings)
                    yield self._row(protocol, entry, settings, runs[key])

    def _runs(self, held: str, parts: Parts, entry: Entry, settings: str) -> _Runs:
        """Choose the constants, if they are to be tuned, and train with every seed."""
        constants, steps, chosen, seconds = entry.authors, self._options.steps(entry, settings), None, None
        if settings == TUNED:
            constants, chosen, seconds = self._tune(held, parts, entry)
            steps = chosen["steps"]
        finals = []
        if chosen is None or not chosen["outcome"]:
            finals = self._finals(held, parts, entry, settings, constants, steps)
        else:
            self._finished += self._options.seeds
        return _Runs(constants, steps, chosen, seconds, finals)

    def _row(self, protocol: str, entry: Entry, settings: str, runs: _Runs) -> PaperRow:
        good = [each for each in runs.finals if not each["outcome"]]
        failed = [each["outcome"] for each in [runs.chosen, *runs.finals] if each and each["outcome"]]
        hr, ndcg = self._stated.get(entry.name, (None, None))
        whole = [each["figures"][protocol] for each in good] if not failed else []
        return {
            "protocol": protocol,
            "method": entry.name,
            "title": entry.title,
            "family": entry.family,
            "settings": settings,
            "constants": dict(runs.constants),
            "steps": runs.steps,
            "hr": _mean([each["hr"] for each in whole]),
            "ndcg": _mean([each["ndcg"] for each in whole]),
            "by_seed": _by_seed(protocol, runs.finals),
            "validation_ndcg": _on_validation(runs.chosen) if runs.chosen else None,
            "cpu_seconds": _mean([each["cpu_seconds"] for each in good]),
            "tuning_cpu_seconds": runs.tuning_cpu_seconds,
            "down_bytes": _mean([each["down_bytes"] for each in good]),
            "up_bytes": _mean([each["up_bytes"] for each in good]),
            "stated_hr": hr,
            "stated_ndcg": ndcg,
            "outcome": failed[0] if failed else "",
            "note": entry.note,
        }

    def _tune(self, held: str, parts: Parts, entry: Entry) -> tuple[Settings, RunResult, float]:
        """The constants with the best NDCG on validation, what they gave there, and the CPU seconds of all."""
        most, validation = self._options.steps(entry, TUNED), cast("Candidates", parts.choosing.validation)
        tried = []
        for constants in self._options.grid(entry):
            key = [self._data, held, entry.name, VALIDATION, dict(constants), most]
            run = partial(tuning_run, entry, constants, most, parts.choosing.train, validation)
            tried.append((constants, self._run(f"{entry.title}, tuning, {held}", key, run)))
        best = max(tried, key=lambda each: _on_validation(each[1]) or -1.0)
        return *best, sum(each["cpu_seconds"] for _, each in tried)

    def _finals(
        self, held: str, parts: Parts, entry: Entry, settings: str, constants: Settings, steps: int
    ) -> list[RunResult]:
        """One for each seed, in their order."""
        finals = []
        for seed in range(self._options.seeds):
            key = [self._data, held, entry.name, "test", dict(constants), steps, seed]
            run = partial(final_run, entry, constants, steps, seed, parts.final.train, parts.tests)
            finals.append(self._run(f"{entry.title}, {settings}, {held}, seed {seed}", key, run))
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


def _on_validation(result: RunResult) -> float | None:
    return result["figures"][VALIDATION]["ndcg"] if result["figures"] else None


def _by_seed(protocol: str, finals: list[RunResult]) -> list[SeedFigures]:
    return [
        {"seed": seed, **each["figures"][protocol], "cpu_seconds": each["cpu_seconds"]}
        for seed, each in enumerate(finals)
        if not each["outcome"]
    ]
