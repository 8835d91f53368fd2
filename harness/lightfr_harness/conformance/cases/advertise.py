"""Step 1 of secure aggregation: the keys."""

from __future__ import annotations

import os

from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.masking import ADVERTISE, SHARE, UPLOAD
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
CHECK_IN = "docs/protocol.md#rounds"
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


def _require_good_keys(current: SecureRound) -> None:
    """The good keys are accepted afterwards, and nothing of the refused ones is in the roster."""
    current.tell_all(SHARE)
    current.cohort().require_entries(peer.entry for peer in current.peers)


@case("advertise.same-bytes-again", "An answer that was lost must not cost the device its place.", PHASES, kits=SECAGG)
def same_bytes_again(world: World) -> None:
    current = world.secure.fresh()
    for method in (ADVERTISE, SHARE, UPLOAD):
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


@case(
    "advertise.key-length",
    "A key of another length is no key.",
    "proto/lightfr/v1/secure.proto#AdvertiseKeysRequest",
    kits=SECAGG,
)
def key_length(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    for field in ("mask_public_key", "share_public_key"):
        for size in (0, 31, 33):
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
            request = peer.good(ADVERTISE)
            setattr(request, field, point)
            peer.send(ADVERTISE, request).refusal("UPLOAD_INVALID")
    _require_good_keys(current)


@case("advertise.one-key-twice", "A key with two purposes is two secrets in one.", STEP_2, kits=SECAGG)
def one_key_twice(world: World) -> None:
    current = world.secure.fresh()
    request = current.peers[0].good(ADVERTISE)
    request.share_public_key = request.mask_public_key
    current.peers[0].send(ADVERTISE, request).refusal("UPLOAD_INVALID")
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
        for key in (taken.mask_public_key, taken.share_public_key):
            request = peer.good(ADVERTISE)
            setattr(request, field, key)
            peer.send(ADVERTISE, request).refusal("UPLOAD_INVALID")
    _require_good_keys(current)


@case("advertise.too-late", "The roster is settled and signed: nobody comes in afterwards.", PHASES, kits=SECAGG)
def too_late(world: World) -> None:
    world.secure.shared(dropouts.without_keys).noted["keys"].refusal("ROUND_CLOSED")
