"""The rounds that a coordinator knows: who gets a place in which, when they close, and when to come back.

Nothing here waits, writes or looks at a clock of its own: times are seconds of a SteadyClock, passed in.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from itertools import groupby

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2
from lightfr_harness.server.coordinator.phases import PHASES
from lightfr_harness.server.coordinator.plan import LONGEST_MS, Plan
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.rounds import ABANDONED, AGGREGATING, OPEN, REMEMBERED_ROUNDS, Round

# For answers that will not change soon: training is over, or the device cannot or may not take part.
LONG_WINDOW_MS = (3_600_000, 4 * 3_600_000)


class Pace:
    """Estimates when a device that found no place should come back.

    The next round opens about when the current one has lasted as long as recent rounds did, adding up included;
    that is the window's beginning. Its width is a round's length times the crowd over the places of all cohorts,
    the crowd being the devices that asked during this round or the last, whichever is more. So as many devices
    return in a round's time as it has places. Never narrower than a second, lest a small crowd come back at once.
    Before any round has ended, a tenth of the deadline is taken for its length: too short a guess costs a few
    check-ins, too long a one idle rounds. A round that has lasted longer than that may last as long again.
    """

    LEAST_WIDTH_SECONDS = 1.0

    def __init__(self) -> None:
        self._lengths: deque[float] = deque(maxlen=8)
        self._crowd: set[str] = set()
        self._last_crowd = 0

    def go_on(self, before: Pace) -> None:
        """Take over the crowd that was counted before."""
        self._crowd, self._last_crowd = before._crowd, before._last_crowd

    def asked(self, device: str) -> None:
        self._crowd.add(device)

    def ended(self, seconds: float) -> None:
        """A round has ended; the next one counts its own crowd."""
        self._lengths.append(max(seconds, 0.0))
        self._last_crowd, self._crowd = len(self._crowd), set()

    def window_ms(self, current: Round, now: float) -> tuple[int, int]:
        """(earliest, latest) from now."""
        known = self._lengths
        length = sum(known) / len(known) if known else current.deadline_seconds / 10
        length = max(length, min(now - current.started_at, longest_seconds(current)))
        earliest = min(max(current.started_at + length - now, 0.0), length)
        crowd = max(len(self._crowd), self._last_crowd)
        width = max(self.LEAST_WIDTH_SECONDS, length * max(1.0, crowd / (current.places * current.cohorts)))
        return _capped_ms(earliest), _capped_ms(earliest + width)


def longest_seconds(of: Round) -> float:
    """What its phases can take. By the clock it may be longer: the server was down in between, or its clock was set."""
    return len(PHASES) * of.deadline_seconds


def _capped_ms(seconds: float) -> int:
    return min(math.ceil(1000 * seconds), LONGEST_MS)


class RoundBook:
    """The current round and those whose receipts are remembered."""

    def __init__(self, plan: Plan, ended: Iterable[Round], current: Round | None, others: Iterable[Round] = ()) -> None:
        self.plan = plan
        self.pace = Pace()
        # The newest cohort of the round, which takes check-ins; the others are those before it.
        self.current = current
        self.others = list(others)
        self._ended = deque(maxlen=REMEMBERED_ROUNDS)  # type: deque[list[Round]]
        for _, cohorts in groupby(ended, lambda past: past.number):
            self._remember(list(cohorts))

    @property
    def cohorts(self) -> list[Round]:
        """All of the round that is open, oldest first."""
        return self.others if self.current is None else [*self.others, self.current]

    def known(self) -> dict[bytes, Round]:
        """Everything that is remembered, by its id."""
        return {one.round_id: one for one in (*(one for past in self._ended for one in past), *self.cohorts)}

    def find(self, round_id: bytes) -> Round:
        for known in (*reversed(self.cohorts), *(one for past in reversed(self._ended) for one in past)):
            if known.round_id == round_id:
                return known
        raise Refusal(error_pb2.ERROR_REASON_ROUND_UNKNOWN, "this server knows no such round")

    def check_in(
        self, device: str, now: float, turned_away: Callable[[Round], int | None] = lambda _: None
    ) -> tuple[Round, bool] | int:
        """A place, and whether it is a new one; or a RetryReason, which `turned_away` may give instead of a place."""
        current = self.current
        if current is None:
            return pb.RETRY_REASON_TRAINING_FINISHED
        self.pace.asked(device)
        for cohort in self.cohorts:
            if device in cohort.receipts and cohort.state != ABANDONED:
                return pb.RETRY_REASON_ALREADY_UPLOADED
            if device in cohort.assigned and cohort.awaits(device, now):
                return cohort, False
        has_had_one = any(device in cohort.assigned for cohort in self.cohorts if cohort.state != ABANDONED)
        reason = turned_away(current)
        if reason is not None:
            return reason
        if has_had_one or not current.takes_check_ins(now):
            is_later = current.cohort is not None and current.state == OPEN
            return pb.RETRY_REASON_ROUND_FULL if is_later else pb.RETRY_REASON_AGGREGATING
        return (current, True) if current.assign(device, now) else pb.RETRY_REASON_ROUND_FULL

    def may_open(self, now: float) -> bool:
        """Whether another cohort may begin: this one takes no more devices, and the round waits for more cohorts."""
        current = self.current
        if current is None or (current.takes_check_ins(now) and not current.is_full):
            return False
        alive = sum(cohort.state != ABANDONED for cohort in self.cohorts)
        return alive < current.cohorts and now < self.deadline

    @property
    def deadline(self) -> float:
        """When the round begins no more cohorts: one that began at once has had all its phases."""
        first = self.cohorts[0]
        return first.started_at + longest_seconds(first) if first.deadline else math.inf

    def is_due(self, now: float) -> bool:
        """Whether the cohorts of the round are to be combined, or none is left."""
        if self.current is None:
            return False
        summed = sum(cohort.is_summed for cohort in self.cohorts)
        if any(cohort.is_running for cohort in self.cohorts):
            return False
        return summed >= self.current.cohorts or (summed > 0 and now >= self.deadline)

    def retry_window(self, reason: int, now: float) -> pb.RetryWindow:
        if self.current is None or reason in (pb.RETRY_REASON_NOT_CAPABLE, pb.RETRY_REASON_FAULTY):
            earliest, latest = LONG_WINDOW_MS
        else:
            earliest, latest = self.pace.window_ms(self.current, now)
        return pb.RetryWindow(earliest_ms=earliest, latest_ms=latest, reason=reason)  # type: ignore[arg-type]

    def closes_as(self, now: float) -> int | None:
        """AGGREGATING or ABANDONED when the current round's time has come, else None. Phases end by themselves."""
        current = self.current
        if current is None or current.takes_uploads(now):
            return None
        if current.cohort is not None:
            return AGGREGATING if current.state == AGGREGATING else None
        enough = len(current.receipts) >= min(self.plan.minimum, current.goal)
        return AGGREGATING if current.state == AGGREGATING or enough else ABANDONED

    def replace_current(self, following: Round | None) -> None:
        """The cohorts of the round, whose states and ends are set, join the ended ones."""
        if self.current is not None:
            self._remember(self.cohorts)
        self.current, self.others = following, []

    def _remember(self, past: list[Round]) -> None:
        self._ended.append(past)
        first, last = past[0], max((one.ended_at or 0.0 for one in past), default=0.0)
        if last:
            self.pace.ended(min(last - first.started_at, longest_seconds(first)))
