"""The arithmetic of uploads that are not ternary: exact gradients, and both rules of the paper's objective."""

from __future__ import annotations

import numpy as np

from lightfr_harness.conformance.cases.aggregate import aggregate_case, random_parts, round_of
from lightfr_harness.conformance.expectations import expect, expect_equal
from lightfr_harness.conformance.twin import Contribution, PaperTwin
from lightfr_harness.conformance.world import World

EXACT, PAPER, CODES = ("exact",), ("paper",), ("codes",)
PAPERS = "docs/protocol.md#the-papers-objective"
# With codes of 32 bits this gradient alone moves a memory by the most that a round may, 2^26.
LARGEST_GRADIENT = 2**23


@aggregate_case("clamp", "One round moves a memory by 2^26 at most, whatever devices send.", kits=EXACT)
def clamp(world: World) -> None:
    bits, user = world.kit.settings.code_bits, random_parts(world, 0)[0].user
    # The second alone undoes the first only if that was cut to the same size.
    for gradient in (64 * LARGEST_GRADIENT, -2 * LARGEST_GRADIENT):
        rows = {row: np.full(bits, gradient) for row in (0, 71)}
        round_of(world, [Contribution(rows, user), *random_parts(world, 0, 0, 0)])
        expect(bool((np.sign(world.twin.signs[0]) == np.sign(gradient)).all()), "a row that turned", "one that did not")


@aggregate_case(
    "large-gradients", "Gradients are signed numbers of four bytes, the lowest byte first.", PAPERS, kits=PAPER
)
def large_gradients(world: World) -> None:
    bits = world.kit.settings.code_bits
    rows = {row: np.array([2**31 - 1, -(2**31)] * (bits // 2)) for row in (3, 64)}
    round_of(world, [Contribution(rows, np.ones(bits, np.int64))] * world.kit.settings.goal)


@aggregate_case("balance-alone", "The balance moves rows that no device sent, too.", PAPERS, kits=PAPER)
def balance_alone(world: World) -> None:
    # The rounds before may have left rows that the balance leaves as they are: random ones come first.
    round_of(world, random_parts(world, 72, 72, 72, 72))
    before = world.twin.codes
    round_of(world, random_parts(world, 0, 0, 0, 0))
    expect(world.twin.codes != before, "a balance that moves codes", "none: run it again")


@aggregate_case(
    "codes-nobody-sent", "A row that no device sent keeps its code: nobody voted on it.", PAPERS, kits=CODES
)
def codes_nobody_sent(world: World) -> None:
    before = world.twin.codes
    round_of(world, random_parts(world, 0, 0, 0, 0))
    expect_equal("codes after a round without rows", world.twin.codes, before)


@aggregate_case(
    "vote-of-zero", "Votes that come to zero keep the old bit, whether it was -1 or +1.", PAPERS, kits=PAPER
)
def vote_of_zero(world: World) -> None:
    if not isinstance(world.twin, PaperTwin):
        raise TypeError("this case is for the paper's objective")
    round_of(world, random_parts(world, 72, 72, 72, 72))
    # One device votes against the balance, exactly.
    rows = dict(enumerate(world.twin.balance_term()[:72]))
    round_of(world, [Contribution(rows, world.twin.signs[0]), *random_parts(world, 0, 0, 0)])


@aggregate_case("vote-of-none", "As many codes for a bit as against it keep the old one.", PAPERS, kits=CODES)
def vote_of_none(world: World) -> None:
    one = random_parts(world, 72)[0]
    other = Contribution({row: -elements for row, elements in one.rows.items()}, one.user)
    round_of(world, [one, other, *random_parts(world, 0, 0)])
