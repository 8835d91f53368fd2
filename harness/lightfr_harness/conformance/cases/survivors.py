"""Step 6 of secure aggregation: who uploaded, and the signatures that say that all were told the same."""

from __future__ import annotations

import os

from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.cohort import SIGNATURE_BYTES
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.masking import METHODS, REVEAL, SIGN_SURVIVORS
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_6 = "docs/secagg.md#6-sign-the-survivors"
STEP_7 = "docs/secagg.md#7-unmask"


def _begun(world: World) -> SecureRound:
    """A round in which the survivor set is to be signed."""
    current = world.secure.fresh()
    current.tell_all(SIGN_SURVIVORS)
    return current


@case("survivors.everybody", "The same set for all, since each reveals one kind of share by it.", STEP_6, kits=SECAGG)
def everybody(world: World) -> None:
    current = _begun(world)
    for peer in current.peers:
        expect_equal("survivors of 6", peer.told["survivors"].survivors, b"\x3f")
        expect_equal("what devices are told", peer.told["survivors"], current.peers[0].told["survivors"])
    expect_equal("the set when asked again", current.peers[0].ask().survivors, current.peers[0].told["survivors"])


@case(
    "survivors.without-late-ones",
    "Survivors are those who uploaded in time: one bit off, and a mask stays on.",
    STEP_6,
    kits=SECAGG,
)
def without_late_ones(world: World) -> None:
    for play in (dropouts.without_signatures, dropouts.without_uploads):
        current = world.secure.shared(play)
        ids = [peer.peer_id for peer in current.peers[: dropouts.REAL]]
        for peer in current.peers[: dropouts.REAL]:
            expect_equal("survivors", peer.told["survivors"].survivors, current.cohort().bitmap(ids))


@case(
    "survivors.signature",
    "It covers the roster and both sets, so that two sets for one round are a proof.",
    STEP_6,
    kits=SECAGG,
)
def signature(world: World) -> None:
    for play in (dropouts.without_shares, dropouts.without_uploads):
        current = world.secure.shared(play)
        told = current.peers[0].told
        current.cohort().require_survivors_signed(world.manifest_key, told["included"].included, told["survivors"])


@case("survivors.too-early", "Nobody can sign who uploaded before the uploads are in.", PHASES, kits=SECAGG)
def too_early(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    for method in METHODS[:5]:
        current.take_step(peer, method)
        peer.send(SIGN_SURVIVORS, dropouts.one_of_each(peer)[SIGN_SURVIVORS]).refusal("UPLOAD_INVALID")
        current.walk(method)
    current.walk(SIGN_SURVIVORS)


@case(
    "survivors.bad-signature", "A signature of anything else is no agreement about who survived.", PHASES, kits=SECAGG
)
def bad_signature(world: World) -> None:
    current = _begun(world)
    peer, cohort = current.peers[0], current.cohort()
    included, sign = peer.told["included"].included, peer.device.member.key.sign
    for false in (
        os.urandom(SIGNATURE_BYTES),
        sign(cohort.survivors_message(included, cohort.bits(range(5)))),
        sign(cohort.survivors_message(b"", included)),
        peer.good("SignIncluded").signature,
        current.peers[1].good(SIGN_SURVIVORS).signature,
    ):
        request = peer.good(SIGN_SURVIVORS)
        request.signature = false
        peer.send(SIGN_SURVIVORS, request).refusal("UPLOAD_INVALID")
    current.finish_exactly()


@case("survivors.signature-length", "Each signature has 64 bytes: the next one begins behind it.", PHASES, kits=SECAGG)
def signature_length(world: World) -> None:
    current = _begun(world)
    request = current.peers[0].good(SIGN_SURVIVORS)
    for size in (0, SIGNATURE_BYTES - 1, SIGNATURE_BYTES + 1):
        request.signature = bytes(size)
        current.peers[0].send(SIGN_SURVIVORS, request).refusal("MALFORMED")


@case("survivors.same-bytes-again", "Who did not hear that its signature has come sends it again.", PHASES, kits=SECAGG)
def same_bytes_again(world: World) -> None:
    current = _begun(world)
    for method in METHODS[5:]:
        current.walk(method)
        current.peers[0].deliver(SIGN_SURVIVORS)
    current.finish()
    current.peers[0].deliver(SIGN_SURVIVORS)


@case(
    "survivors.other-bytes",
    "A device that signs two survivor sets lets both kinds of masks come off.",
    PHASES,
    kits=SECAGG,
)
def other_bytes(world: World) -> None:
    current = _begun(world)
    current.peers[0].deliver(SIGN_SURVIVORS)
    other = current.peers[0].good(SIGN_SURVIVORS)
    other.signature = os.urandom(SIGNATURE_BYTES)
    for method in METHODS[5:]:
        current.peers[0].send(SIGN_SURVIVORS, other).refusal("UPLOAD_CONFLICT")
        current.walk(method)
    current.finish_exactly()


@case("survivors.too-late", "A quorum has signed: the others reveal without whoever comes now.", PHASES, kits=SECAGG)
def too_late(world: World) -> None:
    world.secure.shared(dropouts.without_confirmations).noted["late"].refusal("ROUND_CLOSED")


@case("survivors.missed", "Who did not upload is no survivor, and signs nothing.", PHASES, kits=SECAGG)
def missed(world: World) -> None:
    world.secure.shared(dropouts.without_uploads).noted["next"].refusal("ROUND_CLOSED")


@case(
    "survivors.quorum",
    "A device reveals when it has seen that a quorum signed the same survivors: each signature must fit.",
    STEP_7,
    kits=SECAGG,
)
def quorum(world: World) -> None:
    for play in (dropouts.without_shares, dropouts.without_uploads, dropouts.without_confirmations):
        current = world.secure.shared(play)
        cohort, first = current.cohort(), current.peers[0]
        survivors = first.told["survivors"].survivors
        message = cohort.survivors_message(first.told["included"].included, survivors)
        for peer in current.peers[: dropouts.REAL]:
            cohort.require_signers(peer.told["reveal"], survivors, message)
            expect_equal("what devices are told", peer.told["reveal"], first.told["reveal"])


@case("survivors.quorum-is-awaited", "One signature below the quorum, nobody is asked to reveal.", STEP_7, kits=SECAGG)
def quorum_is_awaited(world: World) -> None:
    current = _begun(world)
    first = current.peers[0]
    for peer in current.peers[: current.cohort().quorum - 1]:
        peer.deliver(SIGN_SURVIVORS)
        expect_equal("GetStep before a quorum has signed", first.ask().WhichOneof("step"), "wait_ms")
    current.walk(REVEAL)
