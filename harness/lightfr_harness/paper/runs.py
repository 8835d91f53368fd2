"""One run of one method: fitted and judged, or refused where its scores are no numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypedDict

import numpy as np

from lightfr.errors import InvalidInputError
from lightfr_harness.data import Candidates, Ratings
from lightfr_harness.data.evaluation import Metrics, evaluate_candidates
from lightfr_harness.simulation.baselines.method import Entry, Method, Settings

STEPS_BETWEEN_LOOKS = 3
LOOKS_WITHOUT_GAIN = 5
DIVERGED = "diverged"
# Called with the share of the run that is done.
Watch = Callable[[float], None]


class DivergedError(InvalidInputError):
    """The scores of a method are not finite, so that ranks would mean nothing."""


class RunResult(TypedDict):
    """What one run gave. `outcome` is empty, or says why there are no figures."""

    hr: float | None
    ndcg: float | None
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
    entry: Entry, settings: Settings, steps: int, seed: int, train: Ratings, test: Candidates, watch: Watch
) -> RunResult:
    """So many steps, and the test once, at the end."""
    method, started = entry.make(settings), time.process_time()

    def after(done: int) -> bool:
        watch(done / max(1, steps))
        return False

    def run() -> Metrics:
        method.fit(train, seed, steps, after)
        return judge(method, test)

    metrics, outcome = _attempt(run)
    return _result(method, metrics, steps, time.process_time() - started, outcome)


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

    def run() -> Metrics:
        method.fit(train, 0, most_steps, after)
        if not looks:
            looks.append((0, judge(method, validation)))
        return best()[1]

    metrics, outcome = _attempt(run)
    steps, metrics = best() if looks else (0, metrics)
    return _result(method, metrics, steps, time.process_time() - started, "" if looks else outcome)


def _attempt(run: Callable[[], Metrics]) -> tuple[Metrics | None, str]:
    """The figures, or one word or sentence on why there are none."""
    try:
        # Overflow shows in the scores, which are looked at.
        with np.errstate(all="ignore"):
            return run(), ""
    except (DivergedError, np.linalg.LinAlgError, FloatingPointError):
        return None, DIVERGED
    except InvalidInputError as error:
        return None, str(error)


def _result(method: Method, metrics: Metrics | None, steps: int, seconds: float, outcome: str) -> RunResult:
    devices = sum(each.devices for each in method.rounds)
    return {
        "hr": metrics.hr if metrics else None,
        "ndcg": metrics.ndcg if metrics else None,
        "steps": steps,
        "cpu_seconds": seconds,
        "down_bytes": sum(each.down_bytes for each in method.rounds) / devices if devices else None,
        "up_bytes": sum(each.up_bytes for each in method.rounds) / devices if devices else None,
        "outcome": outcome,
    }
