"""One run of one method: fitted and judged, or refused where its scores are no numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypedDict

import numpy as np

from lightfr.errors import InvalidInputError
from lightfr_harness.data import Candidates, Ratings
from lightfr_harness.data.evaluation import Metrics, evaluate_candidates
from lightfr_harness.simulation.baselines.method import Entry, Method, Settings

STEPS_BETWEEN_LOOKS = 3
LOOKS_WITHOUT_GAIN = 5
DIVERGED = "diverged"
VALIDATION = "validation"
# Called with the share of the run that is done.
Watch = Callable[[float], None]


class DivergedError(InvalidInputError):
    """The scores of a method are not finite, so that ranks would mean nothing."""


class Accuracy(TypedDict):
    """Expectations under random tie-breaking."""

    hr: float
    ndcg: float


class RunResult(TypedDict):
    """What one run gave, by protocol; of a tuning run on VALIDATION. `outcome` is empty, or says what failed."""

    figures: dict[str, Accuracy]
    steps: int
    cpu_seconds: float
    down_bytes: float | None
    up_bytes: float | None
    outcome: str


def judge(method: Method, candidates: Candidates) -> Metrics:
    """Accuracy of a method as it is now. NaN is never above anything, so with it every positive would rank first."""
    scores = method.scores(candidates.users_of_rows(), candidates.item_index)
    if not np.isfinite(scores).all():
        raise DivergedError("A score is NaN or infinite. Take a smaller learning rate, or more regularization.")
    return evaluate_candidates(candidates, scores)


def final_run(
    entry: Entry,
    settings: Settings,
    steps: int,
    seed: int,
    train: Ratings,
    tests: Mapping[str, Candidates],
    watch: Watch,
) -> RunResult:
    """So many steps, and each test once, at the end."""
    method, started = entry.make(settings), time.process_time()

    def after(done: int) -> bool:
        watch(done / max(1, steps))
        return False

    def run() -> dict[str, Metrics]:
        method.fit(train, seed, steps, after)
        return {name: judge(method, test) for name, test in tests.items()}

    found, outcome = _attempt(run)
    return _result(method, found, steps, time.process_time() - started, outcome)


def tuning_run(
    entry: Entry, settings: Settings, most_steps: int, train: Ratings, validation: Candidates, watch: Watch
) -> RunResult:
    """At most so many steps, judged every few; the result is the look with the best NDCG, and how many steps it took.

    It ends after five looks without gain. A method that diverges keeps its best look of before, if there is one.
    """
    method, started = entry.make(settings), time.process_time()
    looks: list[tuple[int, Metrics]] = []

    def best() -> tuple[int, Metrics]:
        return max(looks, key=lambda look: look[1].ndcg)

    def after(done: int) -> bool:
        watch(done / most_steps)
        if done % STEPS_BETWEEN_LOOKS and done < most_steps:
            return False
        looks.append((done, judge(method, validation)))
        return done - best()[0] >= LOOKS_WITHOUT_GAIN * STEPS_BETWEEN_LOOKS

    def run() -> dict[str, Metrics]:
        method.fit(train, 0, most_steps, after)
        if not looks:
            looks.append((0, judge(method, validation)))
        return {}

    _, outcome = _attempt(run)
    seconds = time.process_time() - started
    if not looks:
        return _result(method, {}, 0, seconds, outcome)
    steps, metrics = best()
    return _result(method, {VALIDATION: metrics}, steps, seconds, "")


def _attempt(run: Callable[[], dict[str, Metrics]]) -> tuple[dict[str, Metrics], str]:
    """The figures, or one word or sentence on why there are none."""
    try:
        # Overflow shows in the scores, which are looked at.
        with np.errstate(all="ignore"):
            return run(), ""
    except (DivergedError, np.linalg.LinAlgError, FloatingPointError):
        return {}, DIVERGED
    except InvalidInputError as error:
        return {}, str(error)


def _result(method: Method, found: dict[str, Metrics], steps: int, seconds: float, outcome: str) -> RunResult:
    devices = sum(each.devices for each in method.rounds)
    return {
        "figures": {name: {"hr": metrics.hr, "ndcg": metrics.ndcg} for name, metrics in found.items()},
        "steps": steps,
        "cpu_seconds": seconds,
        "down_bytes": sum(each.down_bytes for each in method.rounds) / devices if devices else None,
        "up_bytes": sum(each.up_bytes for each in method.rounds) / devices if devices else None,
        "outcome": outcome,
    }
