"""Runs the cases, each for itself: what one finds does not stop the others."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lightfr.v1 import manifest_pb2
from lightfr_harness.conformance.client import Hanging, NoAnswer
from lightfr_harness.conformance.expectations import Unexpected
from lightfr_harness.conformance.registry import Case
from lightfr_harness.conformance.world import World
from lightfr_harness.errors import CannotRunError

# A case in which the server hangs takes as long as a request may. A run shall not take that for every case.
MOST_HANGING = 3


class Outcome(StrEnum):
    """What became of a case."""

    PASSED = "passed"
    FAILED = "failed"
    # It is on the known-failing list, and fails.
    KNOWN = "known"
    # It is on the list, and passes: the list is out of date.
    FIXED = "fixed"


@dataclass(frozen=True)
class Result:
    """A case and what became of it; expected and got are empty unless it failed."""

    case: Case
    outcome: Outcome
    seconds: float
    expected: str = ""
    got: str = ""
    traceback: str = ""
    is_hanging: bool = False

    @property
    def is_good(self) -> bool:
        return self.outcome in (Outcome.PASSED, Outcome.KNOWN)


def require_testable(world: World) -> None:
    """Raise CannotRunError unless the server answers, lets a device enrol, and is fresh."""
    try:
        signed = world.signed_manifest()
        version = 0 if signed is None else manifest_pb2.Manifest.FromString(signed.manifest).model_version
    except (NoAnswer, Hanging, Unexpected) as error:
        raise CannotRunError(
            f"a device could not enrol at {world.enrollment} and ask {world.server} for the manifest: {error}. "
            "Make a new kit, start the server with it and without any state, and name both of its addresses"
        ) from error
    if version != 1:
        raise CannotRunError(
            f"the server is at model version {version}, the suite follows it from version 1 on. "
            "Make a new kit, and start the server with it, without any state and without other devices"
        )


def run_all(cases: Sequence[Case], world: World, known_failing: set[str]) -> Iterator[Result]:
    """The results, one by one as they come. When the server hangs too often, what is left is not tried."""
    hung = 0
    for one in cases:
        is_known = one.id in known_failing
        result = run_one(one if hung < MOST_HANGING else replace(one, run=_not_tried), world, is_known=is_known)
        hung += result.is_hanging
        yield replace(result, case=one)


def _not_tried(world: World) -> None:
    raise Unexpected("a server that answers", f"it hung in {MOST_HANGING} cases before, so this one was not tried")


def run_one(case: Case, world: World, *, is_known: bool = False) -> Result:
    started = time.perf_counter()
    expected = got = trace = ""
    is_hanging = False
    try:
        case.run(world)
    except Unexpected as finding:
        expected, got, trace = finding.expected, finding.got, traceback.format_exc()
    except Exception as error:  # Whatever a server provokes is a finding about it.
        expected, got, trace = "an answer", f"{type(error).__name__}: {error}", traceback.format_exc()
        is_hanging = isinstance(error, Hanging)
    if trace:
        outcome = Outcome.KNOWN if is_known else Outcome.FAILED
    else:
        outcome = Outcome.FIXED if is_known else Outcome.PASSED
    return Result(case, outcome, time.perf_counter() - started, expected, got, trace, is_hanging)
