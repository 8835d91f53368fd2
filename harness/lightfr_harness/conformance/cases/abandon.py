"""Rounds of secure aggregation in which too few are left: no mask comes off, and nothing moves."""

from __future__ import annotations

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.masking import ADVERTISE, REVEAL, SHARE, UPLOAD
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_4 = "docs/secagg.md#4-unmask"


@case("abandon.too-few-keys", "In a cohort smaller than the minimum a sum would say too much.", PHASES, kits=SECAGG)
def too_few_keys(world: World) -> None:
    current = world.secure.fresh()
    current.leave(*current.peers[2:])
    current.walk(ADVERTISE)
    current.require_nothing_came_of_it()
    current.peers[0].question().refusal("ROUND_CLOSED")
    world.secure.fresh().finish_exactly()


@case(
    "abandon.too-few-shares",
    "Three are the minimum, but four shares are needed: the round cannot end well.",
    PHASES,
    kits=SECAGG,
)
def too_few_shares(world: World) -> None:
    current = world.secure.fresh()
    current.walk(ADVERTISE)
    current.leave(*current.peers[3:])
    current.walk(SHARE)
    current.require_nothing_came_of_it()


@case(
    "abandon.too-few-uploads",
    "Three vectors are not added up when four shares are needed to take the masks off.",
    PHASES,
    kits=SECAGG,
)
def too_few_uploads(world: World) -> None:
    current = world.secure.fresh()
    current.walk(SHARE)
    current.leave(*current.peers[3:])
    current.walk(UPLOAD)
    current.require_nothing_came_of_it()
    expect_equal("upload_count", current.status().upload_count, 3)
    # Receipts are kept, whatever has become of the round.
    current.peers[0].deliver(UPLOAD)
    current.peers[3].question().refusal("ROUND_CLOSED")
    world.secure.fresh().finish_exactly()


@case(
    "abandon.too-few-reveals",
    "One share below the threshold, a secret stays one, and so does the sum.",
    STEP_4,
    kits=SECAGG,
)
def too_few_reveals(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(REVEAL)
    current.leave(*current.peers[3:])
    current.walk(REVEAL)
    current.require_nothing_came_of_it()
    expect_equal("state", pb.RoundState.Name(current.status().state), "ROUND_STATE_ABANDONED")
    world.secure.fresh().finish_exactly()
