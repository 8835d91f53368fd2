"""Sums under masks: the version that comes of a round is the one that the same uploads would have made in the clear."""

from __future__ import annotations

import struct

import numpy as np

from lightfr.v1 import update_pb2
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.masking import ADVERTISE, SHARE
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.twin import Contribution
from lightfr_harness.conformance.world import World

PLACE = "docs/secagg.md#4-unmask"
SECAGG = ("secagg",)


def _vector_round(world: World, number: int) -> SecureRound:
    """A round in which the first four devices have the uploads of a vector, to be masked. Two more have nothing."""
    expect_equal("model_version before a round of the vectors", world.manifest().model_version, number + 1)
    uploads = [update_pb2.RowUpdate.FromString(upload) for upload in world.vectors.rounds[number].uploads]
    return world.secure.fresh(parts=[Contribution.of(upload) for upload in uploads])


def _require_vector(world: World, number: int) -> None:
    expected, manifest = world.vectors.rounds[number], world.manifest()
    expect_equal("item codes", world.device(0).artifact(manifest.codes), expected.codes)
    mean_user = [number for (number,) in struct.iter_unpack("<h", manifest.model.mean_user)]
    expect_equal("mean user", mean_user, list(expected.mean_user))


@case(
    "sums.vector-1-without-keys",
    "Two devices that took places and sent no keys are no part of the sum, which moves the codes as known.",
    PLACE,
    kits=SECAGG,
)
def without_keys(world: World) -> None:
    current = _vector_round(world, 0)
    current.leave(*current.peers[4:])
    current.finish()
    _require_vector(world, 0)


@case(
    "sums.vector-2-without-shares",
    "Two devices that sent keys and no shares leave no mask behind in the sum, which moves the codes as known.",
    PLACE,
    kits=SECAGG,
)
def without_shares(world: World) -> None:
    current = _vector_round(world, 1)
    current.walk(ADVERTISE)
    current.leave(*current.peers[4:])
    current.finish()
    _require_vector(world, 1)


@case(
    "sums.vector-3-without-uploads",
    "The masks with two devices that shared and did not upload come off by their keys; the codes move as known.",
    PLACE,
    kits=SECAGG,
)
def without_uploads(world: World) -> None:
    current = _vector_round(world, 2)
    current.walk(SHARE)
    current.leave(*current.peers[4:])
    current.finish()
    _require_vector(world, 2)


@case("sums.everybody", "With nobody missing, all that is left of the masks must be the sum.", PLACE, kits=SECAGG)
def everybody(world: World) -> None:
    world.secure.fresh().finish_exactly()


@case(
    "sums.rounds-in-a-row",
    "Memory carries over from round to round, so one sum that is off shows in all that follow.",
    "docs/protocol.md#the-server",
    kits=SECAGG,
)
def rounds_in_a_row(world: World) -> None:
    for _ in range(4):
        world.secure.fresh().finish_exactly()


@case(
    "sums.largest",
    "Numbers at the ends of their range must not run over into each other: every device weighs 64 and says the same.",
    "docs/secagg.md#3-mask-and-upload",
    kits=SECAGG,
)
def largest(world: World) -> None:
    same = _extreme(world, 1)
    world.secure.fresh(parts=[same] * world.kit.settings.places).finish_exactly()
    same = _extreme(world, -1)
    world.secure.fresh(parts=[same] * world.kit.settings.places).finish_exactly()


def _extreme(world: World, sign: int) -> Contribution:
    """As many rows as a device may send, all of one sign, with a user code of that sign."""
    settings = world.kit.settings
    rows = [row for row, is_open in enumerate(world.kit.open_rows) if is_open][: settings.max_rows]
    ones = np.full(settings.code_bits, sign, np.int64)
    return Contribution({row: ones for row in rows}, ones)
