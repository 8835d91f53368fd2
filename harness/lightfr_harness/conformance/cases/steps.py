"""GetStep and what holds for all steps of secure aggregation."""

from __future__ import annotations

import os
import threading
import time

from google.protobuf.message import Message

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2
from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.client import Answer
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_equal
from lightfr_harness.conformance.masking import (
    ACKNOWLEDGE,
    ADVERTISE,
    ANSWERS,
    KINDS,
    METHODS,
    REVEAL,
    SHARE,
    SIGN_INCLUDED,
    SIGN_SURVIVORS,
    UPLOAD,
)
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import Device, World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
LIMITS = "docs/protocol.md#limits"
ROUNDS = "docs/protocol.md#rounds"
GET_STEP = "proto/lightfr/v1/secure.proto#GetStepRequest"
# How long a device that does not want to wait says that it waits, and how much later an answer may come.
TIMEOUT_MS = 500
LATE_SECONDS = 2.0


@case(
    "step.walk", "GetStep leads a device through the round: what is due, and wait once it is done.", PHASES, kits=SECAGG
)
def walk(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    for method in METHODS:
        current.tell(peer, method)
        expect_equal(f"GetStep before {method}", peer.ask().WhichOneof("step"), KINDS.get(method, "wait_ms"))
        peer.deliver(method)
        done = "done" if method == REVEAL else "wait_ms"
        expect_equal(f"GetStep after {method}, while others are not done", peer.ask().WhichOneof("step"), done)
        current.walk(method)


@case("step.done", "A device that asks after the round learns that nothing is left to do.", PHASES, kits=SECAGG)
def done(world: World) -> None:
    current = world.secure.fresh()
    current.finish()
    for peer in current.peers:
        expect_equal("GetStep after the round", peer.ask().WhichOneof("step"), "done")


@case("step.long-poll", "A question that is held must hold up nobody else.", GET_STEP, kits=SECAGG)
def long_poll(world: World) -> None:
    current = world.secure.fresh()
    first, last = current.peers[0], current.peers[-1]
    for peer in current.peers[:-1]:
        peer.deliver(ADVERTISE)
    answers: list[Answer] = []
    asking = threading.Thread(target=lambda: answers.append(first.question(2000)))
    asking.start()
    # Time for the question to arrive, so that it is held. If it does not, the answer is the same.
    time.sleep(0.1)
    last.deliver(ADVERTISE)
    asking.join()
    kind = answers[0].message(secure_pb2.GetStepResponse).WhichOneof("step")
    expect(kind in ("wait_ms", "share"), "'share', or 'wait_ms' from a server that does not hold", kind)
    current.tell_all(SHARE)


@case(
    "step.longest-wait",
    "The longest wait that a device may ask for must not keep it from what is due.",
    GET_STEP,
    kits=SECAGG,
)
def longest_wait(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(SHARE)
    expect_equal("GetStep with max_wait_ms 20,000", current.peers[0].ask(20_000).WhichOneof("step"), "share")


@case(
    "step.ends-with-the-last",
    "A phase ends when everybody has delivered: devices must not wait for its deadline.",
    PHASES,
    kits=SECAGG,
)
def ends_with_the_last(world: World) -> None:
    _require_quick(world, world.kit.settings.places, ADVERTISE)


@case(
    "step.ends-with-the-last-who-is-left",
    "Who missed a phase is not waited for in those that follow.",
    PHASES,
    kits=SECAGG,
)
def ends_with_the_last_who_is_left(world: World) -> None:
    _require_quick(world, world.kit.settings.minimum, SHARE)


def _require_quick(world: World, count: int, first: str) -> None:
    """When so many do all steps from this one on at once, no deadline may pass. A busy machine gets a second try."""
    for _ in range(2):
        current = world.secure.fresh(count)
        if first != ADVERTISE:
            current.tell_all(first)
        began = time.monotonic()
        current.finish()
        seconds = time.monotonic() - began
        if seconds < world.kit.settings.deadline_seconds:
            return
    raise Unexpected(
        f"all phases from {first} on to end as soon as all have delivered", f"an end after {seconds:.0f} s"
    )


@case("step.wait-too-long", "A wait beyond the limit would tie up the server.", GET_STEP, kits=SECAGG)
def wait_too_long(world: World) -> None:
    current = world.secure.fresh()
    for milliseconds in (20_001, 2**32 - 1):
        current.peers[0].question(milliseconds).refusal("MALFORMED")


@case("step.missed", "A device that came too late learns that the round went on without it.", PHASES, kits=SECAGG)
def missed(world: World) -> None:
    for play in dropouts.MISSED.values():
        world.secure.shared(play).noted["question"].refusal("ROUND_CLOSED")


@case(
    "step.not-assigned",
    "A device without a place has no part in any step, and learns nothing of the cohort.",
    PHASES,
    kits=SECAGG,
)
def not_assigned(world: World) -> None:
    current, stranger = world.secure.fresh(), world.device(world.kit.settings.places)
    for method in METHODS:
        current.tell(current.peers[0], method)
        requests = dropouts.one_of_each(current.peers[0])
        for name in (method, "GetStep"):
            request = requests[name] if name == "GetStep" else current.peers[0].good(method)
            stranger.call(name, request).refusal("NOT_ASSIGNED")
        current.walk(method)
    current.finish()
    for name, request in dropouts.one_of_each(current.peers[0]).items():
        stranger.call(name, request).refusal("NOT_ASSIGNED")


@case("step.unknown-round", "Nothing may be taken for a round that is not there.", PHASES, kits=SECAGG)
def unknown_round(world: World) -> None:
    peer = world.secure.fresh().peers[0]
    for name, request in dropouts.one_of_each(peer).items():
        request.round_id = os.urandom(16)  # type: ignore[attr-defined]
        peer.device.call(name, request).refusal("ROUND_UNKNOWN")


@case("step.round-id-length", "A round id has 16 bytes; others name nothing.", PHASES, kits=SECAGG)
def round_id_length(world: World) -> None:
    peer = world.secure.fresh().peers[0]
    for name, request in dropouts.one_of_each(peer).items():
        for size in (0, 15, 17):
            request.round_id = os.urandom(size)  # type: ignore[attr-defined]
            peer.device.call(name, request).refusal("MALFORMED")


@case(
    "step.ended-round", "A round that is over takes nothing more, from whoever has a place in it.", PHASES, kits=SECAGG
)
def ended_round(world: World) -> None:
    current = world.secure.shared(dropouts.without_uploads)
    for method in (UPLOAD, SIGN_SURVIVORS, REVEAL, "GetStep"):
        current.noted[f"{method} after the end"].refusal("ROUND_CLOSED")


@case(
    "step.same-bytes-after-the-end",
    "A device that lost an answer asks again, whatever has become of the round, and gets the same one.",
    PHASES,
    kits=SECAGG,
)
def same_bytes_after_the_end(world: World) -> None:
    current = world.secure.shared(dropouts.without_uploads)
    for method in METHODS[:4]:
        current.noted[f"{method} again after the end"].message(ANSWERS[method])
    finished = world.secure.fresh()
    finished.finish()
    for peer in finished.peers:
        for method in METHODS:
            peer.deliver(method)


@case(
    "step.other-bytes-after-the-end",
    "What a device delivered stays what it delivered: other bytes are a conflict, also when the round is over.",
    PHASES,
    kits=SECAGG,
)
def other_bytes_after_the_end(world: World) -> None:
    current = world.secure.fresh()
    current.finish()
    others = dropouts.one_of_each(current.peers[0])
    others[ADVERTISE].mask_public_key = os.urandom(32)  # type: ignore[attr-defined]
    others[ACKNOWLEDGE].unopened = b"\1"  # type: ignore[attr-defined]
    for method in METHODS:
        current.peers[0].send(method, others[method]).refusal("UPLOAD_CONFLICT")


@case(
    "step.timeout",
    "A device that will wait half a second must not be kept for twenty: it would never hear the answer.",
    PHASES,
    kits=SECAGG,
)
def timeout(world: World) -> None:
    for _ in range(2):
        peer = world.secure.fresh().peers[0]
        peer.deliver(ADVERTISE)
        request = secure_pb2.GetStepRequest(round_id=peer.round_id, max_wait_ms=20_000)
        began = time.monotonic()
        answer = peer.device.call("GetStep", request, Connect_Timeout_Ms=str(TIMEOUT_MS))
        seconds = time.monotonic() - began
        if seconds < TIMEOUT_MS / 1000 + LATE_SECONDS:
            step = answer.message(secure_pb2.GetStepResponse)
            return expect_equal("GetStep, when the device waits no longer", step.WhichOneof("step"), "wait_ms")
    raise Unexpected(f"an answer to GetStep within Connect-Timeout-Ms, {TIMEOUT_MS} ms", f"one after {seconds:.1f} s")


@case(
    "step.remembered",
    "A device that was offline for a while still learns what became of its upload.",
    ROUNDS,
    kits=SECAGG,
)
def remembered(world: World) -> None:
    past = world.secure.fresh()
    past.finish()
    version = world.twin.model_version
    for _ in range(15):
        world.secure.fresh().finish()
    _require_status(past.status(), pb.ROUND_STATE_FINISHED, 6, mine=True)
    expect_equal("next_model_version of the 16th last round", past.status().next_model_version, version)
    past.peers[0].deliver(UPLOAD)


@case("step.earlier-round", "What belongs to the round before must not slip into this one.", PHASES, kits=SECAGG)
def earlier_round(world: World) -> None:
    before = world.secure.fresh()
    current = world.secure.fresh()
    current.tell_all(SHARE)
    renamed = before.peers[0].good(SHARE)
    renamed.round_id = current.round_id
    renamed.sealed_shares = renamed.sealed_shares[:-98]
    current.peers[0].send(SHARE, renamed).refusal("UPLOAD_INVALID")
    current.walk(SHARE)


@case("step.malformed", "Bytes that do not parse are refused and leave the round as it was.", PHASES, kits=SECAGG)
def malformed(world: World) -> None:
    current = world.secure.fresh()
    for name in (*METHODS, "GetStep"):
        current.peers[0].device.call(name, b"\xff\xff\xff").refusal("MALFORMED")


@case("step.too-large", "What is larger than any legal step is not even read.", LIMITS, kits=SECAGG)
def too_large(world: World) -> None:
    peer, most = world.secure.fresh().peers[0], world.kit.settings.places - 1
    limits = {
        ADVERTISE: 1024,
        SIGN_INCLUDED: 1024,
        SIGN_SURVIVORS: 1024,
        "GetStep": 1024,
        SHARE: 1024 + 98 * most,
        ACKNOWLEDGE: 1024 + 1,
        REVEAL: 1024 + 37 * (most + 1),
        UPLOAD: peer.assignment.upload_limit_bytes,
    }
    for name, limit in limits.items():
        detail = peer.device.call(name, bytes(limit + 1)).refusal("TOO_LARGE")
        expect_equal(f"limit_bytes of {name}", detail.limit_bytes, limit)


@case("step.status", "A device sees how the round stands, in what is durable.", ROUNDS, kits=SECAGG)
def status(world: World) -> None:
    current = world.secure.fresh()
    first, last = current.peers[0], current.peers[-1]
    for method in METHODS[: METHODS.index(UPLOAD)]:
        current.walk(method)
        _require_status(current.status(), pb.ROUND_STATE_OPEN, 0, mine=False)
    for count, peer in enumerate(current.peers):
        _require_status(current.status(peer), pb.ROUND_STATE_OPEN, count, mine=False)
        current.take_step(peer, UPLOAD)
        _require_status(current.status(peer), pb.ROUND_STATE_OPEN, count + 1, mine=True)
    _require_status(current.status(first), pb.ROUND_STATE_OPEN, 6, mine=True)
    stranger = world.device(world.kit.settings.places)
    request = pb.GetRoundStatusRequest(round_id=current.round_id)
    _require_status(
        stranger.call("GetRoundStatus", request).message(pb.GetRoundStatusResponse), pb.ROUND_STATE_OPEN, 6, mine=False
    )
    current.finish()
    _require_status(current.status(last), pb.ROUND_STATE_FINISHED, 6, mine=True)
    expect_equal("next_model_version", current.status().next_model_version, world.twin.model_version)


def _require_status(found: pb.GetRoundStatusResponse, state: int, count: int, *, mine: bool) -> None:
    expect_equal("state", pb.RoundState.Name(found.state), pb.RoundState.Name(state))
    expect_equal("upload_count", found.upload_count, count)
    expect_equal("upload_goal", found.upload_goal, 6)
    expect_equal("has_your_upload", found.has_your_upload, mine)


@case(
    "step.in-the-clear",
    "A round in the clear has no such steps, and who asks for one must not wait for it.",
    PHASES,
    kits=("clear",),
)
def in_the_clear(world: World) -> None:
    current, placed, stranger = world.fresh_round(), world.device(1), world.device(world.kit.settings.places)
    current.check_in(placed)
    name, keys = {"round_id": current.round_id}, {"mask_public_key": os.urandom(32), "share_public_key": os.urandom(32)}
    requests: dict[str, Message] = {
        ADVERTISE: secure_pb2.AdvertiseKeysRequest(
            membership=placed.member.membership, signature=bytes(64), **name, **keys
        ),
        SHARE: secure_pb2.ShareKeysRequest(**name),
        ACKNOWLEDGE: secure_pb2.AcknowledgeSharesRequest(**name),
        SIGN_INCLUDED: secure_pb2.SignIncludedRequest(signature=bytes(64), **name),
        SIGN_SURVIVORS: secure_pb2.SignSurvivorsRequest(signature=bytes(64), **name),
        REVEAL: secure_pb2.RevealSharesRequest(**name),
        "GetStep": secure_pb2.GetStepRequest(round_id=current.round_id),
    }
    _require_no_steps(requests, placed, stranger)
    for device in world.devices(world.kit.settings.goal + 1):
        if device is not placed:
            current.upload(device)
    current.finish()
    _require_no_steps(requests, placed, stranger)


def _require_no_steps(requests: dict[str, Message], placed: Device, stranger: Device) -> None:
    for method, request in requests.items():
        stranger.call(method, request).refusal("NOT_ASSIGNED")
        placed.call(method, request).refusal("UPLOAD_INVALID")
