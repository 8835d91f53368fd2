"""Rounds whose uploads are made up here, compared with the twin bit for bit."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from lightfr.v1 import manifest_pb2
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_equal
from lightfr_harness.conformance.registry import CLEAR_KITS, case
from lightfr_harness.conformance.rounds import random_part
from lightfr_harness.conformance.twin import SHIFT, Contribution, Integers, Twin
from lightfr_harness.conformance.versions import mean_user, require_twin
from lightfr_harness.conformance.world import World

PLACE = "docs/protocol.md#the-server"
CLEAR, CATALOGUE = ("clear",), ("clear", "exact")
# Tries until chance has made the wanted numbers.
MOST_TRIES = 500


def aggregate_case(id: str, why: str, place: str = PLACE, *, kits: Iterable[str] = CLEAR) -> Callable[..., object]:
    return case(f"aggregate.{id}", why, place, kits=kits)


def random_parts(world: World, *row_counts: int | None) -> list[Contribution]:
    return [random_part(world.kit, rows) for rows in row_counts]


def round_of(world: World, parts: Sequence[Contribution]) -> manifest_pb2.Manifest:
    """Upload these and compare what comes of it."""
    current = world.fresh_round()
    for device, part in zip(world.devices(len(parts)), parts, strict=True):
        current.upload(device, current.request(current.update_of(part)))
    manifest = current.finish()
    require_twin(world, manifest)
    return manifest


def _signs(world: World, value: int) -> Integers:
    return np.full(world.kit.settings.code_bits, value, np.int64)


@aggregate_case("random-rounds", "Whatever devices send, the codes move as the document says.", kits=CLEAR_KITS)
def random_rounds(world: World) -> None:
    for _ in range(3):
        round_of(world, random_parts(world, *[None] * world.kit.settings.goal))


@aggregate_case("rows-nobody-sent", "Rows that no device sent move by the catalogue term.", kits=CATALOGUE)
def rows_nobody_sent(world: World) -> None:
    before = world.twin.memory.copy()
    round_of(world, random_parts(world, 0, 0, 0, 0))
    expect((world.twin.memory != before).any(), "a catalogue term that moves the memory", "none: run it again")


@aggregate_case("closed-rows", "The row that closed items share moves by the catalogue term alone.")
def closed_rows(world: World) -> None:
    shared = world.twin.memory[-1].copy()
    for _ in range(2):
        round_of(world, random_parts(world, 64, 64, 64, 64))
    expect((world.twin.memory[-1] != shared).any(), "a catalogue term that moves the shared row", "none: run it again")


@aggregate_case("light-uploads", "An upload of fewer than 32 rows weighs 32, one of more what it has.", kits=CATALOGUE)
def light_uploads(world: World) -> None:
    round_of(world, random_parts(world, 1, 31, 32, 33))
    round_of(world, random_parts(world, 64, 33, 1, 0))


@aggregate_case("one-voice", "Sums at their largest, all in one direction, do not overflow or saturate early.")
def one_voice(world: World) -> None:
    for sign in (1, -1):
        rows = {row: _signs(world, sign) for row in range(world.kit.settings.max_rows)}
        round_of(world, [Contribution(rows, _signs(world, sign))] * world.kit.settings.goal)


@aggregate_case("memory", "The memory forgets a sixteenth a round, rounded down, and no more.")
def memory(world: World) -> None:
    part = random_parts(world, 64)[0]
    turned = Contribution({row: -elements for row, elements in part.rows.items()}, part.user)
    for one in (part, part, turned, turned, turned):
        round_of(world, [one, *random_parts(world, 0, 0, 0)])


class _ForgetsTowardZero(Twin):
    """A server whose shift of negative numbers is a division that rounds toward zero."""

    def _forgotten(self) -> Integers:
        shifted: Integers = np.sign(self.memory) * (np.abs(self.memory) >> SHIFT)
        return shifted


class _DividesTowardZero(Twin):
    """A server whose division of the catalogue term rounds toward zero, as in C."""

    def _divided(self, dividend: Integers, divisor: int) -> Integers:
        quotient: Integers = np.sign(dividend) * (np.abs(dividend) // divisor)
        return quotient


@aggregate_case("memory-rounds-down", "What is forgotten of a negative memory is rounded down, not toward zero.")
def memory_rounds_down(world: World) -> None:
    # The first memory is all zeros, of which nothing is forgotten.
    round_of(world, random_parts(world, *[None] * world.kit.settings.goal))
    round_of(world, _parts_that_tell(world, _ForgetsTowardZero))


@aggregate_case("term-rounds-down", "The catalogue term is rounded down, not toward zero, also when it is negative.")
def term_rounds_down(world: World) -> None:
    round_of(world, _parts_that_tell(world, _DividesTowardZero))


def _parts_that_tell(world: World, kind: type[Twin]) -> list[Contribution]:
    """Random uploads after which a server of this kind would have other codes."""
    for _ in range(MOST_TRIES):
        parts, right = random_parts(world, *[None] * world.kit.settings.goal), copy.deepcopy(world.twin)
        wrong = copy.deepcopy(world.twin)
        wrong.__class__ = kind
        for one in (right, wrong):
            one.finish_round(parts)
        if right.codes != wrong.codes:
            return parts
    raise Unexpected("to find uploads that tell servers apart", f"none in {MOST_TRIES} tries: run it again")


@aggregate_case(
    "zero-keeps-the-bit", "A sum of exactly zero keeps the old bit, whether it was -1 or +1.", kits=CATALOGUE
)
def zero_keeps_the_bit(world: World) -> None:
    for wanted in (-1, 1):
        round_of(world, _parts_with(world, partial(_has_zero, wanted=wanted)))


def _has_zero(before: Integers, after: Integers, wanted: int) -> bool:
    return bool(((after == 0) & (before == wanted)).any())


def _parts_with(world: World, condition: Callable[[Integers, Integers], bool]) -> list[Contribution]:
    """Random uploads after which the condition holds for the old signs and the new memory."""
    for _ in range(MOST_TRIES):
        parts, ahead = random_parts(world, *[None] * world.kit.settings.goal), copy.deepcopy(world.twin)
        ahead.finish_round(parts)
        if condition(world.twin.signs, ahead.memory):
            return parts
    raise Unexpected("to find uploads with a sum of zero", f"none in {MOST_TRIES} tries: run it again")


@aggregate_case(
    "mean-user", "The mean user is rounded to the nearest 1/256, halves up, negative ones too.", kits=CATALOGUE
)
def mean_user_rounds(world: World) -> None:
    generator = random.Random()
    for _ in range(2):
        parts = random_parts(world, *(generator.choice((0, 33, 37, 41, 47, 59)) for _ in range(4)))
        manifest = round_of(world, parts)
        expect(any(value < 0 for value in mean_user(manifest)), "a negative mean among 32", "none: run it again")


@aggregate_case("order-of-uploads", "Sums do not depend on who comes first.")
def order_of_uploads(world: World) -> None:
    current = world.fresh_round()
    parts = random_parts(world, 5, 64, 20, 40)
    for device, part in zip(reversed(world.devices(len(parts))), parts, strict=True):
        current.upload(device, current.request(current.update_of(part)))
    require_twin(world, current.finish())


@aggregate_case("fewer-than-the-goal", "What a deadline ends is added up like any other round.")
def fewer_than_the_goal(world: World) -> None:
    current = world.fresh_round()
    for device, part in zip(world.devices(3), random_parts(world, 50, 10, 64), strict=True):
        current.upload(device, current.request(current.update_of(part)))
    current.wait()
    require_twin(world, world.manifest())


@aggregate_case(
    "rest-stays", "Training moves codes and mean user, and nothing else of the model.", "docs/protocol.md#manifest"
)
def rest_stays(world: World) -> None:
    before = world.manifest()
    after = world.fresh_round().finish()
    for name in ("catalogue_parts", "open_rows", "removed_items", "wire_version"):
        expect_equal(f"{name} after a round", getattr(after, name), getattr(before, name))
    for model in (before.model, after.model):
        model.ClearField("mean_user")
    expect_equal("model besides the mean user, after a round", after.model, before.model)
    expect(after.created_unix_seconds >= before.created_unix_seconds, "a later time of making", "an earlier one")
