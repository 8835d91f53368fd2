"""What a device delivers in a round in the clear: order, repetition, conflicts, limits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance.cases.connect import padded
from lightfr_harness.conformance.client import PROTO, SERVICE
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.rounds import ClearRound
from lightfr_harness.conformance.versions import require_twin
from lightfr_harness.conformance.world import Device, World

PLACE = "docs/protocol.md#a-round-in-the-clear"
CLEAR = ("clear",)


def upload_case(id: str, why: str, place: str = PLACE, *, kits: Iterable[str] = CLEAR) -> Callable[..., object]:
    return case(f"upload.{id}", why, place, kits=kits)


def _changed(request: pb.UploadRequest, **changes: object) -> pb.UploadRequest:
    made = pb.UploadRequest()
    made.CopyFrom(request)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


@upload_case("receipt", "The receipt says which bytes are safe, so that the device can forget them.")
def receipt(world: World) -> None:
    current = world.fresh_round()
    current.upload(current.first)


@upload_case("receipt-of-arrived-bytes", "The receipt's digest is of the bytes as they came, whatever a parser knows.")
def receipt_of_arrived_bytes(world: World) -> None:
    current = world.fresh_round()
    # An unknown field before all others, which a server that writes the message anew would move or drop.
    body = b"\xfa\x7f\x03abc" + current.request().SerializeToString()
    got = current.send(current.first, body).message(pb.UploadResponse)
    expect_equal("request_sha256", got.request_sha256, hashlib.sha256(body).digest())


@upload_case("same-bytes-again", "A device that lost its receipt sends again, and must not count twice.")
def same_bytes_again(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    first = current.upload(current.first, request)
    expect_equal("receipt for the same bytes again", current.upload(current.first, request), first)
    expect_equal("upload_count after the same bytes twice", current.status().upload_count, 1)


@upload_case("same-bytes-at-once", "A device may send again while its first try is still being written.")
def same_bytes_at_once(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    clients, body = [world.client(current.first.identity) for _ in range(4)], request.SerializeToString()
    with ThreadPoolExecutor(len(clients)) as pool:
        answers = list(pool.map(lambda client: client.post(SERVICE + "Upload", body), clients))
    receipts = [answer.message(pb.UploadResponse) for answer in answers]
    current.counted[current.first] = request
    expect_equal("receipts for the same bytes at once", receipts, receipts[:1] * len(receipts))
    expect_equal("upload_count", current.status().upload_count, 1)


@upload_case("same-bytes-after-the-round", "A device that was away for a while still gets its receipt.")
def same_bytes_after_the_round(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    first = current.upload(current.first, request)
    current.finish()
    expect_equal("receipt after the round has ended", current.upload(current.first, request), first)


@upload_case("other-bytes", "One device, one upload: other bytes under the same id are refused.")
def other_bytes(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    current.upload(current.first, request)
    other = current.request(upload_id=request.upload_id)
    current.send(current.first, other).refusal("UPLOAD_CONFLICT")
    expect_equal("upload_count", current.status().upload_count, 1)


@upload_case("other-id", "One device, one upload: the same content under another id is refused.")
def other_id(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    current.upload(current.first, request)
    current.send(current.first, _changed(request, upload_id=world.random_id())).refusal("UPLOAD_CONFLICT")


@upload_case("conflict-comes-first", "Who has delivered is told so, even if what he sends now is bad.")
def conflict_comes_first(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    current.upload(current.first, request)
    current.send(current.first, _changed(request, manifest_sha256=bytes(32))).refusal("UPLOAD_CONFLICT")
    current.finish()
    current.send(current.first, current.request()).refusal("UPLOAD_CONFLICT")


@upload_case("same-bytes-of-another", "Receipts are per device: two devices may send the same bytes.")
def same_bytes_of_another(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    current.upload(current.first, request)
    current.upload(world.device(1), request)
    expect_equal("upload_count", current.status().upload_count, 2)


@upload_case("receipt-of-another", "A receipt is for who delivered, not for who knows the bytes.")
def receipt_of_another(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    current.upload(current.first, request)
    current.send(world.device(1), request).refusal("NOT_ASSIGNED")


@upload_case("not-assigned", "Without a place nothing counts: the cohort is those who checked in.")
def not_assigned(world: World) -> None:
    # A place in the round before is none in this one.
    world.fresh_round().upload(world.device(1))
    current = world.fresh_round()
    current.send(world.device(1), current.request()).refusal("NOT_ASSIGNED")
    expect_equal("upload_count", current.status().upload_count, 0)


@upload_case("unknown-round", "An upload for a round that never was is no upload.")
def unknown_round(world: World) -> None:
    current = world.fresh_round()
    current.send(current.first, current.request(round_id=world.random_id())).refusal("ROUND_UNKNOWN")


@upload_case("closed-round", "After the goal nothing is added, from whoever still has a place.")
def closed_round(world: World) -> None:
    current = world.fresh_round()
    late = world.device(world.kit.settings.places - 1)
    current.check_in(late)
    _finish_without(world, current, late)
    current.send(late, current.request()).refusal("ROUND_CLOSED")


def _finish_without(world: World, current: ClearRound, absent: Device) -> None:
    """End the round by its goal, this device's upload not among them."""
    for device in world.devices(world.kit.settings.goal):
        if device is not absent:
            current.upload(device)
    current.finish()


@upload_case("closed-round-without-a-place", "Who had no place hears that, in every state of a round.")
def closed_round_without_a_place(world: World) -> None:
    current = world.fresh_round()
    current.finish()
    current.send(world.device(world.kit.settings.places), current.request()).refusal("NOT_ASSIGNED")


@upload_case("other-model", "Gradients for one model must not move another.")
def other_model(world: World) -> None:
    current = world.fresh_round()
    other = current.request(manifest_sha256=hashlib.sha256(b"another manifest").digest())
    current.send(current.first, other).refusal("MODEL_MISMATCH")
    expect_equal("upload_count", current.status().upload_count, 0)
    current.upload(current.first)


@upload_case("content-comes-last", "What is wrong with the content is told only to who may upload something.")
def content_comes_last(world: World) -> None:
    current, late = world.fresh_round(), world.device(world.kit.settings.places - 1)
    bad = current.random_update(3)
    bad.ClearField("user_code")
    current.send(late, current.request(bad)).refusal("NOT_ASSIGNED")
    current.check_in(late)
    current.send(late, current.request(bad, manifest_sha256=bytes(32))).refusal("MODEL_MISMATCH")
    _finish_without(world, current, late)
    current.send(late, current.request(bad)).refusal("ROUND_CLOSED")


@upload_case("closed-round-of-another-model", "A device that is too late must hear that, whatever model it is about.")
def closed_round_of_another_model(world: World) -> None:
    current, late = world.fresh_round(), world.device(world.kit.settings.places - 1)
    current.check_in(late)
    _finish_without(world, current, late)
    current.send(late, current.request(manifest_sha256=bytes(32))).refusal("ROUND_CLOSED")


@upload_case(
    "in-two-pieces", "A message in a message may come in pieces, which belong together.", "docs/protocol.md#calls"
)
def in_two_pieces(world: World) -> None:
    current = world.fresh_round()
    update = current.random_update(3)
    first, second = (type(update)(code_bits=update.code_bits, item_indices=update.item_indices), type(update)())
    second.ternary.CopyFrom(update.ternary)
    second.user_code = update.user_code
    request = current.request(update)
    request.ClearField("row_update")
    pieces = [pb.UploadRequest(row_update=piece).SerializeToString() for piece in (first, second)]
    current.send(current.first, request.SerializeToString() + b"".join(pieces)).message(pb.UploadResponse)
    current.finish()
    require_twin(world, world.manifest())


@upload_case("lengths-of-ids", "Ids and digests of other lengths are a fault of the device.")
def lengths_of_ids(world: World) -> None:
    current = world.fresh_round()
    for name, right in (("round_id", 16), ("manifest_sha256", 32), ("upload_id", 16)):
        for size in (0, right - 1, right + 1):
            current.send(current.first, current.request(None, **{name: bytes(size)})).refusal("MALFORMED")
    expect_equal("upload_count", current.status().upload_count, 0)


@upload_case("truncated", "An upload that lost its end must not be taken for a shorter one.")
def truncated(world: World) -> None:
    current = world.fresh_round()
    current.send(current.first, current.request().SerializeToString()[:-1]).refusal("MALFORMED")


@upload_case("broken-off", "An upload whose connection breaks counts only when it comes whole.")
def broken_off(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    body = request.SerializeToString()
    world.client(world.device(0).identity).break_off(SERVICE + "Upload", body[: len(body) // 2], len(body))
    expect_equal("upload_count after half an upload", current.status().upload_count, 0)
    current.upload(current.first, request)


@upload_case("too-large", "The limit of the assignment holds.", "docs/protocol.md#limits")
def too_large(world: World) -> None:
    limit = world.fresh_round().assignment.upload_limit_bytes
    for size in (limit + 1, 10**12):
        client = world.client(world.device(0).identity)
        answer = client.request("POST", SERVICE + "Upload", None, PROTO | {"Content-Length": str(size)})
        client.close()
        expect_equal("limit_bytes", answer.refusal("TOO_LARGE").limit_bytes, limit)


@upload_case("at-the-limit", "An upload of exactly the limit is read.", "docs/protocol.md#limits")
def at_the_limit(world: World) -> None:
    current = world.fresh_round()
    body = padded(current.request().SerializeToString(), current.assignment.upload_limit_bytes)
    current.send(current.first, body).message(pb.UploadResponse)
