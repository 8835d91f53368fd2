"""Hostile devices and a hostile coordinator, from tests/adversary."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from tests.adversary import test_liars as liars
from tests.adversary.live import LyingCohort
from tests.adversary.plans import split_included, split_survivors

if TYPE_CHECKING:
    from tests.world.world import World

_LIES = (
    liars.seals_garbage, liars.complains_about_everybody, liars.signs_nonsense, liars.reveals_false_shares,
    liars.uploads_garbage,
)  # fmt: skip


class _Liar:
    """Takes the lies of tests/adversary as steps, without replacing anything."""

    def __init__(self) -> None:
        self.steps: dict[str, Any] = {}

    def lie(self, step: str, lying: Any) -> None:
        self.steps[step] = lying


def lie_in(chance: random.Random) -> dict[str, Any]:
    """The steps in which a device lies, and how."""
    liar = _Liar()
    chance.choice(_LIES)(liar)
    return liar.steps


def lying_cohort(world: World, honest: Any) -> LyingCohort:
    """A cohort that tells each device other sets, with one colluder."""
    plan = random.Random(f"plan {world.forecast.seed}").choice((split_survivors, split_included))
    parts = honest._facts, honest._places, honest._peers, honest._blocks_of
    made = LyingCohort(*parts, plan=plan, n_colluders=1, secrets=world.secrets)
    world.lying_cohorts.append(made)
    return made
