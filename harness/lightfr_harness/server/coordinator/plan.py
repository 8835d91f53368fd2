"""What every round asks for, and what kind of round comes next."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lightfr.cohorts import MAX_DEVICES, MIN_DEVICES
from lightfr.errors import InvalidInputError, OutOfRangeError
from lightfr.model.manifest import is_artifacts_address
from lightfr.v1 import coordinator_pb2 as pb

TRAINING, GATE_REFRESH = pb.ROUND_KIND_TRAINING, pb.ROUND_KIND_GATE_REFRESH
EVALUATION = pb.ROUND_KIND_EVALUATION

# Of one round.
MOST_COHORTS = 1024
# The longest time that the protocol can state.
LONGEST_MS = 86_400_000


@dataclass(frozen=True)
class Plan:
    """What every new round asks for. Changing it between two starts leaves a round that is open as it is."""

    goal: int = 64
    over_selection: float = 1.3
    minimum: int = 1
    deadline_seconds: float = 60.0
    # Training rounds that shall finish in all, those before a restart included. None: no end.
    rounds: int | None = None
    # Training rounds between two in which the cohort counts who rates what.
    gate_every: int = 50
    # How far the reported hit rate may fall below the best before the status page warns. None: it never does.
    tolerance: float | None = None
    # Where devices fetch the versions that the rounds make, for example a cache. Empty: from this coordinator.
    artifacts_address: str = ""
    # Training rounds between two in which the cohort evaluates how to rank. 0: it never does.
    evaluate_every: int = 10
    # Cohorts that a training round waits for, each a secure sum of its own.
    cohorts: int = 1

    def __post_init__(self) -> None:
        _within("goal", self.goal, 1, 1_000_000)
        _within("over-selection", self.over_selection, 1, 100)
        _within("minimum", self.minimum, 1, self.goal)
        _within("deadline", self.deadline_seconds, 0.001, LONGEST_MS / 1000)
        _within("rounds", 1 if self.rounds is None else self.rounds, 1, 1_000_000_000)
        _within("gate-every", self.gate_every, 1, 1_000_000_000)
        _within("evaluate-every", self.evaluate_every, 0, 1_000_000_000)
        _within("tolerance", self.tolerance or 0.0, 0, 1)
        _within("cohorts", self.cohorts, 1, MOST_COHORTS)
        if self.artifacts_address and not is_artifacts_address(self.artifacts_address):
            raise InvalidInputError(
                "--artifacts-address must be https://HOST:PORT, with a DNS name in lower case or an IPv4 address"
            )

    def require_cohort(self) -> None:
        """Raise OutOfRangeError unless secure aggregation can work with so many devices."""
        _within("places, the goal times over-selection,", self.places, MIN_DEVICES, MAX_DEVICES)
        _within("minimum", self.minimum, MIN_DEVICES, self.goal)

    @property
    def places(self) -> int:
        """More than the goal, since some devices vanish. Rounded first: 100 * 1.1 is a little above 110."""
        return math.ceil(round(self.goal * self.over_selection, 6))


def _within(name: str, value: float, minimum: float, maximum: float) -> None:
    if not minimum <= value <= maximum:
        raise OutOfRangeError(name, value, minimum, maximum)


@dataclass
class Schedule:
    """What kind of round comes next, by how many training rounds have finished: in all, and since the last others."""

    plan: Plan
    finished: int
    since_refresh: int
    since_evaluation: int

    def count(self, kind: int) -> None:
        """A round of this kind has finished."""
        if kind == GATE_REFRESH:
            self.since_refresh = 0
        elif kind == EVALUATION:
            self.since_evaluation = 0
        else:
            self.finished += 1
            self.since_refresh += 1
            self.since_evaluation += 1

    @property
    def _is_trained(self) -> bool:
        return self.plan.rounds is not None and self.finished >= self.plan.rounds

    def is_over(self, *, can_evaluate: bool) -> bool:
        """Whether no round follows: training is over, and what came of it is evaluated."""
        return self._is_trained and not self._is_evaluation_due(can_evaluate)

    def _is_evaluation_due(self, can_evaluate: bool) -> bool:
        wanted = 1 if self._is_trained else self.plan.evaluate_every
        return can_evaluate and self.plan.evaluate_every > 0 and self.since_evaluation >= wanted

    def next_kind(self, *, has_gate: bool, must_refresh: bool, can_evaluate: bool) -> int:
        """`has_gate`: devices count who rates what now and then; `must_refresh`: nothing can be done before they do."""
        is_refresh_due = must_refresh or (has_gate and self.since_refresh >= self.plan.gate_every)
        if is_refresh_due and not self._is_trained:
            return GATE_REFRESH
        return EVALUATION if self._is_evaluation_due(can_evaluate) else TRAINING
