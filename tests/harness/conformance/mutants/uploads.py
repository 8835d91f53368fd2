"""Faults of uploads in the clear: repetition, receipts, content."""

from __future__ import annotations

import numpy as np

from lightfr.v1 import error_pb2
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.rounds import Round
from lightfr_harness.server.rules import uploads
from lightfr_harness.server.rules.uploads import Upload
from tests.harness.conformance.mutants import around, mutant, never_refuse


@mutant("counted-twice", "the same bytes again are counted again", "upload.same-bytes-again")
def counted_twice():
    @around(Coordinator, "upload")
    async def _(original, self, device, request, body):
        addressed = self.book.find(request.round_id)
        if device in addressed.receipts and addressed.ended_at is None:
            device = f"{device} and {len(addressed.receipts)} more"
            addressed.assigned[device] = b""
        return await original(self, device, request, body)


@mutant("repetition-refused", "the same bytes again are a conflict", "upload.same-bytes-again")
def repetition_refused():
    @around(Round, "receipt_for")
    def _(original, self, device, request_sha256):
        if device in self.receipts:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_CONFLICT, "there is one already")
        return original(self, device, request_sha256)


@mutant("receipts-forgotten", "receipts are forgotten when the round ends", "upload.same-bytes-after-the-round")
def receipts_forgotten():
    @around(Round, "receipt_for")
    def _(original, self, device, request_sha256):
        return original(self, device, request_sha256) if self.ended_at is None else None


@mutant("other-bytes-get-the-receipt", "other bytes of a device get the receipt of the first", "upload.other-bytes")
def other_bytes_get_the_receipt():
    Round.receipt_for = lambda self, device, request_sha256: self.receipts.get(device)


@mutant(
    "receipt-of-new-bytes",
    "the receipt is over the message written anew, unknown fields dropped",
    "upload.receipt-of-arrived-bytes",
)
def receipt_of_new_bytes():
    @around(Coordinator, "upload")
    async def _(original, self, device, request, body):
        request.DiscardUnknownFields()
        return await original(self, device, request, request.SerializeToString())


@mutant("places-not-asked-for", "devices without a place upload too", "upload.not-assigned")
def places_not_asked_for():
    @around(Round, "require_place")
    def _(original, self, device, manifest_sha256, now):
        self.assigned.setdefault(device, b"")
        original(self, device, manifest_sha256, now)


@mutant("any-model", "manifest_sha256 is not compared with the round's", "upload.other-model")
def any_model():
    @around(Round, "require_place")
    def _(original, self, device, manifest_sha256, now):
        original(self, device, self.manifest_sha256, now)


@mutant("closed-rows-accepted", "rows that the gate closes are counted", "upload.closed-row")
def closed_rows_accepted():
    never_refuse(uploads, "closed by the gate")


@mutant("any-number-of-rows", "more than max_rows rows are counted", "upload.too-many-rows")
def any_number_of_rows():
    never_refuse(uploads, "more than 64 rows")


@mutant("rows-twice", "a row may come twice in an upload", "upload.repeated-row")
def rows_twice():
    never_refuse(uploads, "strictly ascending")


@mutant("positive-zeros", "elements that are zero and positive at once are taken for zeros", "upload.positive-zero")
def positive_zeros():
    never_refuse(uploads, "positive where it is zero")


@mutant("long-planes", "bytes behind the planes that are needed are ignored", "upload.long-nonzero")
def long_planes():
    never_refuse(uploads, "ternary planes have the wrong size")


@mutant(
    "refused-rows-counted",
    "rows are added up as they are read, also of an upload that is then refused",
    "upload.refused-counts-nothing",
)
def refused_rows_counted():
    @around(Coordinator, "_check")
    def _(original, self, addressed, device, request):
        try:
            return original(self, addressed, device, request)
        except Refusal:
            items = np.frombuffer(request.row_update.item_indices, "<u4")
            # A closed item has the row behind the others.
            rows = np.searchsorted(self._rule._own_items, items).astype(np.uint32)
            Upload(items, request.row_update).add_to(self._rule._row_sums, rows)
            raise


@mutant(
    "content-before-place", "the content of an upload is judged before its sender's place", "upload.content-comes-last"
)
def content_before_place():
    @around(Coordinator, "upload")
    async def _(original, self, device, request, body):
        addressed = self.book.find(request.round_id)
        if device not in addressed.receipts:
            self._check(addressed, device, request)
        return await original(self, device, request, body)


@mutant(
    "model-before-the-end",
    "an upload that is too late is told that its model is another",
    "upload.closed-round-of-another-model",
)
def model_before_the_end():
    mismatch_first()


def mismatch_first():
    """Compare the model before anything is known about the round's state."""

    @around(Round, "require_place")
    def _(original, self, device, manifest_sha256, now):
        if device in self.assigned and manifest_sha256 != self.manifest_sha256:
            raise Refusal(error_pb2.ERROR_REASON_MODEL_MISMATCH, "another model")
        original(self, device, manifest_sha256, now)
