"""Answers devices: gives out places, takes uploads, tells how rounds stand.

Memory is what requests are answered from; it is ahead of the storage by what is being written at this moment, and no
request is answered before what it relies on is durable.
"""

from __future__ import annotations

import asyncio
import hashlib

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2
from lightfr_harness.server.coordinator.accuracy import AccuracyReport, has_fallen
from lightfr_harness.server.coordinator.catalogue_plan import Change
from lightfr_harness.server.coordinator.catalogue_update import offer
from lightfr_harness.server.coordinator.cohort import UPLOADING
from lightfr_harness.server.coordinator.keeper import RoundKeeper
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.rounds import Receipt, Round
from lightfr_harness.server.rules import UploadError


class Coordinator(RoundKeeper):
    """The requests of devices, and of the operator."""

    async def check_in(self, device: str) -> pb.CheckInResponse:
        now = self._clock()
        placed = self.book.check_in(device, now, lambda current: self._turned_away(device, current, now))
        if isinstance(placed, int):
            if placed == pb.RETRY_REASON_ALREADY_UPLOADED:
                await self._storage.settled()
            return self.retry(placed)
        current, is_new = placed
        if is_new:
            if len(current.assigned) == 1:
                self._changed.set()  # The first place starts the time.
            await self._storage.assign(current, device)
        else:
            await self._storage.settled()
        self.metrics.check_ins.labels("assignment").inc()
        return pb.CheckInResponse(assignment=self._assignment(current, device, self._clock()))

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
        addressed = self.book.find(request.round_id)
        digest = hashlib.sha256(body).digest()
        known = addressed.receipt_for(device, digest)
        if known is not None:
            await self._storage.settled()
            return known
        addressed.require_place(device, request.manifest_sha256, self._clock())
        self._take_legal(addressed, device, request, digest)
        receipt = Receipt(request.upload_id, digest)
        addressed.take(device, receipt, len(body))
        written = self._storage.add_upload(addressed.number, device, receipt, body)
        if addressed.cohort.is_complete() if addressed.cohort else len(addressed.receipts) >= addressed.goal:
            self._changed.set()
        await written
        self.metrics.uploads.inc()
        self.metrics.upload_bytes.inc(len(body))
        self.metrics.round_uploads.set(len(addressed.receipts))
        return receipt

    def _take_legal(self, addressed: Round, device: str, request: pb.UploadRequest, digest: bytes) -> None:
        """Refuse what the round did not ask for; add what is masked to the sum at once, which checks it."""
        expected = "row_update" if addressed.cohort is None else "masked_vector"
        if request.WhichOneof("body") != expected:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, f"the round's privacy mode asks for a {expected}")
        if addressed.cohort is not None:
            addressed.cohort.take(UPLOADING, device, digest, request)
            return
        try:
            self.version.reader.check(request.row_update)
        except UploadError as error:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, str(error)) from error

    async def round_status(self, device: str, round_id: bytes) -> pb.GetRoundStatusResponse:
        """How a round stands, in what is durable."""
        asked = self.book.find(round_id)
        answer = pb.GetRoundStatusResponse(
            state=asked.state,  # type: ignore[arg-type]
            upload_count=len(asked.receipts),
            upload_goal=asked.goal,
            has_your_upload=device in asked.receipts,
            next_model_version=asked.next_model_version,
        )
        await self._storage.settled()
        return answer

    async def offer_catalogue(self, content: bytes) -> Change:
        """Take another list of items, durably, for the time between two rounds; what it will change."""
        change = await asyncio.to_thread(offer, self.folder, content)
        self._changed.set()
        return change

    async def report_accuracy(self, report: AccuracyReport) -> None:
        """Keep what somebody measured, to be shown; log it if the model has become worse."""
        self.accuracy[report.model_version] = report
        if has_fallen(self.accuracy, self.plan.tolerance):
            self.log.event("accuracy_fell", model_version=report.model_version, hit_rate=report.hit_rate)
        await self._storage.add_accuracy(report)
