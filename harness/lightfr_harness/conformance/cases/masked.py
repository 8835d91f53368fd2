"""Step 3 of secure aggregation: masked vectors, and who survives."""

from __future__ import annotations

import os

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.masking import ADVERTISE, REVEAL, SHARE, UPLOAD
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
UPLOADS = "docs/protocol.md#a-round-in-the-clear"
STEP_3 = "docs/secagg.md#3-mask-and-upload"
STEP_4 = "docs/secagg.md#4-unmask"


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


@case("masked.too-early", "Before the included set is known nobody can have made the right masks.", PHASES, kits=SECAGG)
def too_early(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    for method in (ADVERTISE, SHARE):
        peer.send(UPLOAD, dropouts.any_upload(peer, 1486)).refusal("UPLOAD_INVALID")
        current.take_step(peer, method)
        peer.send(UPLOAD, dropouts.any_upload(peer, 1486)).refusal("UPLOAD_INVALID")
        current.walk(method)
    current.finish_exactly()


@case("masked.size", "A vector of another size is for another roster.", STEP_3, kits=SECAGG)
def size(world: World) -> None:
    current = _begun(world)
    vector = current.peers[0].good(UPLOAD).masked_vector
    _require_refused(current, vector[:-1], vector + b"\0", b"", vector[:1152])


@case("masked.padding", "Bits behind the last number would be a channel that nobody looks at.", STEP_3, kits=SECAGG)
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


@case("masked.model-mismatch", "Rows for other codes must not move these.", UPLOADS, kits=SECAGG)
def model_mismatch(world: World) -> None:
    current = _begun(world)
    request = current.peers[0].good(UPLOAD)
    request.manifest_sha256 = os.urandom(32)
    current.peers[0].send(UPLOAD, request).refusal("MODEL_MISMATCH")
    current.finish_exactly()


@case(
    "masked.same-bytes-again",
    "A device that lost its receipt gets it again, whatever has become of the round.",
    UPLOADS,
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


@case("masked.other-bytes", "Two vectors under the same masks give away their difference.", UPLOADS, kits=SECAGG)
def other_bytes(world: World) -> None:
    current = _begun(world)
    peer = current.peers[0]
    peer.deliver(UPLOAD)
    other_vector, other_id = peer.good(UPLOAD), peer.good(UPLOAD)
    other_vector.masked_vector = bytes([other_vector.masked_vector[0] ^ 1]) + other_vector.masked_vector[1:]
    other_id.upload_id = os.urandom(16)
    for request in (other_vector, other_id):
        peer.send(UPLOAD, request).refusal("UPLOAD_CONFLICT")
    current.tell_all(REVEAL)
    peer.send(UPLOAD, other_vector).refusal("UPLOAD_CONFLICT")
    current.finish_exactly()
    peer.send(UPLOAD, other_vector).refusal("UPLOAD_CONFLICT")


@case("masked.not-included", "Who did not share has masks that nobody could take off.", PHASES, kits=SECAGG)
def not_included(world: World) -> None:
    world.secure.shared(dropouts.without_shares).noted["upload"].refusal("ROUND_CLOSED")


@case("masked.too-late", "The survivors are settled: a vector that comes now must not be added.", PHASES, kits=SECAGG)
def too_late(world: World) -> None:
    world.secure.shared(dropouts.without_uploads).noted["upload"].refusal("ROUND_CLOSED")


@case("survivors.everybody", "The same set for all, since each reveals one kind of share by it.", STEP_4, kits=SECAGG)
def everybody(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(REVEAL)
    for peer in current.peers:
        expect_equal("survivors of 6", peer.told["reveal"].survivors, b"\x3f")
        expect_equal("what devices are told", peer.told["reveal"], current.peers[0].told["reveal"])
    expect_equal("the set when asked again", current.peers[0].ask().reveal, current.peers[0].told["reveal"])


@case(
    "survivors.without-late-ones",
    "Survivors are those who uploaded in time: one bit off, and a mask stays on.",
    STEP_4,
    kits=SECAGG,
)
def without_late_ones(world: World) -> None:
    current = world.secure.shared(dropouts.without_uploads)
    ids = [peer.peer_id for peer in current.peers[: dropouts.REAL]]
    for peer in current.peers[: dropouts.REAL]:
        expect_equal("survivors", peer.told["reveal"].survivors, current.cohort().bitmap(ids))


@case(
    "survivors.signature",
    "It covers the roster and both sets, so that two sets for one round are a proof.",
    STEP_4,
    kits=SECAGG,
)
def signature(world: World) -> None:
    for play in (dropouts.without_shares, dropouts.without_uploads):
        current = world.secure.shared(play)
        peer = current.peers[0]
        current.cohort().require_survivors_signed(world.manifest_key, peer.told["upload"].included, peer.told["reveal"])
