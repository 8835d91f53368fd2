"""What a device delivers in a round in the clear."""

from __future__ import annotations

from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import World

PLACE = "docs/protocol.md#a-round-in-the-clear"
CLEAR = ("clear",)


@case(
    "upload.same-bytes-again",
    "A device that lost its receipt sends again, and must not count twice.",
    PLACE,
    kits=CLEAR,
)
def same_bytes_again(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    first = current.upload(current.first, request)
    expect_equal("receipt for the same bytes again", current.upload(current.first, request), first)
    expect_equal("upload_count after the same bytes twice", current.status().upload_count, 1)
    current.finish()
    expect_equal("receipt after the round has ended", current.upload(current.first, request), first)


@case("upload.codes-follow", "The matrix must move exactly as the document says.", PLACE, kits=CLEAR)
def codes_follow(world: World) -> None:
    manifest = world.fresh_round().finish()
    expect_equal("item codes", world.device(0).artifact(manifest.codes), world.twin.codes)
