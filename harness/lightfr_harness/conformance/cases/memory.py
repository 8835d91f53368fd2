"""What a server still knows at the end of a run. These come last: many rounds lie behind them."""

from __future__ import annotations

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.versions import require_twin
from lightfr_harness.conformance.world import World

CLEAR = ("clear",)
REMEMBERED_ROUNDS = 16


def _ended(world: World) -> None:
    """Let there be 17 rounds that have ended."""
    while sum(one.ended_as is not None for one in world.rounds.all) <= REMEMBERED_ROUNDS:
        world.fresh_round().finish()


@case(
    "status.remembers-16-rounds",
    "A device that slept for some rounds still learns what became of its own.",
    "docs/protocol.md#rounds",
    kits=CLEAR,
)
def remembers_rounds(world: World) -> None:
    _ended(world)
    ended = [one for one in world.rounds.all if one.ended_as is not None]
    for one in ended[-REMEMBERED_ROUNDS:]:
        expect_equal("state of a round that ended", one.status().state, one.ended_as)


@case(
    "upload.receipt-after-15-rounds",
    "A device that slept for some rounds still gets its receipt.",
    "docs/protocol.md#a-round-in-the-clear",
    kits=CLEAR,
)
def remembers_receipts(world: World) -> None:
    _ended(world)
    oldest = [one for one in world.rounds.all if one.ended_as is not None][-REMEMBERED_ROUNDS]
    for device, request in oldest.counted.items():
        got = device.call("Upload", request).message(pb.UploadResponse)
        expect_equal("upload_id of an old receipt", got.upload_id, request.upload_id)


@case(
    "aggregate.every-version",
    "Every version of a run must be explained by the uploads that got a receipt.",
    "docs/protocol.md#the-server",
    kits=CLEAR,
)
def every_version(world: World) -> None:
    world.fresh_round().finish()
    finished = sum(one.ended_as == pb.ROUND_STATE_FINISHED for one in world.rounds.all)
    expect_equal("model_version after all rounds", world.manifest().model_version, 1 + finished)
    require_twin(world, world.manifest())


@case(
    "manifest.every-signature",
    "Not the first version alone is signed, but every one.",
    "docs/protocol.md#manifest",
)
def every_signature(world: World) -> None:
    world.manifest()
    for signed in world.seen_manifests.values():
        world.require_signature(signed)
