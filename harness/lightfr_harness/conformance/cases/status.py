"""What a server says of a round."""

from __future__ import annotations

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import World

PLACE = "docs/protocol.md#rounds"
CLEAR = ("clear",)


def _expected(world: World, state: int, count: int, has_yours: bool, following: int = 0) -> pb.GetRoundStatusResponse:
    return pb.GetRoundStatusResponse(
        state=state,  # type: ignore[arg-type]
        upload_count=count,
        upload_goal=world.kit.settings.goal,
        has_your_upload=has_yours,
        next_model_version=following,
    )


@case("status.open", "A device sees how far the round is and whether its own upload is in.", PLACE, kits=CLEAR)
def open_round(world: World) -> None:
    current = world.fresh_round()
    expect_equal("status of a fresh round", current.status(), _expected(world, pb.ROUND_STATE_OPEN, 0, False))
    current.upload(current.first)
    expect_equal("status after an upload", current.status(), _expected(world, pb.ROUND_STATE_OPEN, 1, True))


@case("status.of-who-asks", "Whose upload is in is told to nobody else.", PLACE, kits=CLEAR)
def of_who_asks(world: World) -> None:
    current = world.fresh_round()
    current.upload(current.first)
    for device in (world.device(1), world.device(world.kit.settings.places)):
        got = current.status(device)
        expect_equal("status for another device", got, _expected(world, pb.ROUND_STATE_OPEN, 1, False))


@case("status.finished", "A device learns from the status that there is a new version.", PLACE, kits=CLEAR)
def finished(world: World) -> None:
    current = world.fresh_round()
    current.upload(current.first)
    version, goal = current.finish().model_version, world.kit.settings.goal
    expected = _expected(world, pb.ROUND_STATE_FINISHED, goal, True, version)
    expect_equal("status of a finished round", current.status(current.first), expected)


@case("status.changes-nothing", "Asking gives nobody a place, and starts no clock.", PLACE, kits=CLEAR)
def changes_nothing(world: World) -> None:
    current = world.fresh_round()
    asking = world.device(world.kit.settings.places)
    current.status(asking)
    current.send(asking, current.request()).refusal("NOT_ASSIGNED")


@case("status.unknown-round", "A round that never was has no status.", PLACE)
def unknown_round(world: World) -> None:
    world.device(0).call("GetRoundStatus", pb.GetRoundStatusRequest(round_id=bytes(16))).refusal("ROUND_UNKNOWN")


@case("status.length-of-id", "A round's id has 16 bytes.", "docs/protocol.md#errors")
def length_of_id(world: World) -> None:
    for size in (0, 15, 17):
        world.device(0).call("GetRoundStatus", pb.GetRoundStatusRequest(round_id=bytes(size))).refusal("MALFORMED")
