"""Faults of rounds in the clear: places, and how a round ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import model_pb2, secure_pb2
from lightfr_harness.server.coordinator import book, secure_steps, service
from lightfr_harness.server.coordinator.book import RoundBook
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.rounds import ABANDONED, AGGREGATING, OPEN, Round
from lightfr_harness.server.coordinator.storage import Storage
from tests.harness.conformance.mutants import around, mutant


@mutant("place-for-each-check-in", "a device that checks in again takes a second place", "checkin.same-again")
def place_for_each_check_in():
    @around(RoundBook, "check_in")
    def _(original, self, device, *more):
        if device in self.current.assigned:
            self.current.places -= 1
        return original(self, device, *more)


@mutant("one-place-more", "a round gives out one place more than it has", "checkin.full")
def one_place_more():
    usual = Plan.places.fget
    Plan.places = property(lambda self: usual(self) + 1)


@mutant("places-looked-up-first", "devices that come at once all find the same place free", "checkin.race-for-places")
def places_looked_up_first():
    @around(Coordinator, "check_in")
    async def _(original, self, device):
        current = self.book.current
        has_room = current.takes_check_ins(self._clock()) and len(current.assigned) < current.places
        await asyncio.sleep(1)
        if has_room and self.book.current is current and device not in current.assigned:
            current.places = max(current.places, len(current.assigned) + 1)
        return await original(self, device)

    @around(Storage, "assign")
    def _(original, self, current, device):
        self._submit(lambda connection: connection.execute("UPDATE rounds SET places = ?", (current.places,)))
        return original(self, current, device)


@mutant("modes-ignored", "a device gets a place in a privacy mode that it did not agree to", "checkin.not-capable-mode")
def modes_ignored():
    @around(service.CoordinatorService, "check_in")
    async def _(original, self, device, body):
        request = pb.CheckInRequest.FromString(body)
        request.capabilities.privacy_modes[:] = [model_pb2.PRIVACY_MODE_CLEAR, model_pb2.PRIVACY_MODE_SECAGG]
        return await original(self, device, request.SerializeToString())


@mutant(
    "place-before-capabilities",
    "a device that has a place gets it again, whatever it is capable of by now",
    "checkin.not-capable-but-placed",
)
def place_before_capabilities():
    @around(service.CoordinatorService, "check_in")
    async def _(original, self, device, body):
        current, model = self._coordinator.book.current, self._coordinator.version.manifest.model
        if device in current.assigned and device not in current.receipts:
            able = pb.Capabilities(upload_kinds=[model.upload_kind], privacy_modes=[model.privacy_mode])
            # Fields of a message that comes in two pieces are those of both.
            body += pb.CheckInRequest(capabilities=able).SerializeToString()
        return await original(self, device, body)


@mutant("stale-round-accepted", "an upload for the last round is added to this one", "round.stale")
def stale_round_accepted():
    @around(Coordinator, "upload")
    async def _(original, self, device, request, body):
        addressed, current = self.book.find(request.round_id), self.book.current
        if addressed is not current and device not in addressed.receipts and device in current.assigned:
            request.round_id, request.manifest_sha256 = current.round_id, current.manifest_sha256
        return await original(self, device, request, body)


@mutant("beyond-the-goal", "a round takes uploads until all places have delivered", "round.race-to-the-goal")
def beyond_the_goal():
    @around(Round, "takes_uploads")
    def _(original, self, now):
        return self.state == OPEN and not self.is_late(now) and len(self.receipts) < self.places

    @around(Storage, "deliver")
    def _(original, self, addressed, *delivery):
        return original(self, replace(addressed, goal=addressed.places), *delivery)


@mutant("goal-ends-nothing", "a round with its goal reached lasts until its deadline", "round.goal")
def goal_ends_nothing():
    @around(RoundBook, "closes_as")
    def _(original, self, now):
        is_in_time = self.current.state == OPEN and not self.current.is_late(now)
        return None if is_in_time else original(self, now)


@mutant("below-the-minimum", "fewer uploads than the minimum make a version", "round.abandoned")
def below_the_minimum():
    @around(RoundBook, "closes_as")
    def _(original, self, now):
        ending = original(self, now)
        return AGGREGATING if ending == ABANDONED else ending


@mutant(
    "abandoned-used-later", "uploads of an abandoned round are counted in the next one", "round.abandoned-is-not-used"
)
def abandoned_used_later():
    waiting = []

    @around(Coordinator, "upload")
    async def _(original, self, device, request, body):
        is_new = device not in self.book.find(request.round_id).receipts
        receipt = await original(self, device, request, body)
        if is_new:
            waiting.append(body)
        return receipt

    @around(Coordinator, "_add_up")
    def _(original, self, current, bodies):
        kept = waiting.copy()
        waiting.clear()
        return original(self, current, kept)


@mutant("status-of-anybody", "has_your_upload says whether anybody's upload is in", "status.of-who-asks")
def status_of_anybody():
    @around(Coordinator, "round_status")
    async def _(original, self, device, round_id):
        answer = await original(self, device, round_id)
        answer.has_your_upload = answer.upload_count > 0
        return answer


@mutant("clock-from-the-start", "the clock of a round starts when it opens, not with its first place", "checkin.clock")
def clock_from_the_start():
    @around(Round, "new")
    def _(original, number, model_version, manifest_sha256, plan, now):
        made = original(number, model_version, manifest_sha256, plan, now)
        made.deadline = now + made.deadline_seconds
        return made


@mutant("clock-starts-again", "each new place gives the round its whole time again", "checkin.deadline-stands")
def clock_starts_again():
    @around(Coordinator, "_keep_place")
    async def _(original, self, current, device):
        is_kept = await original(self, current, device)
        current.deadline = self._clock() + current.deadline_seconds
        return is_kept


@mutant("known-version-decides", "a device that holds another version gets no place", "checkin.known-version")
def known_version_decides():
    @around(service.CoordinatorService, "check_in")
    async def _(original, self, device, body):
        known = pb.CheckInRequest.FromString(body).known_model_version
        if known not in (0, self._coordinator.version.manifest.model_version):
            return self._coordinator.retry(pb.RETRY_REASON_NOT_CAPABLE).SerializeToString()
        return await original(self, device, body)


@mutant("deadline-stands", "deadline_ms is the whole length of a round for everybody", "checkin.deadline-stands")
def deadline_stands():
    Round.deadline_ms = lambda self, now: int(1000 * self.deadline_seconds)


@mutant("places-carry-over", "who had a place in the last round may upload in this one", "upload.not-assigned")
def places_carry_over():
    last = {}

    @around(RoundBook, "replace_current")
    def _(original, self, following):
        last.update(self.current.assigned)
        original(self, following)

    @around(Round, "require_place")
    def _(original, self, device, manifest_sha256, now):
        if device in last:
            self.assigned.setdefault(device, b"")
        original(self, device, manifest_sha256, now)


@mutant("few-rounds-remembered", "8 ended rounds are remembered, not 16", "status.remembers-16-rounds")
def few_rounds_remembered():
    book.REMEMBERED_ROUNDS = 8


@mutant("steps-in-the-clear", "GetStep in a round in the clear says to wait", "step.in-the-clear")
def steps_in_the_clear():
    @around(secure_steps.SecureSteps, "step")
    async def _(original, self, device, round_id, wait_seconds):
        if not self._is_masked and device in self._find(round_id).assigned:
            return secure_pb2.GetStepResponse(wait_ms=1000).SerializeToString()
        return await original(self, device, round_id, wait_seconds)


@mutant("abandoned-counts-nothing", "an abandoned round says that nobody uploaded", "round.abandoned")
def abandoned_counts_nothing():
    @around(Coordinator, "round_status")
    async def _(original, self, device, round_id):
        answer = await original(self, device, round_id)
        if answer.state == ABANDONED:
            answer.upload_count = 0
        return answer
