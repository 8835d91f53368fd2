"""Step 5 of secure aggregation: masked vectors."""

from __future__ import annotations

import os

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.masking import METHODS, SIGN_SURVIVORS, UPLOAD
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_5 = "docs/secagg.md#5-mask-and-upload"


def _begun(world: World) -> SecureRound:
    """A round in which uploads are due."""
    current = world.secure.fresh()
    current.tell_all(UPLOAD)
    return current


def _require_refused(current: SecureRound, *vectors: bytes) -> None:
    """Each is refused, nothing of it counts, and the good one is accepted afterwards."""
    peer = current.peers[0]
    for vector in vectors:
        request = peer.good(UPLOAD)
        request.masked_vector = vector
        peer.send(UPLOAD, request).refusal("UPLOAD_INVALID")
    expect_equal("upload_count after refused uploads", current.status().upload_count, 0)
    current.finish_exactly()


@case("masked.too-early", "Before a quorum has signed who is included, nobody uploads.", PHASES, kits=SECAGG)
def too_early(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    request = dropouts.any_upload(peer, dropouts.VECTOR_BYTES)
    # The phase is looked at before the model.
    mismatched = dropouts.any_upload(peer, dropouts.VECTOR_BYTES)
    mismatched.manifest_sha256 = os.urandom(32)
    for method in METHODS[:4]:
        current.take_step(peer, method)
        for early in (request, mismatched):
            peer.send(UPLOAD, early).refusal("UPLOAD_INVALID")
        current.walk(method)
    current.finish_exactly()


@case("masked.size", "A vector of another size is for another roster.", STEP_5, kits=SECAGG)
def size(world: World) -> None:
    current = _begun(world)
    vector = current.peers[0].good(UPLOAD).masked_vector
    _require_refused(current, vector[:-1], vector + b"\0", b"", vector[:1152])


@case("masked.padding", "Bits behind the last number would be a channel that nobody looks at.", STEP_5, kits=SECAGG)
def padding(world: World) -> None:
    current = _begun(world)
    vector = current.peers[0].good(UPLOAD).masked_vector
    # The weight has 11 bits in the last 2 bytes.
    _require_refused(current, vector[:-1] + bytes([vector[-1] | 0x08]), vector[:-1] + bytes([vector[-1] | 0x80]))


@case("masked.row-update", "Rows in the clear are what this mode is there to prevent.", PHASES, kits=SECAGG)
def row_update(world: World) -> None:
    current = _begun(world)
    peer = current.peers[0]
    for body in ({"row_update": peer.contribution.as_update()}, {}):
        request = pb.UploadRequest(
            round_id=peer.round_id,
            manifest_sha256=peer.assignment.manifest_sha256,
            upload_id=os.urandom(16),
            **body,  # type: ignore[arg-type]
        )
        peer.send(UPLOAD, request).refusal("UPLOAD_INVALID")
    current.finish_exactly()


@case("masked.model-mismatch", "Rows for other codes must not move these.", PHASES, kits=SECAGG)
def model_mismatch(world: World) -> None:
    current = _begun(world)
    request = current.peers[0].good(UPLOAD)
    request.manifest_sha256 = os.urandom(32)
    current.peers[0].send(UPLOAD, request).refusal("MODEL_MISMATCH")
    # The content is looked at last.
    request.masked_vector = b""
    current.peers[0].send(UPLOAD, request).refusal("MODEL_MISMATCH")
    current.finish_exactly()


@case(
    "masked.late-for-another-model",
    "A device that is too late must hear that, and not that its model is another.",
    PHASES,
    kits=SECAGG,
)
def late_for_another_model(world: World) -> None:
    world.secure.shared(dropouts.without_uploads).noted["late for another model"].refusal("ROUND_CLOSED")


@case(
    "masked.same-bytes-again",
    "A device that lost its receipt gets it again, whatever has become of the round.",
    PHASES,
    kits=SECAGG,
)
def same_bytes_again(world: World) -> None:
    current = _begun(world)
    peer = current.peers[0]
    peer.deliver(UPLOAD)
    first = peer.receipt
    peer.deliver(UPLOAD)
    expect_equal("the receipt", peer.receipt, first)
    expect_equal("upload_count after the same bytes twice", current.status().upload_count, 1)
    current.walk(UPLOAD)
    peer.deliver(UPLOAD)
    current.finish_exactly()
    peer.deliver(UPLOAD)
    expect_equal("the receipt after the round", peer.receipt, first)


@case("masked.other-bytes", "Two vectors under the same masks give away their difference.", PHASES, kits=SECAGG)
def other_bytes(world: World) -> None:
    current = _begun(world)
    peer = current.peers[0]
    peer.deliver(UPLOAD)
    other_vector, other_id = peer.good(UPLOAD), peer.good(UPLOAD)
    other_vector.masked_vector = bytes([other_vector.masked_vector[0] ^ 1]) + other_vector.masked_vector[1:]
    other_id.upload_id = os.urandom(16)
    for request in (other_vector, other_id):
        peer.send(UPLOAD, request).refusal("UPLOAD_CONFLICT")
    current.tell_all(SIGN_SURVIVORS)
    peer.send(UPLOAD, other_vector).refusal("UPLOAD_CONFLICT")
    current.finish_exactly()
    peer.send(UPLOAD, other_vector).refusal("UPLOAD_CONFLICT")


@case("masked.not-signed", "Who did not sign the included set has not agreed to it.", PHASES, kits=SECAGG)
def not_signed(world: World) -> None:
    world.secure.shared(dropouts.without_signatures).noted["next"].refusal("ROUND_CLOSED")


@case("masked.too-late", "The survivors are settled: a vector that comes now must not be added.", PHASES, kits=SECAGG)
def too_late(world: World) -> None:
    world.secure.shared(dropouts.without_uploads).noted["late"].refusal("ROUND_CLOSED")
