"""Step 2 of secure aggregation: sealed shares, and who is included."""

from __future__ import annotations

import os

from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.cohort import SEALED_BYTES, Cohort, records_of, sealed_by_receiver
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.masking import ADVERTISE, SHARE, UPLOAD
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_2 = "docs/secagg.md#2-share"
STEP_3 = "docs/secagg.md#3-mask-and-upload"
RECORD_BYTES = 4 + SEALED_BYTES


def _begun(world: World) -> tuple[SecureRound, list[bytes]]:
    """A round in which shares are due, and the good records of its first device."""
    current = world.secure.fresh()
    current.tell_all(SHARE)
    return current, records_of(current.peers[0].good(SHARE).sealed_shares, RECORD_BYTES)


def _require_refused(current: SecureRound, *spoiled: list[bytes]) -> None:
    """Each is refused, the good ones are accepted afterwards, and nothing else reaches anybody."""
    peer = current.peers[0]
    for records in spoiled:
        request = peer.good(SHARE)
        request.sealed_shares = b"".join(records)
        peer.send(SHARE, request).refusal("UPLOAD_INVALID")
    current.tell_all(UPLOAD)
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
    "A device whose answer was lost shares again, and its neighbours get each share once.",
    PHASES,
    kits=SECAGG,
)
def same_bytes_again(world: World) -> None:
    current = world.secure.fresh()
    for method in (SHARE, UPLOAD):
        current.walk(method)
        current.peers[0].deliver(SHARE)
    _require_inboxes(current)


@case(
    "share.other-bytes",
    "Neighbours may have opened the first ones; two sets of shares fit no secret.",
    PHASES,
    kits=SECAGG,
)
def other_bytes(world: World) -> None:
    current, records = _begun(world)
    peer, others = current.peers[0], current.peers[0].good(SHARE)
    peer.deliver(SHARE)
    others.sealed_shares = b"".join(records[:-1]) + records[-1][:4] + os.urandom(SEALED_BYTES)
    peer.send(SHARE, others).refusal("UPLOAD_CONFLICT")
    current.tell_all(UPLOAD)
    peer.send(SHARE, others).refusal("UPLOAD_CONFLICT")
    _require_inboxes(current)


@case("share.missing", "A neighbour without its share could not help when this device vanishes.", PHASES, kits=SECAGG)
def missing(world: World) -> None:
    current, records = _begun(world)
    _require_refused(current, records[1:], records[:-1], records[:2] + records[3:], [])


@case("share.extra", "A share for who is no neighbour, or for oneself, has no receiver.", PHASES, kits=SECAGG)
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


@case("share.twice", "Of two shares for one neighbour nobody can say which one counts.", PHASES, kits=SECAGG)
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


@case("share.too-late", "The included set is settled: masks are made for it.", PHASES, kits=SECAGG)
def too_late(world: World) -> None:
    world.secure.shared(dropouts.without_shares).noted["shares"].refusal("ROUND_CLOSED")


@case("share.missed-keys", "Who sent no keys is in no roster and shares nothing.", PHASES, kits=SECAGG)
def missed_keys(world: World) -> None:
    world.secure.shared(dropouts.without_keys).noted["shares"].refusal("ROUND_CLOSED")


@case(
    "included.everybody", "A bit too few, and a mask is missing; a bit too many, and one is left.", STEP_3, kits=SECAGG
)
def everybody(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(UPLOAD)
    for peer in current.peers:
        expect_equal("included of 6", peer.told["upload"].included, b"\x3f")


@case(
    "included.without-late-ones",
    "Included are those whose shares arrived in time, and nobody else.",
    STEP_3,
    kits=SECAGG,
)
def without_late_ones(world: World) -> None:
    current = world.secure.shared(dropouts.without_shares)
    ids = [peer.peer_id for peer in current.peers[: dropouts.REAL]]
    for peer in current.peers[: dropouts.REAL]:
        expect_equal("included", peer.told["upload"].included, current.cohort().bitmap(ids))


@case(
    "included.inbox",
    "What was sealed for a neighbour arrives there unchanged, named by its sender.",
    STEP_3,
    kits=SECAGG,
)
def inbox(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(UPLOAD)
    _require_inboxes(current)


@case("included.inbox-without-late-ones", "A share of who is not included would hang in the air.", STEP_3, kits=SECAGG)
def inbox_without_late_ones(world: World) -> None:
    _require_inboxes(world.secure.shared(dropouts.without_shares))


def _require_inboxes(current: SecureRound) -> None:
    cohort: Cohort = current.cohort()
    sharing = current.that_did(SHARE)
    sent = {cohort.index_of(peer.peer_id): sealed_by_receiver(peer.good(SHARE)) for peer in sharing}
    for peer in sharing:
        cohort.require_inbox(peer.told["upload"], cohort.index_of(peer.peer_id), sent)
