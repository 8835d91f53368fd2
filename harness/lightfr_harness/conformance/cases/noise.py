"""Rounds with differential privacy: exact gradients, equal weights, and room for the devices' noise."""

from __future__ import annotations

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import model_pb2
from lightfr_harness.conformance.dropouts import REAL
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.masking import UPLOAD
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import World

NOISE = ("noise",)
STEP_5, STEP_7 = "docs/secagg.md#5-mask-and-upload", "docs/secagg.md#7-unmask"


@case(
    "noise.model",
    "Devices add the noise that the model states, and refuse one that states too little.",
    STEP_5,
    kits=NOISE,
)
def model(world: World) -> None:
    stated = world.manifest().model
    expect_equal("privacy_mode", stated.privacy_mode, model_pb2.PRIVACY_MODE_SECAGG_DP)
    expect_equal("upload_kind", stated.upload_kind, model_pb2.UPLOAD_KIND_EXACT)
    expect_equal("max_rows", stated.max_rows, 0)
    expect_equal("noise", stated.noise, model_pb2.Noise(**world.kit.settings.noise or {}))


@case(
    "noise.not-capable",
    "A device that cannot send exact gradients, or did not agree to this mode, has no place.",
    "docs/protocol.md#rounds",
    kits=NOISE,
)
def not_capable(world: World) -> None:
    ternary, plain = world.capabilities, world.capabilities
    ternary.upload_kinds[:] = [model_pb2.UPLOAD_KIND_TERNARY]
    plain.privacy_modes[:] = [model_pb2.PRIVACY_MODE_SECAGG]
    for can in (ternary, plain):
        answer = world.check_in(world.device(0), capabilities=can)
        expect_equal("reason", answer.retry_window.reason, pb.RETRY_REASON_NOT_CAPABLE)


@case(
    "noise.bits",
    "12 bits a gradient and 9 a user sum, so that the noise does not run over; and no weight.",
    STEP_5,
    kits=NOISE,
)
def bits(world: World) -> None:
    current = world.secure.fresh()
    current.walk(UPLOAD)
    size = 72 * 32 * 12 // 8 + 32 * 9 // 8
    expect_equal("bytes of an accepted vector", len(current.peers[0].good(UPLOAD).masked_vector), size)


@case("noise.sums", "An exact gradient counts 1/f, and each device weighs 20, whatever it sent.", STEP_5, kits=NOISE)
def sums(world: World) -> None:
    for _ in range(4):
        world.secure.fresh().finish_exactly()


@case(
    "noise.sum-with-dropouts",
    "Weights follow from the number of survivors, since no block has them.",
    STEP_7,
    kits=NOISE,
)
def sum_with_dropouts(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(UPLOAD)
    current.leave(*current.peers[REAL:])
    current.finish_exactly()
