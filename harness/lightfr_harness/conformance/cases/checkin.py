"""Places in a round."""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_between, expect_equal
from lightfr_harness.conformance.kit import SPARE_DEVICES
from lightfr_harness.conformance.registry import CLEAR_KITS, COMMON_KITS, case
from lightfr_harness.conformance.rounds import ClearRound
from lightfr_harness.conformance.world import Device, World

PLACE = "docs/protocol.md#rounds"
CLEAR = ("clear",)
LONGEST_MS = 86_400_000
# A server's clock and ours may tick a little apart; and before it answers it may have to wait for its disk.
SLACK_MS = 250
DISK_MS = 1000


def _window(world: World, device: Device, reason: int, **changes: object) -> pb.RetryWindow:
    """The retry window, for this reason and within its range."""
    answer = world.check_in(device, **changes)
    expect(answer.HasField("retry_window"), f"a retry window, {pb.RetryReason.Name(reason)}", answer)
    window = answer.retry_window
    expect_equal("reason", pb.RetryReason.Name(window.reason), pb.RetryReason.Name(reason))
    expect_between("latest_ms", window.latest_ms, window.earliest_ms, LONGEST_MS)
    return window


def _fill(world: World) -> ClearRound:
    """A fresh round with all its places given."""
    current = world.fresh_round()
    for device in world.devices(world.kit.settings.places)[1:]:
        current.check_in(device)
    return current


@case("checkin.assignment", "A device knows from its assignment what to train on and until when.", PLACE, kits=CLEAR)
def assignment(world: World) -> None:
    given, signed = world.fresh_round().assignment, world.signed_manifest()
    if signed is None:
        raise Unexpected("a signed manifest", "none")
    expect_equal("bytes in round_id", len(given.round_id), 16)
    expect_equal("model_version", given.model_version, world.manifest().model_version)
    expect_equal("manifest_sha256", given.manifest_sha256, hashlib.sha256(signed.manifest).digest())
    expect_between("deadline_ms", given.deadline_ms, 1, 1000 * world.kit.settings.deadline_seconds)
    expect_equal("peer_id in the clear", given.peer_id, b"")
    expect(given.kind in (pb.ROUND_KIND_UNSPECIFIED, pb.ROUND_KIND_TRAINING), "a training round", given.kind)


@case("checkin.upload-limit", "The limit must leave room for the largest legal upload.", PLACE, kits=CLEAR_KITS)
def upload_limit(world: World) -> None:
    settings = world.kit.settings
    code_bytes, bits = settings.code_bits // 8, {"ternary": 2, "exact": 32, "codes": 1}[settings.upload_kind]
    largest = (settings.max_rows or sum(world.kit.open_rows)) * (4 + bits * code_bytes) + code_bytes
    given = world.fresh_round().assignment.upload_limit_bytes
    expect_between("upload_limit_bytes", given, largest + 200, 2**32 - 1)


@case("checkin.same-again", "A device that lost the answer keeps its one place.", PLACE, kits=CLEAR)
def same_again(world: World) -> None:
    current = world.fresh_round()
    again = current.check_in(current.first)
    expect_between("deadline_ms when asked again", again.deadline_ms, 1, current.assignment.deadline_ms)
    again.deadline_ms = current.assignment.deadline_ms
    expect_equal("the assignment when asked again", again, current.assignment)
    # One place, not two: the others must all find theirs.
    for device in world.devices(world.kit.settings.places)[1:]:
        current.check_in(device)


@case("checkin.one-round", "All devices of a cohort train on the same model.", PLACE, kits=CLEAR)
def one_round(world: World) -> None:
    current = world.fresh_round()
    second = current.check_in(world.device(1))
    expect_equal("manifest_sha256 of a second device", second.manifest_sha256, current.assignment.manifest_sha256)
    expect_equal("model_version of a second device", second.model_version, current.assignment.model_version)


@case("checkin.full", "A device without a place is told when to come back.", PLACE, kits=CLEAR)
def full(world: World) -> None:
    _fill(world)
    _window(world, world.device(world.kit.settings.places), pb.RETRY_REASON_ROUND_FULL)


@case("checkin.race-for-places", "When many come at once, no place is given twice.", PLACE, kits=CLEAR)
def race_for_places(world: World) -> None:
    current, places = world.fresh_round(), world.kit.settings.places
    devices = world.devices(places + SPARE_DEVICES)[1:]
    for device in devices:
        # So that its connection is there.
        current.status(device)
    with ThreadPoolExecutor(len(devices)) as pool:
        answers = list(pool.map(world.check_in, devices))
    for device, answer in zip(devices, answers, strict=True):
        if answer.HasField("assignment"):
            current.placed[device] = answer.assignment
    expect_equal("devices with a place, of those that came at once", len(current.placed), places)


@case("checkin.full-but-placed", "Who has a place keeps it when the round is full.", PLACE, kits=CLEAR)
def full_but_placed(world: World) -> None:
    current = _fill(world)
    for device in current.placed:
        current.check_in(device)


@case("checkin.already-uploaded", "Who has delivered has nothing to do until the next round.", PLACE, kits=CLEAR)
def already_uploaded(world: World) -> None:
    current = world.fresh_round()
    current.upload(current.first)
    _window(world, current.first, pb.RETRY_REASON_ALREADY_UPLOADED)


@case("checkin.not-capable-mode", "A device takes part only in the privacy modes that it agreed to.", PLACE)
def not_capable_mode(world: World) -> None:
    capabilities = world.capabilities
    for modes in ([], [99]):
        del capabilities.privacy_modes[:]
        capabilities.privacy_modes.extend(modes)  # type: ignore[arg-type]
        _window(world, world.device(0), pb.RETRY_REASON_NOT_CAPABLE, capabilities=capabilities)


@case("checkin.not-capable-kind", "A device is asked only for uploads that it can make.", PLACE, kits=COMMON_KITS)
def not_capable_kind(world: World) -> None:
    capabilities = world.capabilities
    for kinds in ([], [kind for kind in (1, 2, 3) if kind != world.upload_kind]):
        del capabilities.upload_kinds[:]
        capabilities.upload_kinds.extend(kinds)  # type: ignore[arg-type]
        _window(world, world.device(0), pb.RETRY_REASON_NOT_CAPABLE, capabilities=capabilities)


@case("checkin.not-capable-takes-no-place", "A device that cannot take part must not hold a place.", PLACE, kits=CLEAR)
def not_capable_takes_no_place(world: World) -> None:
    current, places = world.fresh_round(), world.kit.settings.places
    capabilities = world.capabilities
    capabilities.privacy_modes[:] = []
    for device in world.devices(places + 2)[places:]:
        _window(world, device, pb.RETRY_REASON_NOT_CAPABLE, capabilities=capabilities)
    for device in world.devices(places)[1:]:
        current.check_in(device)


@case(
    "checkin.not-capable-but-placed",
    "An app may become stricter: its device must not be led on by the place that it has.",
    PLACE,
    kits=CLEAR,
)
def not_capable_but_placed(world: World) -> None:
    current, capabilities = world.fresh_round(), world.capabilities
    capabilities.privacy_modes[:] = []
    _window(world, current.first, pb.RETRY_REASON_NOT_CAPABLE, capabilities=capabilities)
    current.check_in(current.first)


@case("checkin.known-version", "What a device holds does not decide whether it gets a place.", PLACE, kits=CLEAR)
def known_version(world: World) -> None:
    current = world.fresh_round()
    for device, known in zip(world.devices(4)[1:], (0, 1, 2**64 - 1), strict=True):
        answer = world.check_in(device, known_model_version=known)
        expect(answer.HasField("assignment"), f"a place for who knows version {known}", answer)
        current.placed[device] = answer.assignment


@case("checkin.clock", "The clock starts with the first place: an idle server wastes no rounds.", PLACE, kits=CLEAR)
def clock(world: World) -> None:
    world.fresh_round().finish()
    time.sleep(1)
    whole = 1000 * world.kit.settings.deadline_seconds
    expect_between(
        "deadline_ms of the first place", world.fresh_round().assignment.deadline_ms, whole - SLACK_MS, whole
    )


@case("checkin.deadline-stands", "Later places do not make a round longer.", PLACE, kits=CLEAR)
def deadline_stands(world: World) -> None:
    current = world.fresh_round()
    time.sleep(0.5)
    later = current.check_in(world.device(1)).deadline_ms
    expect_between("deadline_ms half a second later", later, 1, current.assignment.deadline_ms - 500 + SLACK_MS)
