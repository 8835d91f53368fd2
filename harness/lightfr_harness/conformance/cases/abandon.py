"""Rounds of secure aggregation that must end without a sum: no mask comes off, and nothing moves."""

from __future__ import annotations

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2
from lightfr_harness.conformance.cohort import REVEALED_RECORD_BYTES, owner_of, records_of
from lightfr_harness.conformance.dropouts import false_share
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.masking import (
    ACKNOWLEDGE,
    ADVERTISE,
    METHODS,
    REVEAL,
    SHARE,
    SIGN_INCLUDED,
    SIGN_SURVIVORS,
    UPLOAD,
)
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_7 = "docs/secagg.md#7-unmask"
# One below the quorum of six, and as many as the minimum.
TOO_FEW = 3


@case("abandon.too-few-keys", "In a cohort smaller than the minimum a sum would say too much.", PHASES, kits=SECAGG)
def too_few_keys(world: World) -> None:
    current = world.secure.fresh()
    current.leave(*current.peers[TOO_FEW - 1 :])
    current.walk(ADVERTISE)
    current.require_no_next_step()
    current.require_nothing_came_of_it()
    world.secure.fresh().finish_exactly()


def _require_abandoned(world: World, method: str) -> SecureRound:
    """Three of six do this step: the minimum, but no quorum."""
    current = world.secure.fresh()
    current.tell_all(method)
    current.leave(*current.peers[TOO_FEW:])
    current.walk(method)
    current.require_no_next_step()
    current.require_nothing_came_of_it()
    # What was delivered is remembered, whatever has become of the round.
    for delivered in METHODS[: METHODS.index(method) + 1]:
        current.peers[0].deliver(delivered)
    current.peers[TOO_FEW].question().refusal("ROUND_CLOSED")
    return current


@case("abandon.too-few-shares", "Three are the minimum, but no quorum of six.", PHASES, kits=SECAGG)
def too_few_shares(world: World) -> None:
    _require_abandoned(world, SHARE)


@case("abandon.too-few-acknowledgements", "Whose shares nobody has opened cannot go on.", PHASES, kits=SECAGG)
def too_few_acknowledgements(world: World) -> None:
    _require_abandoned(world, ACKNOWLEDGE)


@case("abandon.too-few-signatures", "No quorum has agreed to who is included, so nobody uploads.", PHASES, kits=SECAGG)
def too_few_signatures(world: World) -> None:
    current = _require_abandoned(world, SIGN_INCLUDED)
    expect_equal("upload_count", current.status().upload_count, 0)


@case("abandon.too-few-uploads", "Three vectors of six devices are not added up.", PHASES, kits=SECAGG)
def too_few_uploads(world: World) -> None:
    current = _require_abandoned(world, UPLOAD)
    expect_equal("upload_count", current.status().upload_count, TOO_FEW)
    world.secure.fresh().finish_exactly()


@case("abandon.too-few-confirmations", "No quorum has agreed to who survived, so nobody reveals.", PHASES, kits=SECAGG)
def too_few_confirmations(world: World) -> None:
    current = _require_abandoned(world, SIGN_SURVIVORS)
    expect_equal("upload_count", current.status().upload_count, len(current.peers))


@case(
    "abandon.too-few-reveals",
    "One share below the threshold, a secret stays one, and so does the sum.",
    STEP_7,
    kits=SECAGG,
)
def too_few_reveals(world: World) -> None:
    current = _without_reveals(world)
    current.require_nothing_came_of_it()
    current.peers[0].deliver(REVEAL)
    current.peers[TOO_FEW].question().refusal("ROUND_CLOSED")
    world.secure.fresh().finish_exactly()


@case(
    "abandon.new-version",
    "Devices that have revealed do so once for a version: the same codes need a new number.",
    PHASES,
    kits=SECAGG,
)
def new_version(world: World) -> None:
    before = world.manifest()
    current = _without_reveals(world)
    current.require_end(pb.ROUND_STATE_ABANDONED)
    after = world.manifest()
    expect_equal(
        "model_version after a round that was abandoned while revealing", after.model_version, before.model_version + 1
    )
    expect_equal("SHA-256 of the codes", after.codes.sha256, before.codes.sha256)
    expect_equal("mean_user", after.model.mean_user, before.model.mean_user)
    following = world.secure.fresh()
    expect_equal("model_version of the next round", following.peers[0].assignment.model_version, after.model_version)
    following.finish_exactly()


def _without_reveals(world: World) -> SecureRound:
    """A round in which too few reveal, until its end. No device of it is in another one."""
    current = world.secure.of_newcomers()
    current.tell_all(REVEAL)
    current.leave(*current.peers[TOO_FEW:])
    current.walk(REVEAL)
    current.wait()
    return current


@case(
    "abandon.false-shares",
    "Two false shares of six cannot be told from true ones: a wrong mask taken off is noise in every number.",
    STEP_7,
    kits=SECAGG,
)
def false_shares(world: World) -> None:
    current = world.secure.of_newcomers()
    current.tell_all(REVEAL)
    victim = current.cohort().index_of(current.peers[0].peer_id)
    for peer in current.peers:
        request = peer.good(REVEAL)
        if peer in current.peers[1:3]:
            records = records_of(request.seeds, REVEALED_RECORD_BYTES)
            request.seeds = b"".join(false_share(one) if owner_of(one) == victim else one for one in records)
        peer.send(REVEAL, request).message(secure_pb2.RevealSharesResponse)
    current.require_nothing_came_of_it()


@case(
    "abandon.false-mask-key",
    "A mask key must belong to the public one in the roster, even if just enough shares came.",
    STEP_7,
    kits=SECAGG,
)
def false_mask_key(world: World) -> None:
    current = world.secure.of_newcomers()
    current.tell_all(UPLOAD)
    current.leave(*current.peers[4:])
    current.tell_all(REVEAL)
    expect_equal("survivors", len(current.active), current.cohort().threshold)
    request = current.active[0].good(REVEAL)
    first = false_share(request.mask_keys[:REVEALED_RECORD_BYTES])
    request.mask_keys = first + request.mask_keys[REVEALED_RECORD_BYTES:]
    current.active[0].send(REVEAL, request).message(secure_pb2.RevealSharesResponse)
    current.walk(REVEAL)
    current.require_nothing_came_of_it()
    expect_equal("upload_count of an abandoned round", current.status().upload_count, 4)
    current.active[0].send(REVEAL, request).message(secure_pb2.RevealSharesResponse)
