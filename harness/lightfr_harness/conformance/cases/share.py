"""Step 2 of secure aggregation: sealed shares, and who gets them."""

from __future__ import annotations

import os

from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.cohort import SEALED_BYTES, SEALED_RECORD_BYTES, records_of, sealed_by_receiver
from lightfr_harness.conformance.masking import ACKNOWLEDGE, ADVERTISE, METHODS, SHARE
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_2 = "docs/secagg.md#2-share"
STEP_3 = "docs/secagg.md#3-acknowledge"


def _begun(world: World) -> tuple[SecureRound, list[bytes]]:
    """A round in which shares are due, and the good records of its first device."""
    current = world.secure.fresh()
    current.tell_all(SHARE)
    return current, records_of(current.peers[0].good(SHARE).sealed_shares, SEALED_RECORD_BYTES)


def _require_refused(current: SecureRound, *spoiled: list[bytes]) -> None:
    """Each is refused, the good ones are accepted afterwards, and nothing else reaches anybody."""
    peer = current.peers[0]
    for records in spoiled:
        request = peer.good(SHARE)
        request.sealed_shares = b"".join(records)
        peer.send(SHARE, request).refusal("UPLOAD_INVALID")
    current.tell_all(ACKNOWLEDGE)
    _require_inboxes(current)


def _indexed(index: int) -> bytes:
    return index.to_bytes(4, "little") + os.urandom(SEALED_BYTES)


@case("share.too-early", "Shares are sealed for a roster, and there is none yet.", PHASES, kits=SECAGG)
def too_early(world: World) -> None:
    current = world.secure.fresh()
    current.peers[0].deliver(ADVERTISE)
    request = dropouts.any_shares(current.peers[0], len(current.peers))
    current.peers[0].send(SHARE, request).refusal("UPLOAD_INVALID")
    current.walk(SHARE)


@case(
    "share.same-bytes-again",
    "A device whose answer was lost shares again, and its holders get each share once.",
    PHASES,
    kits=SECAGG,
)
def same_bytes_again(world: World) -> None:
    current = world.secure.fresh()
    for method in METHODS[1:]:
        current.walk(method)
        current.peers[0].deliver(SHARE)
    _require_inboxes(current)


@case(
    "share.other-bytes",
    "Holders may have opened the first ones; two sets of shares fit no secret.",
    PHASES,
    kits=SECAGG,
)
def other_bytes(world: World) -> None:
    current, records = _begun(world)
    peer, others = current.peers[0], current.peers[0].good(SHARE)
    peer.deliver(SHARE)
    others.sealed_shares = b"".join(records[:-1]) + records[-1][:4] + os.urandom(SEALED_BYTES)
    peer.send(SHARE, others).refusal("UPLOAD_CONFLICT")
    current.tell_all(ACKNOWLEDGE)
    peer.send(SHARE, others).refusal("UPLOAD_CONFLICT")
    _require_inboxes(current)


@case("share.missing", "A neighbour without its share could not help when this device vanishes.", PHASES, kits=SECAGG)
def missing(world: World) -> None:
    current, records = _begun(world)
    _require_refused(current, records[1:], records[:-1], records[:2] + records[3:], [])


@case("share.extra", "A share for who is not in the roster, or for oneself, has no holder.", PHASES, kits=SECAGG)
def extra(world: World) -> None:
    current, records = _begun(world)
    own = current.cohort().index_of(current.peers[0].peer_id)
    beyond = [_indexed(len(current.peers)), _indexed(2**32 - 1)]
    _require_refused(
        current,
        sorted([*records, _indexed(own)]),
        *([*records, one] for one in beyond),
        *([*records[:-1], one] for one in beyond),
    )


@case("share.twice", "Of two shares for one holder nobody can say which one counts.", PHASES, kits=SECAGG)
def twice(world: World) -> None:
    current, records = _begun(world)
    _require_refused(current, [records[0], *records], [records[0], *records[:-1]])


@case("share.order", "One order for all, so that the same shares are the same bytes.", PHASES, kits=SECAGG)
def order(world: World) -> None:
    current, records = _begun(world)
    _require_refused(current, records[::-1], [records[1], records[0], *records[2:]])


@case("share.length", "Records have one size; a byte more or less moves all that follow.", PHASES, kits=SECAGG)
def length(world: World) -> None:
    current, records = _begun(world)
    _require_refused(current, [*records, b"\0"], [*records[:-1], records[-1][:-1]], [records[0][:-1], *records[1:]])


@case("share.too-late", "Others have opened what they got: nothing more is passed on.", PHASES, kits=SECAGG)
def too_late(world: World) -> None:
    world.secure.shared(dropouts.without_shares).noted["late"].refusal("ROUND_CLOSED")


@case("share.missed-keys", "Who sent no keys is in no roster and shares nothing.", PHASES, kits=SECAGG)
def missed_keys(world: World) -> None:
    world.secure.shared(dropouts.without_keys).noted["next"].refusal("ROUND_CLOSED")


@case(
    "share.inbox",
    "What was sealed for a holder arrives there unchanged, named by its sender.",
    STEP_3,
    kits=SECAGG,
)
def inbox(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(ACKNOWLEDGE)
    _require_inboxes(current)


@case("share.inbox-without-late-ones", "A share that came too late would hang in the air.", STEP_3, kits=SECAGG)
def inbox_without_late_ones(world: World) -> None:
    _require_inboxes(world.secure.shared(dropouts.without_shares))


def _require_inboxes(current: SecureRound) -> None:
    cohort, sharing = current.cohort(), current.that_did(SHARE)
    sent = {cohort.index_of(peer.peer_id): sealed_by_receiver(peer.good(SHARE)) for peer in sharing}
    for peer in sharing:
        cohort.require_inbox(peer.told["acknowledge"], cohort.index_of(peer.peer_id), sent)
