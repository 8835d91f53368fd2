"""Gate refreshes: devices count who rates what, in pairs of rounds that have no device in common."""

from __future__ import annotations

from collections.abc import Sequence

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance.expectations import expect, expect_equal
from lightfr_harness.conformance.masking import UPLOAD
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.twin import signs_of
from lightfr_harness.conformance.versions import Published, open_items
from lightfr_harness.conformance.world import Device, World

GATE = ("gate",)
SERVER = "docs/protocol.md#the-server"
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_2, STEP_5 = "docs/secagg.md#2-share", "docs/secagg.md#5-mask-and-upload"
# How many of six devices rate each of the first items, in the first refresh and in the second. The gate is 3, and every
# row is closed at first: a row opens when both refreshes reach the gate.
COUNTS = ((6, 6), (3, 3), (2, 2), (6, 0), (0, 6), (6, 2), (2, 6), (3, 4), (5, 3), (0, 0))
OPENED = [min(pair) >= 3 for pair in COUNTS]


def _rated(counts: Sequence[int]) -> list[list[int]]:
    """The items of each of six devices."""
    return [[item for item, count in enumerate(counts) if number < count] for number in range(6)]


def _refresh(world: World, devices: Sequence[Device], number: int) -> SecureRound:
    current = world.secure.fresh(devices=devices, rated=_rated([pair[number] for pair in COUNTS]))
    current.finish()
    return current


def first(world: World) -> None:
    """The first refresh of a pair."""
    _refresh(world, world.devices(6), 0)


def second(world: World) -> None:
    """The second one, of other devices; one of the first refresh asks for a place before."""
    world.secure.shared(first)
    request = pb.CheckInRequest(capabilities=world.capabilities)
    again = world.device(0).call("CheckIn", request)
    current = _refresh(world, world.devices(12)[6:], 1)
    current.noted["a device of the first"] = again


def _is_open(world: World, current: SecureRound) -> list[bool]:
    current.require_played()
    return open_items(world, current.manifest)


@case(
    "gate.closed", "Before devices have counted, nobody knows of any row that enough of them rate.", SERVER, kits=GATE
)
def closed(world: World) -> None:
    manifest = world.manifest()
    expect_equal("model_version", manifest.model_version, 1)
    expect(not any(open_items(world, manifest)), "no open item", "some")


@case("gate.kind", "A device must know what it adds up before it makes a vector of it.", PHASES, kits=GATE)
def kind(world: World) -> None:
    for play in (first, second):
        for peer in world.secure.shared(play).peers:
            expect_equal("kind", pb.RoundKind.Name(peer.assignment.kind), "ROUND_KIND_GATE_REFRESH")


@case("gate.roster", "The roster says that the cohort counts, so that all devices agree on it.", STEP_2, kits=GATE)
def roster(world: World) -> None:
    world.secure.shared(first).cohort().require_signed(world.manifest_key)


@case("gate.bits", "One number of five bits for each item, and nothing else.", STEP_5, kits=GATE)
def bits(world: World) -> None:
    current = world.secure.shared(first)
    current.require_played()
    size = world.kit.settings.item_count * 5 // 8
    expect_equal("bytes of an accepted vector", len(current.peers[0].good(UPLOAD).masked_vector), size)


@case("gate.first-opens-nothing", "One cohort alone, and so one liar, opens no row.", SERVER, kits=GATE)
def first_opens_nothing(world: World) -> None:
    expect(not any(_is_open(world, world.secure.shared(first))), "no open row after one refresh", "some")


@case("gate.apart", "A device in both refreshes of a pair could lie in both.", SERVER, kits=GATE)
def apart(world: World) -> None:
    answer = world.secure.shared(second).noted["a device of the first"].message(pb.CheckInResponse)
    expect(answer.HasField("retry_window"), "a retry window for a device of the first refresh", answer)


@case("gate.opens", "A row opens when both refreshes reach the gate, and only then.", SERVER, kits=GATE)
def opens(world: World) -> None:
    is_open = _is_open(world, world.secure.shared(second))
    expect_equal("open rows among those that were counted", is_open[: len(OPENED)], OPENED)
    expect(not any(is_open[len(OPENED) :]), "no open row that nobody counted", "some")


@case("gate.versions", "Each refresh makes a version, since devices reveal once for a version.", PHASES, kits=GATE)
def versions(world: World) -> None:
    for number, play in ((2, first), (3, second)):
        current = world.secure.shared(play)
        current.require_played()
        expect_equal("model_version after a refresh", current.manifest.model_version, number)


@case("gate.training", "After the pair the cohort trains, on the rows that are open now.", PHASES, kits=GATE)
def training(world: World) -> None:
    current = world.secure.shared(second)
    world.kit.open_rows = _is_open(world, current)
    # Items that have opened got random codes.
    world.twin.signs = signs_of(Published.of(world, current.manifest).matrix, world.kit.settings.code_bits)
    following = world.secure.fresh()
    expect_equal("kind", pb.RoundKind.Name(following.peers[0].assignment.kind), "ROUND_KIND_TRAINING")
    following.finish_exactly()
