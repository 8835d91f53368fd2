"""The first rounds replay vectors/v1/aggregation.json, in which every hard place of the arithmetic is hit."""

from __future__ import annotations

from lightfr.v1 import update_pb2
from lightfr_harness.conformance.expectations import Unexpected, expect_equal
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.versions import mean_user, require_codes
from lightfr_harness.conformance.world import World

PLACE = "docs/protocol.md#the-server"
WHYS = (
    "From the same uploads every server must come to the same codes, bit for bit.",
    "The memory of the first round goes into the second, negative numbers rounded down.",
    "What is forgotten of the memory is the same on every server.",
)


def _replay(world: World, number: int) -> None:
    """Play this round of the vectors, and those before it that were not yet played."""
    if world.twin.model_version > number + 1:
        return
    if world.twin.model_version <= number:
        _replay(world, number - 1)
    current, wanted = world.fresh_round(), world.vectors.rounds[number]
    for device, upload in zip(world.devices(len(wanted.uploads)), wanted.uploads, strict=True):
        current.upload(device, current.request(update_pb2.RowUpdate.FromString(upload)))
    manifest = current.finish()
    require_codes(world, manifest, wanted.codes)
    expect_equal("mean_user", mean_user(manifest), wanted.mean_user)
    if world.twin.codes != wanted.codes or world.twin.memory.tolist() != wanted.memory:
        raise Unexpected("the suite's own arithmetic to be that of the vectors", "a difference: report this as a bug")


def _declare(number: int, why: str) -> None:
    @case(f"aggregate.vectors-{number + 1}", why, PLACE, kits=("clear",))
    def replayed(world: World) -> None:
        _replay(world, number)


for _number, _why in enumerate(WHYS):
    _declare(_number, _why)
