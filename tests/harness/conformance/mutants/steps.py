"""Faults of secure aggregation in how phases follow one another, and in what is remembered of them."""

from __future__ import annotations

from lightfr_harness.server.coordinator import web
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.phases import ADVERTISING, REVEALING
from lightfr_harness.server.coordinator.rounds import ABANDONED, FINISHED, Round
from lightfr_harness.server.coordinator.secure_steps import SecureSteps
from tests.harness.conformance.mutants import around, mutant
from tests.harness.conformance.mutants.uploads import mismatch_first

SECAGG = "secagg"


@mutant("step-again", "GetStep goes on to say what a device has done already", "step.walk", SECAGG)
def step_again():
    @around(Cohort, "step_for")
    def _(original, self, device):
        delivered, self.delivered = self.delivered, {**self.delivered, self.phase: {}}
        try:
            return original(self, device)
        finally:
            self.delivered = delivered


@mutant("strangers-see-the-roster", "GetStep answers devices that have no place", "step.not-assigned", SECAGG)
def strangers_see_the_roster():
    @around(SecureSteps, "step")
    async def _(original, self, device, round_id, wait_seconds):
        assigned = self._find(round_id).assigned
        known = device if device in assigned else next(iter(assigned))
        return await original(self, known, round_id, wait_seconds)


@mutant("timeout-ignored", "a question is held longer than the device waits", "step.timeout", SECAGG)
def timeout_ignored():
    web._timeout_seconds = lambda request: 60.0


@mutant(
    "deliveries-forgotten",
    "what a device delivered is forgotten when the round ends",
    "step.same-bytes-after-the-end",
    SECAGG,
)
def deliveries_forgotten():
    @around(Round, "has_delivered")
    def _(original, self, phase, device, digest):
        return self.ended_at is None and original(self, phase, device, digest)


@mutant(
    "conflicts-forgotten",
    "other bytes than those delivered are only too late when the round has ended",
    "step.other-bytes-after-the-end",
    SECAGG,
)
def conflicts_forgotten():
    @around(Round, "has_delivered")
    def _(original, self, phase, device, digest):
        is_other = self.delivered[phase].get(device, digest) != digest
        return False if is_other and self.ended_at is not None else original(self, phase, device, digest)


@mutant("reveal-after-the-end", "shares are taken when the masks are off", "reveal.after-the-end", SECAGG)
def reveal_after_the_end():
    @around(SecureSteps, "deliver")
    async def _(original, self, phase, device, request, body):
        addressed = self._find(request.round_id)
        if phase != REVEALING or addressed.state != FINISHED or device not in addressed.assigned:
            await original(self, phase, device, request, body)


@mutant(
    "model-before-the-phase",
    "a masked vector that is too late is told that its model is another",
    "masked.late-for-another-model",
    SECAGG,
)
def model_before_the_phase():
    mismatch_first()


@mutant("too-few-keys-go-on", "a roster smaller than the minimum goes on", "abandon.too-few-keys", SECAGG)
def too_few_keys_go_on():
    @around(Cohort, "has_enough")
    def _(original, self, minimum):
        return original(self, 2 if self.phase == ADVERTISING else minimum)


@mutant(
    "quorum-not-awaited",
    "a phase goes on with the minimum, although the quorum is higher",
    "abandon.too-few-signatures",
    SECAGG,
)
def quorum_not_awaited():
    Cohort.has_enough = lambda self, minimum: len(self.delivered[self.phase]) >= minimum


@mutant(
    "same-version-again",
    "after a round that was abandoned while revealing the version keeps its number",
    "abandon.new-version",
    SECAGG,
)
def same_version_again():
    @around(Coordinator, "_end")
    async def _(original, self, state, version, *more, **named):
        await original(self, state, None if state == ABANDONED else version, *more, **named)


@mutant(
    "phases-last", "a phase lasts until its deadline, also when all have delivered", "step.ends-with-the-last", SECAGG
)
def phases_last():
    @around(Round, "is_phase_due")
    def _(original, self, now):
        return original(self, now) and self.is_late(now)


@mutant("one-deadline", "all phases share one deadline", "sums.one-missing-at-each-step", SECAGG)
def one_deadline():
    @around(Coordinator, "_end_phase")
    async def _(original, self, current):
        deadline = current.deadline
        seconds, current.deadline_seconds = current.deadline_seconds, deadline - self._clock()
        await original(self, current)
        current.deadline_seconds = seconds


@mutant(
    "absent-awaited",
    "every phase waits for all places, also for who missed one before",
    "step.ends-with-the-last-who-is-left",
    SECAGG,
)
def absent_awaited():
    @around(Cohort, "expected")
    def _(original, self, phase):
        return self._places
