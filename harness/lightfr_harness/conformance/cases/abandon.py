"""Rounds of secure aggregation that must end without a sum: no mask comes off, and nothing moves."""

from __future__ import annotations

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2
from lightfr_harness.conformance.cohort import ID_BYTES, records_of
from lightfr_harness.conformance.dropouts import RECORD_BYTES, false_share
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.masking import ADVERTISE, REVEAL, SHARE, UPLOAD, Peer
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_4 = "docs/secagg.md#4-unmask"


@case("abandon.too-few-keys", "In a cohort smaller than the minimum a sum would say too much.", PHASES, kits=SECAGG)
def too_few_keys(world: World) -> None:
    current = world.secure.fresh()
    current.leave(*current.peers[2:])
    current.walk(ADVERTISE)
    current.require_no_next_step()
    current.require_nothing_came_of_it()
    world.secure.fresh().finish_exactly()


@case(
    "abandon.too-few-shares",
    "Three are the minimum, but four shares are needed: the round cannot end well.",
    PHASES,
    kits=SECAGG,
)
def too_few_shares(world: World) -> None:
    current = world.secure.fresh()
    current.walk(ADVERTISE)
    current.leave(*current.peers[3:])
    current.walk(SHARE)
    current.require_no_next_step()
    current.require_nothing_came_of_it()


@case(
    "abandon.too-few-uploads",
    "Three vectors are not added up when four shares are needed to take the masks off.",
    PHASES,
    kits=SECAGG,
)
def too_few_uploads(world: World) -> None:
    current = world.secure.fresh()
    current.walk(SHARE)
    current.leave(*current.peers[3:])
    current.walk(UPLOAD)
    current.require_no_next_step()
    current.require_nothing_came_of_it()
    expect_equal("upload_count", current.status().upload_count, 3)
    # Receipts are kept, whatever has become of the round.
    current.peers[0].deliver(UPLOAD)
    current.peers[3].question().refusal("ROUND_CLOSED")
    world.secure.fresh().finish_exactly()


@case(
    "abandon.too-few-reveals",
    "One share below the threshold, a secret stays one, and so does the sum.",
    STEP_4,
    kits=SECAGG,
)
def too_few_reveals(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(REVEAL)
    current.leave(*current.peers[3:])
    current.walk(REVEAL)
    current.require_nothing_came_of_it()
    expect_equal("state", pb.RoundState.Name(current.status().state), "ROUND_STATE_ABANDONED")
    world.secure.fresh().finish_exactly()


@case(
    "abandon.false-share-first",
    "A false share must end the round: a wrong mask taken off is noise in every number.",
    STEP_4,
    kits=SECAGG,
)
def false_share_first(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(REVEAL)
    _reveal_falsely(current, _by_index(current)[0])
    current.require_nothing_came_of_it()


@case("abandon.false-share-last", "The shares beyond the threshold are there to be compared.", STEP_4, kits=SECAGG)
def false_share_last(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(REVEAL)
    _reveal_falsely(current, _by_index(current)[-1])
    current.require_nothing_came_of_it()


def _by_index(current: SecureRound) -> list[Peer]:
    return sorted(current.active, key=lambda peer: peer.peer_id)


def _reveal_falsely(current: SecureRound, liar: Peer) -> None:
    """All reveal by ascending index, one of them a false share of the first seed it does not own."""
    for peer in _by_index(current):
        request = peer.good(REVEAL)
        if peer is liar:
            records = records_of(request.self_masks, RECORD_BYTES)
            place = 0 if records[0][:ID_BYTES] != peer.peer_id else 1
            records[place] = false_share(records[place])
            request.self_masks = b"".join(records)
        peer.send(REVEAL, request).message(secure_pb2.RevealSharesResponse)


@case(
    "abandon.false-mask-key",
    "A mask key must belong to the public one in the roster, even if just enough shares came.",
    STEP_4,
    kits=SECAGG,
)
def false_mask_key(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(UPLOAD)
    current.leave(*current.peers[4:])
    current.tell_all(REVEAL)
    expect_equal("survivors", len(current.active), current.cohort().threshold)
    request = current.active[0].good(REVEAL)
    request.mask_keys = false_share(request.mask_keys[:RECORD_BYTES]) + request.mask_keys[RECORD_BYTES:]
    current.active[0].send(REVEAL, request).message(secure_pb2.RevealSharesResponse)
    current.walk(REVEAL)
    current.require_nothing_came_of_it()
    expect_equal("upload_count of an abandoned round", current.status().upload_count, 4)
    current.peers[0].send(REVEAL, request).refusal("ROUND_CLOSED")
    current.peers[0].question().refusal("ROUND_CLOSED")
    expect_equal("state", current.status().state, pb.ROUND_STATE_ABANDONED)
