"""Evaluation rounds: devices say how well each candidate ranks, and the codes stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2
from lightfr_harness.conformance.expectations import expect, expect_between, expect_equal
from lightfr_harness.conformance.masking import UPLOAD, Verdict
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import Device, World

EVALUATION = ("evaluation",)
PLACE = "docs/protocol.md#evaluation"
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_2, STEP_5 = "docs/secagg.md#2-share", "docs/secagg.md#5-mask-and-upload"
# The candidate that counts for all devices in the first evaluation, and against it in the second.
BEST = 2


def _require_kind(current: SecureRound, kind: str) -> None:
    for peer in current.peers:
        expect_equal("kind", pb.RoundKind.Name(peer.assignment.kind), f"ROUND_KIND_{kind}")


def _train(world: World) -> SecureRound:
    current = world.secure.fresh()
    _require_kind(current, "TRAINING")
    current.finish()
    return current


def _evaluated(world: World, verdict: Verdict, devices: Sequence[Device] = ()) -> SecureRound:
    """An evaluation in which all six devices say the same, as far as it was given places."""
    current = world.secure.fresh(devices=devices, verdicts=[verdict] * 6)
    _require_kind(current, "EVALUATION")
    return current


def first(world: World) -> None:
    """An evaluation after a round of training: one candidate counts for all devices, and no other for any."""
    _train(world)
    _evaluated(world, Verdict([BEST], group=2)).finish()


def after_first(world: World) -> None:
    """The training round behind it."""
    world.secure.shared(first)
    _train(world)


def second(world: World) -> None:
    """All devices dislike what the candidate shows that the first evaluation chose."""
    world.secure.shared(after_first)
    _evaluated(world, Verdict([BEST], is_disliked=True, group=2)).finish()


def _published_after(current: SecureRound) -> manifest_pb2.Manifest:
    current.require_played()
    return current.manifest


@case(
    "evaluation.candidates",
    "Their places are those in the sum, so a version that is evaluated must have some.",
    PLACE,
    kits=EVALUATION,
)
def candidates(world: World) -> None:
    expect_between("candidates", len(world.manifest().candidates), BEST + 1, 31)


@case(
    "evaluation.kind",
    "A device must know that it evaluates before it says how.",
    PHASES,
    kits=EVALUATION,
)
def kind(world: World) -> None:
    _require_kind(world.secure.shared(first), "EVALUATION")


@case(
    "evaluation.roster",
    "The roster says that the cohort evaluates, so all agree on it.",
    STEP_2,
    kits=EVALUATION,
)
def roster(world: World) -> None:
    world.secure.shared(first).cohort().require_signed(world.manifest_key)


@case(
    "evaluation.bits",
    "For each group, liked and disliked: one number, and two for each candidate, of five bits.",
    STEP_5,
    kits=EVALUATION,
)
def bits(world: World) -> None:
    current = world.secure.shared(first)
    current.require_played()
    size = 8 * (1 + 2 * len(current.manifest.candidates)) * 5 // 8
    expect_equal("bytes of an accepted vector", len(current.peers[0].good(UPLOAD).masked_vector), size)


@case("evaluation.same-codes", "Nobody trains in it: the next version has the same codes.", PLACE, kits=EVALUATION)
def same_codes(world: World) -> None:
    current = world.secure.shared(first)
    manifest = _published_after(current)
    expect_equal("model_version after one round of training and an evaluation", manifest.model_version, 3)
    current.require_exact()


@case("evaluation.choice", "What counts for all devices is what all groups rank by next.", PLACE, kits=EVALUATION)
def choice(world: World) -> None:
    manifest = _published_after(world.secure.shared(first))
    expect_equal("rankings", list(manifest.rankings), [manifest.candidates[BEST]] * 4)


@case("evaluation.stays", "Devices go on to rank so until the next evaluation.", PLACE, kits=EVALUATION)
def stays(world: World) -> None:
    chosen = _published_after(world.secure.shared(first))
    later = _published_after(world.secure.shared(after_first))
    expect_equal("rankings of the version after that", list(later.rankings), list(chosen.rankings))
    expect_equal("candidates of the version after that", list(later.candidates), list(chosen.candidates))


@case("evaluation.training", "After an evaluation the cohort trains on, with the same memory.", PHASES, kits=EVALUATION)
def training(world: World) -> None:
    current = world.secure.shared(after_first)
    current.require_played()
    current.require_exact()


@case("evaluation.dislikes", "A ranking that shows people what they dislike is not chosen.", PLACE, kits=EVALUATION)
def dislikes(world: World) -> None:
    manifest = _published_after(world.secure.shared(second))
    expect_equal("number of rankings", len(manifest.rankings), 4)
    unwanted = manifest.candidates[BEST]
    expect(unwanted not in manifest.rankings, "another ranking than the one that shows disliked items", unwanted)


@case(
    "evaluation.implausible",
    "More hits than devices are a lie: the sum is dropped, and the rankings stay.",
    PLACE,
    kits=EVALUATION,
)
def implausible(world: World) -> None:
    before = _published_after(world.secure.shared(second))
    _train(world)
    liar = Verdict([BEST + 1], says=14)
    newcomers = [world.newcomer() for _ in range(world.kit.settings.places)]
    current = world.secure.fresh(devices=newcomers, verdicts=[liar, *[Verdict([])] * 5])
    _require_kind(current, "EVALUATION")
    current.walk("RevealShares")
    current.require_end(pb.ROUND_STATE_ABANDONED)
    current.require_exact()
    expect_equal("rankings after a dropped evaluation", list(current.manifest.rankings), list(before.rankings))
