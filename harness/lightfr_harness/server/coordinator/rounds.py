"""Rounds as pure logic: who gets a place, whose upload is taken, when a round closes, when to come back.

Nothing here waits, writes or looks at a clock of its own: times are seconds of a SteadyClock, passed in.
"""

from __future__ import annotations

import math
import secrets
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby

from lightfr.cohorts import MAX_DEVICES, MIN_DEVICES
from lightfr.errors import InvalidInputError, OutOfRangeError
from lightfr.model.manifest import is_artifacts_address
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2
from lightfr_harness.server.coordinator.cohort import ADVERTISING, PHASES, REVEALING, UPLOADING, Cohort
from lightfr_harness.server.coordinator.refusals import Refusal

OPEN, AGGREGATING = pb.ROUND_STATE_OPEN, pb.ROUND_STATE_AGGREGATING
FINISHED, ABANDONED = pb.ROUND_STATE_FINISHED, pb.ROUND_STATE_ABANDONED
TRAINING, GATE_REFRESH = pb.ROUND_KIND_TRAINING, pb.ROUND_KIND_GATE_REFRESH
EVALUATION = pb.ROUND_KIND_EVALUATION
STATE_NAMES: dict[int, str] = {OPEN: "open", AGGREGATING: "aggregating", FINISHED: "finished", ABANDONED: "abandoned"}

# Receipts of this many ended rounds are kept, so that a device that was away for a while still gets its own.
REMEMBERED_ROUNDS = 16
# Of one round.
MOST_COHORTS = 1024
# The longest time that the protocol can state.
LONGEST_MS = 86_400_000
# For answers that will not change soon: training is over, or the device cannot or may not take part.
LONG_WINDOW_MS = (3_600_000, 4 * 3_600_000)


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


@dataclass(frozen=True)
class Receipt:
    """What a device gets for an upload, again and again."""

    upload_id: bytes
    request_sha256: bytes


@dataclass
class Round:
    """What a device calls a round: one cohort, from its first check-in to the model that comes of it.

    Cohorts with the same number answer the same version and end together, each with a sum of its own or without.
    """

    number: int
    round_id: bytes
    model_version: int
    manifest_sha256: bytes
    goal: int
    places: int
    deadline_seconds: float
    opened_at: float
    state: int = OPEN
    kind: int = TRAINING
    # Which cohort of those with the same number, from 0 on, and how many these shall be.
    index: int = 0
    cohorts: int = 1
    # When the first device got its place.
    first_place_at: float | None = None
    # Of the round, or with secure aggregation of its phase. None until the first device has a place: a round that
    # nobody asks for does not run out.
    deadline: float | None = None
    ended_at: float | None = None
    upload_bytes: int = 0
    next_model_version: int = 0
    # Places that are taken, as last heard: other processes may have given some.
    places_taken: int = 0
    # Whether the masks are off, and the sum is stored.
    is_summed: bool = False
    # With what the roster calls each device, if there is one.
    assigned: dict[str, bytes] = field(default_factory=dict)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    # Of a round of secure aggregation: phase to device to digest of what it delivered. It stays as receipts do.
    delivered: dict[int, dict[str, bytes]] = field(default_factory=lambda: {phase: {} for phase in PHASES})
    # While a round of secure aggregation lasts.
    cohort: Cohort | None = None

    @classmethod
    def new(cls, number: int, model_version: int, manifest_sha256: bytes, plan: Plan, now: float) -> Round:
        identity = secrets.token_bytes(16)
        return cls(number, identity, model_version, manifest_sha256, plan.goal, plan.places, plan.deadline_seconds, now)

    def another(self, now: float) -> Round:
        """The next cohort of the same round."""
        return Round(
            self.number, secrets.token_bytes(16), self.model_version, self.manifest_sha256, self.goal, self.places,
            self.deadline_seconds, now, kind=self.kind, index=self.index + 1, cohorts=self.cohorts,
        )  # fmt: skip

    def resume(self, now: float) -> None:
        """After a restart: times that lie too far ahead were told by a clock that has been set back since."""
        self.opened_at = min(self.opened_at, now)
        if self.first_place_at is not None:
            self.first_place_at = min(self.first_place_at, now)
        if self.deadline is not None:
            self.deadline = min(self.deadline, now + self.deadline_seconds)

    def is_late(self, now: float) -> bool:
        return self.deadline is not None and now >= self.deadline

    def takes_uploads(self, now: float) -> bool:
        if self.state != OPEN or self.is_late(now):
            return False
        return len(self.receipts) < self.goal if self.cohort is None else self.cohort.phase == UPLOADING

    def takes_check_ins(self, now: float) -> bool:
        if self.cohort is None:
            return self.takes_uploads(now)
        return self.state == OPEN and not self.is_late(now) and self.cohort.phase == ADVERTISING

    def awaits(self, device: str, now: float) -> bool:
        """Whether a device with a place can still do its part."""
        if self.cohort is None:
            return self.takes_uploads(now)
        return self.state == OPEN and not self.cohort.has_missed(device)

    def assign(self, device: str, now: float) -> bool:
        """Give a place; False when there is none left. The first one starts the time."""
        if self.is_full:
            return False
        self.assigned[device] = b"" if self.cohort is None else secrets.token_bytes(16)
        if self.deadline is None:
            self.first_place_at, self.deadline = now, now + self.deadline_seconds
        return True

    @property
    def is_full(self) -> bool:
        return max(len(self.assigned), self.places_taken) >= self.places

    @property
    def is_over(self) -> bool:
        return self.state in (FINISHED, ABANDONED)

    @property
    def is_running(self) -> bool:
        """Whether devices are in it that may still make a sum."""
        return not (self.is_over or self.is_summed) and (self.deadline is not None or self.state == AGGREGATING)

    @property
    def is_to_be_added_up(self) -> bool:
        """Whether all is revealed, and nobody has taken the masks off."""
        return self.cohort is not None and self.state == AGGREGATING and not self.is_summed

    @property
    def phase(self) -> int:
        """In the clear there is but one."""
        return UPLOADING if self.cohort is None else self.cohort.phase

    def receipt_for(self, device: str, request_sha256: bytes) -> Receipt | None:
        """The receipt if these bytes are in already; a refusal if others are. Holds in every state of the round."""
        receipt = self.receipts.get(device)
        if receipt is not None and receipt.request_sha256 != request_sha256:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_CONFLICT, "another upload of this device is in this round")
        return receipt

    def has_delivered(self, phase: int, device: str, request_sha256: bytes) -> bool:
        """Whether these bytes are in already; a refusal if others are. Holds in every state of the round."""
        known = self.delivered[phase].get(device, request_sha256)
        if known != request_sha256:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_CONFLICT, "this device delivered other bytes for this step")
        return device in self.delivered[phase]

    def require_place(self, device: str, manifest_sha256: bytes, now: float) -> None:
        """Refuse an upload that this round does not wait for."""
        if device not in self.assigned:
            raise Refusal(error_pb2.ERROR_REASON_NOT_ASSIGNED, "this device has no place in the round")
        if self.cohort is not None and self.state == OPEN:
            self.cohort.require_turn(UPLOADING, device)
        if not self.takes_uploads(now):
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "the round takes no more uploads")
        if manifest_sha256 != self.manifest_sha256:
            raise Refusal(error_pb2.ERROR_REASON_MODEL_MISMATCH, "the upload answers another model than the round's")

    def take(self, device: str, receipt: Receipt, size_bytes: int) -> None:
        self.receipts[device] = receipt
        self.upload_bytes += size_bytes

    def deadline_ms(self, now: float) -> int:
        """Until the round, or its phase, ends."""
        left = self.deadline_seconds if self.deadline is None else self.deadline - now
        return min(max(math.ceil(1000 * left), 1), LONGEST_MS)

    def upload_deadline_ms(self, now: float) -> int:
        """Until uploads are refused, if each phase before takes all the time that it has."""
        phases = 0 if self.cohort is None else max(UPLOADING - self.cohort.phase, 0)
        return min(self.deadline_ms(now) + math.ceil(1000 * phases * self.deadline_seconds), LONGEST_MS)

    def is_phase_due(self, now: float) -> bool:
        """Whether a phase of secure aggregation ends now."""
        return self.state == OPEN and self.cohort is not None and (self.cohort.is_complete() or self.is_late(now))

    def can_go_on(self, minimum: int) -> bool:
        """Whether enough devices are left at the end of a phase. What was revealed says for itself."""
        return self.cohort is not None and (self.cohort.phase == REVEALING or self.cohort.has_enough(minimum))

    @property
    def started_at(self) -> float:
        """When the first device got its place."""
        return self.opened_at if self.first_place_at is None else self.first_place_at


class Pace:
    """Estimates when a device that found no place should come back.

    The next round opens about when the current one has lasted as long as recent rounds did, adding up included;
    that is the window's beginning. Its width is a round's length times the crowd over the places of all cohorts,
    the crowd being the devices that asked during this round or the last, whichever is more. So as many devices
    return in a round's time as it has places. Never narrower than a second, lest a small crowd come back at once.
    Before any round has ended, a tenth of the deadline is taken for its length: too short a guess costs a few
    check-ins, too long a one idle rounds.
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
        earliest = min(max(current.started_at + length - now, 0.0), length)
        crowd = max(len(self._crowd), self._last_crowd)
        width = max(self.LEAST_WIDTH_SECONDS, length * max(1.0, crowd / (current.places * current.cohorts)))
        return _capped_ms(earliest), _capped_ms(earliest + width)


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
        return first.started_at + len(PHASES) * first.deadline_seconds if first.deadline else math.inf

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
            # No longer than its phases can take: the server may have been down in between, or its clock been set.
            longest = len(PHASES) * first.deadline_seconds
            self.pace.ended(min(last - first.started_at, longest))
