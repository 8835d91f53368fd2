"""What a server must still know when it was killed and started again: these need a --restart-command."""

from __future__ import annotations

import os

from lightfr.membership import MemberKey
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import enrollment_pb2, secure_pb2
from lightfr_harness.conformance.expectations import expect, expect_equal
from lightfr_harness.conformance.kit import make_signing_request
from lightfr_harness.conformance.masking import KINDS, METHODS, REVEAL, SIGN_INCLUDED, SIGN_SURVIVORS
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.versions import artifacts_of, require_twin
from lightfr_harness.conformance.world import World
from lightfr_harness.server.authority.certificates import new_key

PLACE = "docs/protocol.md#durability"
CLEAR, SECAGG, SMALL = ("clear",), ("secagg",), ("clear", "secagg")


@case(
    "restart.version", "What devices hold must not be forgotten, nor signed anew with other bytes.", PLACE, kits=SMALL
)
def version(world: World) -> None:
    before = world.signed_manifest()
    world.restart()
    expect_equal("the signed manifest", world.signed_manifest(), before)
    for artifact in artifacts_of(world.manifest()):
        world.device(0).artifact(artifact)


@case(
    "restart.enrolment",
    "An invitation that was used stays so, and its device still gets the same answer.",
    PLACE,
    kits=SMALL,
)
def enrolment(world: World) -> None:
    request = enrollment_pb2.EnrollRequest(
        token=world.token(), signing_request=make_signing_request(new_key()), member_key=MemberKey.new().public
    )
    before = world.enroll(request).message(enrollment_pb2.EnrollResponse)
    world.restart()
    expect_equal("the answer to the same request", world.enroll(request).message(enrollment_pb2.EnrollResponse), before)
    request.signing_request = make_signing_request(new_key())
    world.enroll(request).refusal("TOKEN")


@case("restart.place", "A device that has a place has it after a crash, under the same name.", PLACE, kits=SMALL)
def place(world: World) -> None:
    is_clear = world.kit.settings.privacy == "clear"
    # In the clear it must be a round that the suite knows of: it may run out, and a later case counts such rounds.
    before = world.fresh_round().assignment if is_clear else world.check_in(world.device(0)).assignment
    expect(before.round_id, "a place", "none")
    world.restart()
    after = world.check_in(world.device(0)).assignment
    status = world.device(0).call("GetRoundStatus", pb.GetRoundStatusRequest(round_id=before.round_id))
    # Time goes on while the server is away, and the round may have run out.
    if status.message(pb.GetRoundStatusResponse).state == pb.ROUND_STATE_OPEN:
        expect(after.deadline_ms <= before.deadline_ms, "deadline_ms that has become less", after.deadline_ms)
        after.deadline_ms = before.deadline_ms
        expect_equal("the assignment", after, before)


@case(
    "restart.receipt",
    "A receipt says what is durable: a crash must not take it back, or count it twice.",
    PLACE,
    kits=CLEAR,
)
def receipt(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    before = current.upload(current.first, request)
    world.restart()
    expect_equal("upload_count after a restart", current.status().upload_count, 1)
    expect_equal("receipt for the same bytes", current.upload(current.first, request), before)
    request.upload_id = os.urandom(16)
    current.send(current.first, request).refusal("UPLOAD_CONFLICT")
    current.wait()
    require_twin(world, world.manifest())


@case("restart.memory", "What the rounds before have taught the server must be there after a crash.", PLACE, kits=CLEAR)
def memory(world: World) -> None:
    world.fresh_round().finish()
    world.restart()
    world.fresh_round().finish()
    require_twin(world, world.manifest())


@case("restart.steps", "What a device delivered in any step is durable before it hears so.", PLACE, kits=SECAGG)
def steps(world: World) -> None:
    ended = world.secure.fresh()
    ended.finish()
    current = world.secure.fresh()
    current.tell_all(REVEAL)
    current.peers[0].deliver(REVEAL)
    world.restart()
    for peer in (*ended.peers, current.peers[0]):
        for method in METHODS:
            peer.deliver(method)
    expect_equal("upload_count after a restart", current.status().upload_count, len(current.peers))


@case(
    "restart.settled",
    "Two sets for one round are what a server that lies would need: a crash is no excuse.",
    PLACE,
    kits=SECAGG,
)
def settled(world: World) -> None:
    for method in (SIGN_INCLUDED, SIGN_SURVIVORS):
        current = world.secure.fresh()
        current.tell_all(method)
        world.restart()
        answer, kind = current.peers[0].question(), KINDS[method]
        # Time goes on while the server is away, and the round may have run out.
        if current.status().state == pb.ROUND_STATE_OPEN:
            told = getattr(answer.message(secure_pb2.GetStepResponse), kind)
            expect_equal("what a device is told again", told, current.peers[0].told[kind])


@case(
    "restart.memory-of-sums",
    "After a crash the next sum moves the codes as if there had been none.",
    PLACE,
    kits=SECAGG,
)
def memory_of_sums(world: World) -> None:
    world.secure.fresh().finish_exactly()
    world.restart()
    world.secure.fresh().finish_exactly()
