"""Step 4 of secure aggregation: who goes on, and the signatures that say that all were told the same."""

from __future__ import annotations

import os

from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.cohort import SIGNATURE_BYTES
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.masking import METHODS, SHARE, SIGN_INCLUDED, UPLOAD
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_4 = "docs/secagg.md#4-sign-the-included"
STEP_5 = "docs/secagg.md#5-mask-and-upload"


def _begun(world: World) -> SecureRound:
    """A round in which the included set is to be signed."""
    current = world.secure.fresh()
    current.tell_all(SIGN_INCLUDED)
    return current


@case(
    "included.everybody", "A bit too few, and a mask is missing; a bit too many, and one is left.", STEP_4, kits=SECAGG
)
def everybody(world: World) -> None:
    current = _begun(world)
    for peer in current.peers:
        expect_equal("included of 6", peer.told["included"].included, b"\x3f")
        expect_equal("what devices are told", peer.told["included"], current.peers[0].told["included"])
    expect_equal("the set when asked again", current.peers[0].ask().included, current.peers[0].told["included"])


@case("included.without-late-ones", "Included are those who shared and acknowledged in time.", STEP_4, kits=SECAGG)
def without_late_ones(world: World) -> None:
    for play in (dropouts.without_shares, dropouts.without_acknowledgements):
        current = world.secure.shared(play)
        ids = [peer.peer_id for peer in current.peers[: dropouts.REAL]]
        for peer in current.peers[: dropouts.REAL]:
            expect_equal("included", peer.told["included"].included, current.cohort().bitmap(ids))


@case(
    "included.signature",
    "The server must stand by the set that it tells: two sets are then a proof.",
    STEP_4,
    kits=SECAGG,
)
def signature(world: World) -> None:
    for play in (dropouts.without_shares, dropouts.without_acknowledgements):
        current = world.secure.shared(play)
        current.cohort().require_included_signed(world.manifest_key, current.peers[0].told["included"])


@case("included.too-early", "Before the set is settled there is nothing to sign.", PHASES, kits=SECAGG)
def too_early(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    for method in METHODS[:3]:
        current.take_step(peer, method)
        peer.send(SIGN_INCLUDED, dropouts.one_of_each(peer)[SIGN_INCLUDED]).refusal("UPLOAD_INVALID")
        current.walk(method)
    current.walk(SIGN_INCLUDED)


@case("included.bad-signature", "A signature that does not fit would make others leave the round.", PHASES, kits=SECAGG)
def bad_signature(world: World) -> None:
    current = _begun(world)
    peer, cohort = current.peers[0], current.cohort()
    included, sign = peer.told["included"].included, peer.device.member.key.sign
    other_set = cohort.bits(range(5))
    for false in (
        os.urandom(SIGNATURE_BYTES),
        sign(cohort.included_message(other_set)),
        sign(cohort.survivors_message(included, b"")),
        current.peers[1].good(SIGN_INCLUDED).signature,
    ):
        request = peer.good(SIGN_INCLUDED)
        request.signature = false
        peer.send(SIGN_INCLUDED, request).refusal("UPLOAD_INVALID")
    current.finish_exactly()


@case("included.signature-length", "A signature of another length is none.", PHASES, kits=SECAGG)
def signature_length(world: World) -> None:
    current = _begun(world)
    request = current.peers[0].good(SIGN_INCLUDED)
    for size in (0, SIGNATURE_BYTES - 1, SIGNATURE_BYTES + 1):
        request.signature = bytes(size)
        current.peers[0].send(SIGN_INCLUDED, request).refusal("MALFORMED")


@case("included.same-bytes-again", "A signature that was sent twice is one signature.", PHASES, kits=SECAGG)
def same_bytes_again(world: World) -> None:
    current = _begun(world)
    for method in METHODS[3:]:
        current.walk(method)
        current.peers[0].deliver(SIGN_INCLUDED)
    current.finish()
    current.peers[0].deliver(SIGN_INCLUDED)


@case("included.other-bytes", "A device signs one set in a round, and never another one.", PHASES, kits=SECAGG)
def other_bytes(world: World) -> None:
    current = _begun(world)
    current.peers[0].deliver(SIGN_INCLUDED)
    other = current.peers[0].good(SIGN_INCLUDED)
    other.signature = os.urandom(SIGNATURE_BYTES)
    for method in METHODS[3:]:
        current.peers[0].send(SIGN_INCLUDED, other).refusal("UPLOAD_CONFLICT")
        current.walk(method)
    current.finish_exactly()


@case("included.too-late", "The signers are settled: whoever comes now does not upload.", PHASES, kits=SECAGG)
def too_late(world: World) -> None:
    world.secure.shared(dropouts.without_signatures).noted["late"].refusal("ROUND_CLOSED")


@case("included.missed", "Who did not acknowledge is in no set that it could sign.", PHASES, kits=SECAGG)
def missed(world: World) -> None:
    world.secure.shared(dropouts.without_acknowledgements).noted["next"].refusal("ROUND_CLOSED")


@case(
    "included.quorum",
    "A device uploads when it has seen that a quorum signed the same set: each signature must fit.",
    STEP_5,
    kits=SECAGG,
)
def quorum(world: World) -> None:
    for play in (dropouts.without_shares, dropouts.without_signatures, dropouts.without_uploads):
        current = world.secure.shared(play)
        cohort, first = current.cohort(), current.peers[0]
        included = first.told["included"].included
        message = cohort.included_message(included)
        for peer in current.peers[: dropouts.REAL]:
            cohort.require_signers(peer.told["upload"], included, message)
            expect_equal("what devices are told", peer.told["upload"], first.told["upload"])


@case(
    "included.quorum-is-awaited",
    "One signature below the quorum, nobody is asked to upload.",
    STEP_5,
    kits=SECAGG,
)
def quorum_is_awaited(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(SIGN_INCLUDED)
    first, quorum = current.peers[0], current.cohort().quorum
    for peer in current.peers[: quorum - 1]:
        peer.deliver(SIGN_INCLUDED)
        expect_equal("GetStep before a quorum has signed", first.ask().WhichOneof("step"), "wait_ms")
    current.walk(UPLOAD)
    current.cohort().require_signers(
        first.told["upload"],
        first.told["included"].included,
        current.cohort().included_message(first.told["included"].included),
    )
    expect_equal("devices that shared", len(current.that_did(SHARE)), 6)
