"""Places in a round of secure aggregation, and the roster of those who took them up."""

from __future__ import annotations

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import model_pb2
from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.expectations import expect, expect_between, expect_equal
from lightfr_harness.conformance.masking import METHODS, SHARE, SIGN_SURVIVORS, UPLOAD
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
CHECK_IN = "docs/protocol.md#rounds"
STEP_1 = "docs/secagg.md#1-advertise"
STEP_2 = "docs/secagg.md#2-share"


@case(
    "cohort.peer-ids",
    "A roster names devices by ids of one round, so that nobody in it can follow a device from round to round.",
    "proto/lightfr/v1/coordinator.proto#Assignment",
    kits=SECAGG,
)
def peer_ids(world: World) -> None:
    ids: list[bytes] = []
    for _ in range(2):
        current = world.secure.fresh()
        ids += [peer.peer_id for peer in current.peers]
    expect(all(len(one) == 16 for one in ids), "peer ids of 16 bytes", f"lengths {[len(one) for one in ids]}")
    expect_equal("different peer ids in two rounds of 6 devices", len(set(ids)), 12)


@case("cohort.assignment", "A device prepares for the round that its place is in.", CHECK_IN, kits=SECAGG)
def assignment(world: World) -> None:
    given, settings = world.secure.fresh().peers[0].assignment, world.kit.settings
    expect(given.kind in (pb.ROUND_KIND_TRAINING, pb.ROUND_KIND_UNSPECIFIED), "kind TRAINING", given.kind)
    expect_equal("model_version", given.model_version, world.twin.model_version)
    longest = 5000 * settings.deadline_seconds
    expect(
        longest - 1000 <= given.deadline_ms <= longest,
        f"deadline_ms about {longest}: uploads come in the fifth phase",
        given.deadline_ms,
    )
    least = dropouts.VECTOR_BYTES + 200
    expect(given.upload_limit_bytes >= least, f"upload_limit_bytes of at least {least}", given.upload_limit_bytes)


@case(
    "cohort.same-place-again", "A device that lost the answer asks again and is the same peer.", CHECK_IN, kits=SECAGG
)
def same_place_again(world: World) -> None:
    current, phase_ms = world.secure.fresh(), 1000 * world.kit.settings.deadline_seconds
    for number, method in enumerate(METHODS[: METHODS.index(UPLOAD) + 1]):
        if number:
            # The phase before is over once this step is due.
            current.tell_all(method)
        for peer in current.peers[:2]:
            again = world.check_in(peer.device).assignment
            # Phases that are over took less than all their time.
            expect_between(f"deadline_ms, before {method}", again.deadline_ms, 1, (5 - number) * phase_ms)
            again.deadline_ms = peer.assignment.deadline_ms
            expect_equal(f"the assignment, before {method}", again, peer.assignment)
        current.walk(method)
    answer = world.check_in(current.peers[0].device)
    expect_equal("reason after the upload", answer.retry_window.reason, pb.RETRY_REASON_ALREADY_UPLOADED)


@case(
    "cohort.full", "A roster larger than the plan would have other bits than the limits foresee.", CHECK_IN, kits=SECAGG
)
def full(world: World) -> None:
    current, stranger = world.secure.fresh(), world.device(world.kit.settings.places)
    for method in METHODS[:-1]:
        answer = world.check_in(stranger)
        expect(answer.HasField("retry_window"), "a retry window for a seventh device", answer)
        expect_equal("reason", answer.retry_window.reason, pb.RETRY_REASON_ROUND_FULL)
        window = answer.retry_window
        expect(window.earliest_ms <= window.latest_ms <= 86_400_000, "earliest_ms <= latest_ms <= a day", window)
        current.walk(method)


@case(
    "cohort.places-left",
    "Places are given in the first phase only: who comes later is in no roster.",
    "docs/protocol.md#a-round-with-secure-aggregation",
    kits=SECAGG,
)
def places_left(world: World) -> None:
    answer = world.secure.shared(dropouts.few).noted["check-in"].message(pb.CheckInResponse)
    expect(answer.HasField("retry_window"), "a retry window, although places are left", answer)
    expect_equal("reason", answer.retry_window.reason, pb.RETRY_REASON_ROUND_FULL)


@case("cohort.no-clear", "A device that allows only CLEAR must not be led into masks.", CHECK_IN, kits=SECAGG)
def no_clear(world: World) -> None:
    can = world.capabilities
    can.privacy_modes[:] = [model_pb2.PRIVACY_MODE_CLEAR]
    answer = world.check_in(world.device(world.kit.settings.places), capabilities=can)
    expect_equal("reason", answer.retry_window.reason, pb.RETRY_REASON_NOT_CAPABLE)


@case(
    "cohort.missed",
    "Who missed a step has no part in this round any more, and is told to come later.",
    CHECK_IN,
    kits=SECAGG,
)
def missed(world: World) -> None:
    for method, play in dropouts.MISSED.items():
        answer = world.secure.shared(play).noted["check-in"].message(pb.CheckInResponse)
        expect(answer.HasField("retry_window"), f"a retry window for a device that missed {method}", answer)
        is_in = method == SIGN_SURVIVORS
        reason = pb.RETRY_REASON_ALREADY_UPLOADED if is_in else pb.RETRY_REASON_ROUND_FULL
        expect_equal(f"reason after {method} was missed", answer.retry_window.reason, reason)


@case("roster.same-for-all", "Two rosters for one round are what a malicious server would need.", STEP_2, kits=SECAGG)
def same_for_all(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(SHARE)
    for peer in current.peers:
        expect_equal("the roster", peer.told["share"], current.peers[0].told["share"])
    expect_equal("the roster when asked again", current.peers[0].ask().share, current.peers[0].told["share"])


@case("roster.entries", "Indices are places in the roster, so every byte and their order matter.", STEP_2, kits=SECAGG)
def entries(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(SHARE)
    current.cohort().require_entries(peer.entry for peer in current.peers)


@case(
    "roster.without-late-ones",
    "The roster are those who advertised, and not those who have a place.",
    STEP_2,
    kits=SECAGG,
)
def without_late_ones(world: World) -> None:
    current = world.secure.shared(dropouts.without_keys)
    current.cohort().require_entries(peer.entry for peer in current.peers[: dropouts.REAL])


@case("roster.numbers", "They decide how many must collude, and how many may vanish.", STEP_2, kits=SECAGG)
def numbers(world: World) -> None:
    for play in (dropouts.without_keys, dropouts.without_shares):
        world.secure.shared(play).cohort().require_usual()


@case(
    "roster.signature",
    "A device refuses a roster whose signature does not cover every byte of it.",
    STEP_2,
    kits=SECAGG,
)
def signature(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(SHARE)
    current.cohort().require_signed(world.manifest_key)


@case(
    "roster.vouchers",
    "Devices share nothing with whom the authority does not vouch for: each voucher goes with its own entry.",
    STEP_2,
    kits=SECAGG,
)
def vouchers(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(SHARE)
    expected = b"".join(voucher for _, voucher in sorted(peer.entry for peer in current.peers))
    expect_equal("vouchers, in the order of the entries", current.cohort().step.vouchers, expected)
