"""One device of the suite in a round of secure aggregation: it makes what a good device sends, and sends anything.

The good parts are the SDK's session; what the server says is checked by the plain formulas of cohort.py.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf.message import Message

from lightfr.errors import LightFRError
from lightfr.secagg import DeviceSession, Place, Roster, Vector, evaluation_blocks, gate_blocks, round_blocks
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2
from lightfr.v1.model_pb2 import Noise
from lightfr_harness.conformance.client import Answer
from lightfr_harness.conformance.cohort import (
    INDEX_BYTES,
    KEY_BYTES,
    REVEALED_RECORD_BYTES,
    SEALED_RECORD_BYTES,
    Entry,
    owner_of,
    records_of,
)
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_equal
from lightfr_harness.conformance.twin import LEAST_ROWS, Contribution

if TYPE_CHECKING:
    from lightfr_harness.conformance.world import Device

METHODS = (
    *("AdvertiseKeys", "ShareKeys", "AcknowledgeShares", "SignIncluded"),
    *("Upload", "SignSurvivors", "RevealShares"),
)
ADVERTISE, SHARE, ACKNOWLEDGE, SIGN_INCLUDED, UPLOAD, SIGN_SURVIVORS, REVEAL = METHODS
# What GetStep answers when a step is due.
KINDS = dict(zip(METHODS[1:], ("share", "acknowledge", "included", "upload", "survivors", "reveal"), strict=True))
PHASE_OF_KIND = dict(
    zip(KINDS.values(), ("sharing", "acknowledging", "including", "uploading", "confirming", "revealing"), strict=True)
)
# A question is held so long at most, and asked again.
HOLD_MS = 1000
LONGEST_PAUSE_SECONDS = 0.02
DAY_MS = 86_400_000


class Told(dict[str, Any]):
    """The steps that GetStep said were due, by their kind."""

    def __missing__(self, kind: str) -> Any:
        raise Unexpected(f"GetStep to say that '{kind}' is due", "it never was")


class Peer:
    """One place in one round."""

    def __init__(
        self,
        device: Device,
        assignment: pb.Assignment,
        trusted: tuple[bytes, Sequence[bytes]],
        part: Contribution,
        make_vector: Callable[[int], Vector],
    ) -> None:
        """`trusted` are the raw keys that sign manifests and memberships; `make_vector` gets the cohort's size."""
        self.device, self.assignment, self.contribution = device, assignment, part
        self._make_vector = make_vector
        self._kind = assignment.kind or pb.ROUND_KIND_TRAINING
        place = Place(assignment.round_id, assignment.peer_id, assignment.manifest_sha256, self._kind, *trusted)
        self._session = DeviceSession(place, device.member, now_unix_seconds=time.time(), minimum_cohort=2)
        # Roster indices of devices about which it has complained although their shares opened.
        self.slandered: set[int] = set()
        # What GetStep said was due, by its kind; what a good device sends, by method; what was accepted of it.
        self.told = Told()
        self._made: dict[str, Any] = {}
        self.delivered: set[str] = set()
        self.receipt = pb.UploadResponse()

    @property
    def peer_id(self) -> bytes:
        return self.assignment.peer_id

    @property
    def round_id(self) -> bytes:
        return self.assignment.round_id

    @property
    def entry(self) -> Entry:
        """What the roster must have of this device: entry and voucher."""
        keys = self.good(ADVERTISE)
        entry = self.peer_id + keys.mask_public_key + keys.share_public_key + keys.membership[:KEY_BYTES]
        return entry, keys.membership[KEY_BYTES:] + keys.signature

    # Sending.

    def send(self, method: str, request: Message | bytes) -> Answer:
        """Send anything; what was accepted is remembered."""
        answer = self._called(method, request)
        if answer.status == 200:
            self.delivered.add(method)
        return answer

    def _called(self, method: str, request: Message | bytes) -> Answer:
        """Call a method; the answer says how far the round had come, as far as this device was told."""
        phase = PHASE_OF_KIND[next(reversed(self.told))] if self.told else "advertising"
        return replace(self.device.call(method, request), to=f"{method} in the phase '{phase}'")

    def deliver(self, method: str) -> None:
        """Send what a good device sends, which must be accepted."""
        request = self.good(method)
        answer = self.send(method, request)
        if method == UPLOAD:
            self._require_receipt(request, answer.message(pb.UploadResponse))
        else:
            answer.message(ANSWERS[method])

    def _require_receipt(self, request: pb.UploadRequest, receipt: pb.UploadResponse) -> None:
        expect_equal("upload_id of the receipt", receipt.upload_id, request.upload_id)
        digest = hashlib.sha256(request.SerializeToString()).digest()
        expect_equal("request_sha256 of the receipt", receipt.request_sha256, digest)
        self.receipt = receipt

    def question(self, max_wait_ms: int = 0) -> Answer:
        request = secure_pb2.GetStepRequest(round_id=self.round_id, max_wait_ms=max_wait_ms)
        return self._called("GetStep", request)

    def ask(self, max_wait_ms: int = 0) -> secure_pb2.GetStepResponse:
        """What the server says is due."""
        step = self.question(max_wait_ms).message(secure_pb2.GetStepResponse)
        kind = step.WhichOneof("step")
        expect(kind is not None, "a step in the answer to GetStep", "an empty answer")
        if kind == "wait_ms":
            expect(1 <= step.wait_ms <= DAY_MS, f"wait_ms from 1 to {DAY_MS}", step.wait_ms)
        return step

    def due(self, kind: str, patience_seconds: float) -> Any:
        """Ask until a step is due, which must be of this kind."""
        step = self.settled(patience_seconds).message(secure_pb2.GetStepResponse)
        expect_equal("what GetStep says is due", step.WhichOneof("step"), kind)
        return self.told.setdefault(kind, getattr(step, kind))

    def settled(self, patience_seconds: float) -> Answer:
        """The first answer to GetStep that is not to wait."""
        ends = time.monotonic() + patience_seconds
        while True:
            answer = self.question(HOLD_MS)
            if answer.status != 200:
                return answer
            step = answer.message(secure_pb2.GetStepResponse)
            if step.WhichOneof("step") != "wait_ms":
                return answer
            if time.monotonic() > ends:
                raise Unexpected(f"another answer than wait_ms within {patience_seconds:.0f} s", "only that")
            time.sleep(min(step.wait_ms / 1000, LONGEST_PAUSE_SECONDS))

    # What a good device sends.

    def good(self, method: str) -> Any:
        """The one request of a good device for a step; it must have been told that the step is due."""
        if method not in self._made:
            try:
                self._made[method] = _MAKERS[method](self)
            except LightFRError as error:
                raise Unexpected(f"that a device can go on to {method}", f"its session refuses: {error}") from error
        # A copy, for cases to spoil.
        copy = type(self._made[method])()
        copy.CopyFrom(self._made[method])
        return copy

    def _keys(self) -> secure_pb2.AdvertiseKeysRequest:
        vouched = self._session.advertise()
        return secure_pb2.AdvertiseKeysRequest(
            round_id=self.round_id,
            mask_public_key=vouched.entry.mask_key,
            share_public_key=vouched.entry.share_key,
            membership=vouched.membership,
            signature=vouched.signature,
        )

    def _shares(self) -> secure_pb2.ShareKeysRequest:
        step = self.told["share"]
        numbers = (step.degree, step.holders, step.threshold)
        roster = Roster(self.round_id, self.assignment.manifest_sha256, self._kind, *numbers, step.entries)
        sealed = self._session.share(roster, step.vouchers, step.signature)
        joined = b"".join(index.to_bytes(INDEX_BYTES, "little") + message for index, message in sealed)
        return secure_pb2.ShareKeysRequest(round_id=self.round_id, sealed_shares=joined)

    def _acknowledgement(self) -> secure_pb2.AcknowledgeSharesRequest:
        records = records_of(self.told["acknowledge"].sealed_shares, SEALED_RECORD_BYTES)
        unopened = self._session.acknowledge([(owner_of(record), record[INDEX_BYTES:]) for record in records])
        return secure_pb2.AcknowledgeSharesRequest(round_id=self.round_id, unopened=unopened)

    def _included(self) -> secure_pb2.SignIncludedRequest:
        step = self.told["included"]
        signature = self._session.sign_included(step.included, step.signature)
        return secure_pb2.SignIncludedRequest(round_id=self.round_id, signature=signature)

    def _masked(self) -> pb.UploadRequest:
        step = self.told["upload"]
        vector = self._make_vector(self._session.cohort)
        return pb.UploadRequest(
            round_id=self.round_id,
            manifest_sha256=self.assignment.manifest_sha256,
            upload_id=secrets.token_bytes(16),
            masked_vector=self._session.mask(vector, step.signers, step.signatures),
        )

    def _survivors(self) -> secure_pb2.SignSurvivorsRequest:
        step = self.told["survivors"]
        signature = self._session.sign_survivors(step.survivors, step.signature)
        return secure_pb2.SignSurvivorsRequest(round_id=self.round_id, signature=signature)

    def _revealed(self) -> secure_pb2.RevealSharesRequest:
        step = self.told["reveal"]
        shares = self._session.reveal(step.signers, step.signatures)
        kept = [
            b"".join(one for one in records_of(field, REVEALED_RECORD_BYTES) if owner_of(one) not in self.slandered)
            for field in shares
        ]
        return secure_pb2.RevealSharesRequest(round_id=self.round_id, seeds=kept[0], mask_keys=kept[1])


_MAKERS: dict[str, Callable[[Peer], Message]] = {
    ADVERTISE: Peer._keys,
    SHARE: Peer._shares,
    ACKNOWLEDGE: Peer._acknowledgement,
    SIGN_INCLUDED: Peer._included,
    UPLOAD: Peer._masked,
    SIGN_SURVIVORS: Peer._survivors,
    REVEAL: Peer._revealed,
}
ANSWERS: dict[str, type[Message]] = {
    ADVERTISE: secure_pb2.AdvertiseKeysResponse,
    SHARE: secure_pb2.ShareKeysResponse,
    ACKNOWLEDGE: secure_pb2.AcknowledgeSharesResponse,
    SIGN_INCLUDED: secure_pb2.SignIncludedResponse,
    SIGN_SURVIVORS: secure_pb2.SignSurvivorsResponse,
    REVEAL: secure_pb2.RevealSharesResponse,
}


def vector_of(part: Contribution, is_open: Sequence[bool], noise: Noise | None, devices: int) -> Vector:
    """The blocks of docs/secagg.md, step 5, filled number by number, without noise: the sums must be exact.

    `noise` is that of the model. It makes room in the blocks, and all devices weigh the same.
    """
    user = [int(sign) for sign in part.user]
    code_bits, weight = len(user), 1 if noise else max(len(part.rows), LEAST_ROWS)
    vector = Vector(round_blocks(sum(is_open), code_bits, devices, noise))
    places = [item for item, it_is in enumerate(is_open) if it_is]
    for item, row in part.rows.items():
        first = places.index(item) * code_bits
        for k, element in enumerate(row):
            vector["rows"][first + k] = int(element)
    for k, sign in enumerate(user):
        vector["user_sum"][k] = weight * sign
    if not noise:
        vector["weight"][0] = weight
    return vector


def counts_of(rated: Collection[int], item_count: int, devices: int) -> Vector:
    """The block of a gate refresh, without noise: the counts must be exact."""
    vector = Vector(gate_blocks(item_count, devices))
    for item in rated:
        vector["counts"][item] = 1
    return vector


class Verdict(NamedTuple):
    """What a device says in an evaluation: places of the candidates that showed its opinion's item, all counting."""

    good: Collection[int]
    is_disliked: bool = False
    # Its group, by the number of opinions: 0 to 3.
    group: int = 0
    # A true device says 1.
    says: int = 1


def hits_of(verdict: Verdict, n_candidates: int, devices: int) -> Vector:
    """The block of an evaluation, without noise."""
    vector, width = Vector(evaluation_blocks(n_candidates, devices)), 1 + 2 * n_candidates
    first = (2 * verdict.group + verdict.is_disliked) * width
    vector["hits"][first] = 1
    for candidate in verdict.good:
        for place in (1 + 2 * candidate, 2 + 2 * candidate):
            vector["hits"][first + place] = verdict.says
    return vector
