"""Step 1 of secure aggregation: the keys."""

from __future__ import annotations

import os
import time

from lightfr.v1 import secure_pb2
from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.cohort import KEY_BYTES
from lightfr_harness.conformance.masking import ADVERTISE, METHODS, SHARE, Peer
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_1 = "docs/secagg.md#1-advertise"
STEP_2 = "docs/secagg.md#2-share"

# u-coordinates with which X25519 gives zeros whatever the other key is (RFC 7748, section 6.1), little-endian.
LOW_ORDER = [
    bytes.fromhex(point)
    for point in (
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        # Zero again: X25519 does not look at the highest bit.
        "0000000000000000000000000000000000000000000000000000000000000080",
    )
]


def _signed(peer: Peer, **changes: bytes) -> secure_pb2.AdvertiseKeysRequest:
    """What a good device advertises, with other keys, which it has signed."""
    request: secure_pb2.AdvertiseKeysRequest = peer.good(ADVERTISE)
    for field, value in changes.items():
        setattr(request, field, value)
    keys = request.mask_public_key + request.share_public_key
    message = b"lightfr entry v1\n" + peer.round_id + peer.peer_id + keys
    request.signature = peer.device.member.key.sign(message)
    return request


def _require_good_keys(current: SecureRound) -> None:
    """The good keys are accepted afterwards, and nothing of the refused ones is in the roster."""
    current.tell_all(SHARE)
    current.cohort().require_entries(peer.entry for peer in current.peers)


@case("advertise.same-bytes-again", "An answer that was lost must not cost the device its place.", PHASES, kits=SECAGG)
def same_bytes_again(world: World) -> None:
    current = world.secure.fresh()
    for method in METHODS:
        current.walk(method)
        current.peers[0].deliver(ADVERTISE)


@case(
    "advertise.other-keys", "Keys that change after others have seen them would split the cohort.", PHASES, kits=SECAGG
)
def other_keys(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    peer.deliver(ADVERTISE)
    others = peer.good(ADVERTISE)
    others.mask_public_key = os.urandom(32)
    peer.send(ADVERTISE, others).refusal("UPLOAD_CONFLICT")
    current.tell_all(SHARE)
    peer.send(ADVERTISE, others).refusal("UPLOAD_CONFLICT")
    current.finish()
    peer.send(ADVERTISE, others).refusal("UPLOAD_CONFLICT")


@case(
    "advertise.length",
    "A key, a membership or a signature of another length is none.",
    "proto/lightfr/v1/secure.proto#AdvertiseKeysRequest",
    kits=SECAGG,
)
def length(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    for field in ("mask_public_key", "share_public_key", "membership", "signature"):
        right = len(getattr(peer.good(ADVERTISE), field))
        for size in (0, right - 1, right + 1):
            request = peer.good(ADVERTISE)
            setattr(request, field, os.urandom(size))
            peer.send(ADVERTISE, request).refusal("MALFORMED")
    _require_good_keys(current)


@case("advertise.low-order", "With such a key every device would share the same, known mask.", STEP_1, kits=SECAGG)
def low_order(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    for field in ("mask_public_key", "share_public_key"):
        for point in LOW_ORDER:
            peer.send(ADVERTISE, _signed(peer, **{field: point})).refusal("UPLOAD_INVALID")
    _require_good_keys(current)


@case("advertise.one-key-twice", "A key with two purposes is two secrets in one.", STEP_2, kits=SECAGG)
def one_key_twice(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    good, member_key = peer.good(ADVERTISE), peer.device.member.key.public
    for changes in (
        {"share_public_key": good.mask_public_key},
        {"mask_public_key": member_key},
        {"share_public_key": member_key},
    ):
        peer.send(ADVERTISE, _signed(peer, **changes)).refusal("UPLOAD_INVALID")
    _require_good_keys(current)


@case(
    "advertise.key-of-another",
    "With a key twice in it every device refuses the roster: one could stop all.",
    STEP_2,
    kits=SECAGG,
)
def key_of_another(world: World) -> None:
    current = world.secure.fresh()
    other, peer = current.peers[:2]
    other.deliver(ADVERTISE)
    taken = other.good(ADVERTISE)
    for field in ("mask_public_key", "share_public_key"):
        for key in (taken.mask_public_key, taken.share_public_key, taken.membership[:KEY_BYTES]):
            peer.send(ADVERTISE, _signed(peer, **{field: key})).refusal("UPLOAD_INVALID")
    _require_good_keys(current)


@case(
    "advertise.member-key-taken",
    "Member keys are known from rosters of before: one that somebody has taken for a mask key must not come in twice.",
    STEP_2,
    kits=SECAGG,
)
def member_key_taken(world: World) -> None:
    current = world.secure.with_newcomer()
    liar, victim = current.peers[-1], current.peers[0]
    taken = _signed(liar, mask_public_key=victim.device.member.key.public)
    liar.send(ADVERTISE, taken).message(secure_pb2.AdvertiseKeysResponse)
    victim.send(ADVERTISE, victim.good(ADVERTISE)).refusal("UPLOAD_INVALID")
    # The liar does not know the private half, and could do no more.
    current.leave(*current.peers)
    current.require_nothing_came_of_it()


@case("advertise.too-late", "The roster is settled and signed: nobody comes in afterwards.", PHASES, kits=SECAGG)
def too_late(world: World) -> None:
    world.secure.shared(dropouts.without_keys).noted["late"].refusal("ROUND_CLOSED")


@case(
    "advertise.member-of-another",
    "Who shows the membership of another device must not stand in the roster twice.",
    STEP_1,
    kits=SECAGG,
)
def member_of_another(world: World) -> None:
    current = world.secure.fresh()
    other, peer = current.peers[:2]
    stolen = other.good(ADVERTISE).membership
    peer.send(ADVERTISE, _signed(peer, membership=stolen)).refusal("UPLOAD_INVALID")
    other.deliver(ADVERTISE)
    peer.send(ADVERTISE, _signed(peer, membership=stolen)).refusal("UPLOAD_INVALID")
    _require_good_keys(current)


@case(
    "advertise.membership",
    "A device for which the authority does not vouch, or not any more, would make its neighbours leave.",
    STEP_1,
    kits=SECAGG,
)
def membership(world: World) -> None:
    current = world.secure.fresh()
    peer, key = current.peers[0], current.peers[0].device.member.key.public
    good, now = peer.device.member.membership, int(time.time())
    longer = key + (now + 10**9).to_bytes(8, "little") + good[40:]
    for false in (good[:-1] + bytes([good[-1] ^ 1]), longer, world.kit.membership(key, now - 60)):
        peer.send(ADVERTISE, _signed(peer, membership=false)).refusal("UPLOAD_INVALID")
    _require_good_keys(current)


@case(
    "advertise.signature",
    "Keys that the device has not signed for this round could be the server's own.",
    STEP_1,
    kits=SECAGG,
)
def signature(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    keys = peer.good(ADVERTISE).mask_public_key + peer.good(ADVERTISE).share_public_key
    sign, label = peer.device.member.key.sign, b"lightfr entry v1\n"
    for message in (
        label + os.urandom(16) + peer.peer_id + keys,
        label + peer.round_id + os.urandom(16) + keys,
        label + peer.round_id + peer.peer_id + keys[::-1],
        peer.round_id + peer.peer_id + keys,
    ):
        request = peer.good(ADVERTISE)
        request.signature = sign(message)
        peer.send(ADVERTISE, request).refusal("UPLOAD_INVALID")
    _require_good_keys(current)
