"""A round as pure logic: who has a place, whose upload is taken, when it is due.

Nothing here waits, writes or looks at a clock of its own: times are seconds of a SteadyClock, passed in.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.phases import ADVERTISING, PHASES, REVEALING, UPLOADING
from lightfr_harness.server.coordinator.plan import LONGEST_MS, TRAINING, Plan
from lightfr_harness.server.coordinator.refusals import Refusal

OPEN, AGGREGATING = pb.ROUND_STATE_OPEN, pb.ROUND_STATE_AGGREGATING
FINISHED, ABANDONED = pb.ROUND_STATE_FINISHED, pb.ROUND_STATE_ABANDONED
STATE_NAMES: dict[int, str] = {OPEN: "open", AGGREGATING: "aggregating", FINISHED: "finished", ABANDONED: "abandoned"}

# Receipts of this many ended rounds are kept, so that a device that was away for a while still gets its own.
REMEMBERED_ROUNDS = 16


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
