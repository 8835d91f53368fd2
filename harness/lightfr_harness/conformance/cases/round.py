"""How rounds in the clear begin and end."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance.expectations import expect, expect_equal
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.versions import require_twin
from lightfr_harness.conformance.world import World

PLACE = "docs/protocol.md#a-round-in-the-clear"
CLEAR = ("clear",)


@case("round.goal", "A round ends with its goal, long before its deadline.", PLACE, kits=CLEAR)
def goal(world: World) -> None:
    current = world.fresh_round()
    before, began = current.assignment.model_version, time.monotonic()
    manifest = current.finish()
    seconds = time.monotonic() - began
    left = current.assignment.deadline_ms / 1000
    expect(
        seconds < left - 0.25, f"the goal to end a round that had {left:.1f} s left", f"an end after {seconds:.1f} s"
    )
    expect_equal("model_version after a round", manifest.model_version, before + 1)
    expect_equal("upload_count", current.status().upload_count, world.kit.settings.goal)


@case("round.race-to-the-goal", "When all places upload at once, the goal is met and not passed.", PLACE, kits=CLEAR)
def race_to_the_goal(world: World) -> None:
    current, settings = world.fresh_round(), world.kit.settings
    devices = world.devices(settings.places)
    for device in devices[1:]:
        current.check_in(device)
    requests = {device: current.request() for device in devices}
    with ThreadPoolExecutor(len(devices)) as pool:
        answers = list(pool.map(lambda device: current.send(device, requests[device]), devices))
    refused = [answer for answer in answers if answer.status != 200]
    expect_equal("uploads beyond the goal that were refused", len(refused), settings.places - settings.goal)
    for answer in refused:
        answer.refusal("ROUND_CLOSED")
    require_twin(world, current.finish())


@case("round.next", "The next round trains on the version that came of the last.", PLACE, kits=CLEAR)
def next_round(world: World) -> None:
    first = world.fresh_round()
    version = first.finish().model_version
    following = world.fresh_round().assignment
    expect_equal("model_version of the next round", following.model_version, version)
    is_same = following.manifest_sha256 == first.assignment.manifest_sha256
    expect_equal("the old manifest_sha256 in the next round", is_same, False)


@case("round.stale", "An upload for the last round must not slip into the next.", PLACE, kits=CLEAR)
def stale(world: World) -> None:
    old = world.fresh_round()
    late = world.device(1)
    old.check_in(late)
    for device in world.devices(world.kit.settings.goal + 1):
        if device is not late:
            old.upload(device)
    old.finish()
    current = world.fresh_round()
    current.check_in(late)
    late.call("Upload", old.request()).refusal("ROUND_CLOSED")
    current.send(late, current.request(manifest_sha256=old.assignment.manifest_sha256)).refusal("MODEL_MISMATCH")
    expect_equal("upload_count of the next round", current.status().upload_count, 0)


@case("round.deadline", "At the deadline the minimum of uploads makes a version.", PLACE, kits=CLEAR)
def deadline(world: World) -> None:
    current, settings = world.fresh_round(), world.kit.settings
    late = world.device(settings.minimum)
    current.check_in(late)
    for device in world.devices(settings.minimum):
        current.upload(device)
    expect_equal("state after the deadline", pb.RoundState.Name(current.wait()), "ROUND_STATE_FINISHED")
    late.call("Upload", current.request()).refusal("ROUND_CLOSED")
    require_twin(world, world.manifest())


@case("round.abandoned", "Too few uploads make no version, and the next round is on the same one.", PLACE, kits=CLEAR)
def abandoned(world: World) -> None:
    current, settings = world.fresh_round(), world.kit.settings
    before = world.signed_manifest()
    for device in world.devices(settings.minimum - 1):
        current.upload(device)
    late = world.device(settings.minimum)
    current.check_in(late)
    expect_equal("state after the deadline", pb.RoundState.Name(current.wait()), "ROUND_STATE_ABANDONED")
    status = current.status()
    expect_equal("next_model_version of an abandoned round", status.next_model_version, 0)
    expect_equal("upload_count of an abandoned round", status.upload_count, settings.minimum - 1)
    late.call("Upload", current.request()).refusal("ROUND_CLOSED")
    expect_equal("manifest after an abandoned round", world.signed_manifest(), before)
    following = world.fresh_round().assignment
    expect_equal("manifest_sha256 of the next round", following.manifest_sha256, current.assignment.manifest_sha256)


@case("round.abandoned-is-not-used", "What came to nothing must not turn up in a later version.", PLACE, kits=CLEAR)
def abandoned_is_not_used(world: World) -> None:
    """Shares the rounds of the case before, if it ran; else makes them."""
    ended = [one for one in world.rounds.all if one.ended_as == pb.ROUND_STATE_ABANDONED and one.first in one.counted]
    last = ended[-1] if ended else None
    if last is None:
        last = world.fresh_round()
        last.upload(last.first)
        last.wait()
    request = last.counted[last.first]
    current = world.fresh_round()
    again = last.first.call("Upload", request).message(pb.UploadResponse)
    expect_equal("receipt for an upload of an abandoned round", again.upload_id, request.upload_id)
    require_twin(world, current.finish())
