"""Step 3 of secure aggregation: which shares did not open, and whom the server leaves out for it."""

from __future__ import annotations

from collections.abc import Iterable

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2
from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.expectations import expect, expect_equal
from lightfr_harness.conformance.masking import ACKNOWLEDGE, METHODS, SIGN_INCLUDED, Peer
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_3 = "docs/secagg.md#3-acknowledge"
CHECK_IN = "docs/protocol.md#rounds"
# Faults after which our coordinator gives a device no more places; others may have more patience, but not without end.
MOST_FAULTS = 8


def _begun(world: World) -> SecureRound:
    """A round in which shares are to be acknowledged."""
    current = world.secure.fresh()
    current.tell_all(ACKNOWLEDGE)
    return current


def _complain(current: SecureRound, peer: Peer, about: Iterable[Peer]) -> None:
    """Let a peer say that it could not open the good shares of some."""
    cohort = current.cohort()
    peer.slandered = {cohort.index_of(one.peer_id) for one in about}
    request = peer.good(ACKNOWLEDGE)
    request.unopened = cohort.bits(peer.slandered)
    peer.send(ACKNOWLEDGE, request).message(secure_pb2.AcknowledgeSharesResponse)


def _require_included(current: SecureRound, included: list[Peer]) -> None:
    """All of these go on and come to the right sum; whoever is left out is told."""
    expected = current.cohort().bitmap([peer.peer_id for peer in included])
    left_out = [peer for peer in current.peers if peer not in included]
    current.leave(*left_out)
    current.tell_all(SIGN_INCLUDED)
    for peer in current.active:
        expect_equal("included", peer.told["included"].included, expected)
    for peer in left_out:
        peer.question().refusal("ROUND_CLOSED")
        peer.send(SIGN_INCLUDED, dropouts.one_of_each(peer)[SIGN_INCLUDED]).refusal("ROUND_CLOSED")
    current.finish_exactly()


@case("acknowledge.too-early", "Nobody can say what does not open before it has come.", PHASES, kits=SECAGG)
def too_early(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    for method in METHODS[:2]:
        current.take_step(peer, method)
        peer.send(ACKNOWLEDGE, dropouts.one_of_each(peer)[ACKNOWLEDGE]).refusal("UPLOAD_INVALID")
        current.walk(method)
    current.walk(ACKNOWLEDGE)


@case(
    "acknowledge.same-bytes-again", "Who did not hear that its complaint has come complains again.", PHASES, kits=SECAGG
)
def same_bytes_again(world: World) -> None:
    current = _begun(world)
    for method in METHODS[2:]:
        current.walk(method)
        current.peers[0].deliver(ACKNOWLEDGE)
    current.finish()
    current.peers[0].deliver(ACKNOWLEDGE)


@case("acknowledge.other-bytes", "A complaint that changes would change who goes on.", PHASES, kits=SECAGG)
def other_bytes(world: World) -> None:
    current = _begun(world)
    peer = current.peers[0]
    peer.deliver(ACKNOWLEDGE)
    others = peer.good(ACKNOWLEDGE)
    others.unopened = current.cohort().bits([(current.cohort().index_of(peer.peer_id) + 1) % 6])
    for method in METHODS[2:]:
        peer.send(ACKNOWLEDGE, others).refusal("UPLOAD_CONFLICT")
        current.walk(method)
    current.finish_exactly()


@case(
    "acknowledge.content",
    "A bit for each device of the roster, and only for those that sent something.",
    PHASES,
    kits=SECAGG,
)
def content(world: World) -> None:
    current = _begun(world)
    peer = current.peers[0]
    own = current.cohort().bits([current.cohort().index_of(peer.peer_id)])
    for unopened in (b"", b"\0\0", b"\x40", b"\x80", own):
        request = peer.good(ACKNOWLEDGE)
        request.unopened = unopened
        peer.send(ACKNOWLEDGE, request).refusal("UPLOAD_INVALID")
    current.finish_exactly()


@case(
    "acknowledge.about-who-sent-nothing", "A complaint about who did not share is about nothing.", PHASES, kits=SECAGG
)
def about_who_sent_nothing(world: World) -> None:
    current = world.secure.shared(dropouts.without_shares)
    current.noted["a complaint about nothing"].refusal("UPLOAD_INVALID")


@case(
    "acknowledge.too-late",
    "Who goes on is settled and signed: a complaint changes nothing any more.",
    PHASES,
    kits=SECAGG,
)
def too_late(world: World) -> None:
    world.secure.shared(dropouts.without_acknowledgements).noted["late"].refusal("ROUND_CLOSED")


@case("acknowledge.missed-shares", "Who did not share has no part in what follows.", PHASES, kits=SECAGG)
def missed_shares(world: World) -> None:
    world.secure.shared(dropouts.without_shares).noted["next"].refusal("ROUND_CLOSED")


@case(
    "acknowledge.few-complaints",
    "One complaint, true or false, must not throw anybody out, and the sum is right without that share.",
    STEP_3,
    kits=SECAGG,
)
def few_complaints(world: World) -> None:
    current = _begun(world)
    _complain(current, current.peers[0], current.peers[1:2])
    _complain(current, current.peers[2], current.peers[3:5])
    _require_included(current, current.peers)


@case(
    "acknowledge.one-share-spoiled",
    "A share that one holder cannot open is no reason to end a round, or to leave anybody out.",
    STEP_3,
    kits=SECAGG,
)
def one_share_spoiled(world: World) -> None:
    current = world.secure.fresh()
    current.spoil_shares(current.peers[0], current.peers[1:2])
    _require_included(current, current.peers)


@case(
    "acknowledge.shares-spoiled",
    "A device that deals shares that do not open is left out, and the others go on: one must not stop all.",
    STEP_3,
    kits=SECAGG,
)
def shares_spoiled(world: World) -> None:
    for count in (2, 5):
        current = world.secure.with_newcomer()
        current.spoil_shares(current.peers[-1], current.peers[:count])
        current.walk(ACKNOWLEDGE)
        _require_included(current, current.peers[:-1])


@case(
    "acknowledge.too-few-opened",
    "A device of which too few shares opened cannot go on: nobody could put its secrets together again.",
    STEP_3,
    kits=SECAGG,
)
def too_few_opened(world: World) -> None:
    current = _begun(world)
    _complain(current, current.peers[0], current.peers[1:2])
    # Four acknowledge, and four shares of each opened, its own among them; of the second device there are three.
    current.leave(*current.peers[dropouts.REAL :])
    current.walk(ACKNOWLEDGE)
    # The three who are left are no quorum.
    current.require_no_next_step()
    current.require_nothing_came_of_it()


@case(
    "acknowledge.slander",
    "A device that complains about most of the others is left out, and is not believed.",
    STEP_3,
    kits=SECAGG,
)
def slander(world: World) -> None:
    for count in (3, 5):
        current = world.secure.with_newcomer()
        current.tell_all(ACKNOWLEDGE)
        _complain(current, current.peers[-1], current.peers[:count])
        _require_included(current, current.peers[:-1])


@case(
    "acknowledge.slander-does-not-count",
    "The complaints of a slanderer must not add to those of others.",
    STEP_3,
    kits=SECAGG,
)
def slander_does_not_count(world: World) -> None:
    current = world.secure.with_newcomer()
    current.tell_all(ACKNOWLEDGE)
    _complain(current, current.peers[-1], current.peers[:3])
    _complain(current, current.peers[1], current.peers[:1])
    _require_included(current, current.peers[:-1])


@case(
    "acknowledge.faulty",
    "A device whose deliveries do not fit round after round must not have places for ever.",
    CHECK_IN,
    kits=SECAGG,
)
def faulty(world: World) -> None:
    places, villain = world.kit.settings.places, world.newcomer()
    for _ in range(MOST_FAULTS):
        world.secure.end_last()
        answer = world.check_in(villain)
        if answer.HasField("retry_window"):
            expect_equal("reason", pb.RetryReason.Name(answer.retry_window.reason), "RETRY_REASON_FAULTY")
            # A place that the villain does not get is free for others.
            world.secure.fresh().finish_exactly()
            return
        current = world.secure.fresh(devices=[villain, *world.devices(places - 1)])
        current.spoil_shares(current.peers[0], current.peers[1:])
        current.walk(ACKNOWLEDGE)
        current.leave(current.peers[0])
        current.finish_exactly()
    expect(False, f"no place any more for a device that was faulty {MOST_FAULTS} times", "a place each time")
