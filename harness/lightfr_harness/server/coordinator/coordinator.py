"""Answers devices: gives out places, takes uploads, tells how rounds stand.

Memory is what requests are answered from. What devices deliver and what phases settle comes into it when it is durable;
places are ahead of the storage by what is being written at this moment, and nobody is told of one before it is durable.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2
from lightfr_harness.server.coordinator.accuracy import AccuracyReport, has_fallen
from lightfr_harness.server.coordinator.catalogue_plan import Change
from lightfr_harness.server.coordinator.catalogue_update import check_list
from lightfr_harness.server.coordinator.phases import UPLOADING
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.rounds import Receipt, Round
from lightfr_harness.server.coordinator.runner import RoundRunner
from lightfr_harness.server.rules import UploadError

# Answers that another cohort of the round may make better.
_NO_PLACE = (pb.RETRY_REASON_ROUND_FULL, pb.RETRY_REASON_AGGREGATING)


class Coordinator(RoundRunner):
    """The requests of devices, and of the operator."""

    async def check_in(self, device: str) -> pb.CheckInResponse:
        await self.follow(device)
        now = self._clock()
        placed = self.book.check_in(device, now, lambda current: self._turned_away(device, current, now))
        if placed in _NO_PLACE and self.book.may_open(now) and not self.awaits_catalogue:
            await self.open_cohort()
            placed = self.book.check_in(device, now, lambda current: self._turned_away(device, current, now))
        if isinstance(placed, int):
            return self.retry(placed)
        current, is_new = placed
        if is_new and not await self._keep_place(current, device):
            return self.retry(pb.RETRY_REASON_ROUND_FULL)
        await self._storage.settled()
        if device not in current.assigned:
            # The device asked twice at once, and the place that the first request took could not be kept.
            return self.retry(pb.RETRY_REASON_ROUND_FULL)
        self.metrics.check_ins.labels("assignment").inc()
        return pb.CheckInResponse(assignment=self._assignment(current, device, self._clock()))

    async def _keep_place(self, current: Round, device: str) -> bool:
        """Make a place durable; False if another process has given the last one, or this device another one."""
        if len(current.assigned) == 1:
            self.wake()  # The first place starts the time.
        try:
            placed = await self._storage.assign(current, device)
        except BaseException:
            current.assigned.pop(device, None)
            raise
        if placed is None:
            current.assigned.pop(device, None)
            return False
        current.assigned[device], current.first_place_at, current.deadline = placed
        return True

    def _turned_away(self, device: str, current: Round, now: float) -> int | None:
        """Why the device gets no place, if so. No round begins while the items are about to change."""
        if self.awaits_catalogue:
            return pb.RETRY_REASON_AGGREGATING
        return self.standing.turned_away(device, current, now)

    def retry(self, reason: int) -> pb.CheckInResponse:
        """When to come back, and why."""
        name = pb.RetryReason.Name(reason).removeprefix("RETRY_REASON_").lower()
        self.metrics.check_ins.labels(name).inc()
        return pb.CheckInResponse(retry_window=self.book.retry_window(reason, self._clock()))

    def _assignment(self, current: Round, device: str, now: float) -> pb.Assignment:
        return pb.Assignment(
            round_id=current.round_id,
            model_version=current.model_version,
            manifest_sha256=current.manifest_sha256,
            deadline_ms=current.upload_deadline_ms(now),
            upload_limit_bytes=self.version.upload_limit_bytes,
            peer_id=current.assigned[device],
            kind=current.kind if current.cohort else None,  # type: ignore[arg-type]
        )

    async def upload(self, device: str, request: pb.UploadRequest, body: bytes) -> Receipt:
        """Take an upload; the receipt when it is durable. A stored receipt comes before every other question."""
        await self.follow(device, request.round_id, UPLOADING)
        addressed = self.book.find(request.round_id)
        digest = hashlib.sha256(body).digest()
        known = addressed.receipt_for(device, digest)
        if known is not None:
            return known
        addressed.require_place(device, request.manifest_sha256, self._clock())
        checked, receipt = self._check(addressed, device, request), Receipt(request.upload_id, digest)
        await self.steps.keep(addressed, UPLOADING, device, digest, body, checked, request.upload_id)
        if device not in addressed.receipts:
            addressed.take(device, receipt, len(body))
            self.metrics.uploads.inc()
            self.metrics.upload_bytes.inc(len(body))
            self.metrics.round_uploads.set(len(addressed.receipts))
        if addressed.cohort is None and len(addressed.receipts) >= addressed.goal:
            self.wake()
        return receipt

    def _check(self, addressed: Round, device: str, request: pb.UploadRequest) -> object:
        """Refuse what the round did not ask for; of what is masked, returns what its cohort takes."""
        expected = "row_update" if addressed.cohort is None else "masked_vector"
        if request.WhichOneof("body") != expected:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, f"the round's privacy mode asks for a {expected}")
        if addressed.cohort is not None:
            return addressed.cohort.check(UPLOADING, device, request)
        try:
            return self.version.reader.check(request.row_update)
        except UploadError as error:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, str(error)) from error

    async def round_status(self, device: str, round_id: bytes) -> pb.GetRoundStatusResponse:
        """How a round stands, in what is durable."""
        await self.follow(device, round_id)
        asked = self.book.find(round_id)
        count = len(asked.receipts)
        if self._storage.is_shared and not asked.is_over:
            count = await self._storage.read(lambda stored: stored.delivery_count(round_id, UPLOADING))
        return pb.GetRoundStatusResponse(
            state=asked.state,  # type: ignore[arg-type]
            upload_count=count,
            upload_goal=asked.goal,
            has_your_upload=device in asked.receipts,
            next_model_version=asked.next_model_version,
        )

    async def offer_catalogue(self, content: bytes) -> Change:
        """Take another list of items, durably, for the time between two rounds; what it will change."""
        newest, has_counts = self.version.serialised, self.catalogue_changes[0].has_counts
        state = await self._have_files(newest)
        check = functools.partial(
            check_list, self._publisher, self.settings, newest, content, has_counts=has_counts, state=state
        )
        change = await asyncio.to_thread(check)
        await self.next_catalogue.put(content)
        self.wake()
        return change

    async def report_accuracy(self, report: AccuracyReport) -> None:
        """Keep what somebody measured, to be shown; log it if the model has become worse."""
        self.accuracy[report.model_version] = report
        if has_fallen(self.accuracy, self.plan.tolerance):
            self.log.event("accuracy_fell", model_version=report.model_version, hit_rate=report.hit_rate)
        await self._storage.add_accuracy(report)
