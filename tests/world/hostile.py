"""Hostile devices and a hostile coordinator, from tests/adversary."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from lightfr.secagg.views import quorum
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.phases import INCLUDING
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


class SmallLyingCohort(LyingCohort):
    """Of fewer devices than the theorem of docs/secagg.md speaks of.

    A quorum is seven tenths rounded down, so among 5 or 7 devices two quorums have but one device in common.
    """

    def has_enough(self, minimum: int) -> bool:
        return bool(Cohort.has_enough(self, minimum)) if self.phase < INCLUDING else super().has_enough(minimum)

    def _begin_to_lie(self) -> None:
        size = self.roster.size
        if 2 * quorum(size) - size <= self._n_colluders:
            self._n_colluders = 0
        super()._begin_to_lie()
        # A colluder that the weather has taken tells nothing.
        self._states = {index: state for index, state in self._states.items() if state is not None}


class Secrets:
    """What LyingCohort asks for: sessions of devices that have acknowledged, and vectors before their masks."""

    def __init__(self) -> None:
        self.states: dict[bytes, Any] = defaultdict(lambda: None)
        self.vectors: dict[bytes, bytes] = {}


def lying_cohort(world: World, honest: Any) -> LyingCohort:
    """A cohort that tells each device other sets, with one colluder where docs/secagg.md allows for one."""
    plan = random.Random(f"plan {world.forecast.seed}").choice((split_survivors, split_included))
    parts = honest._facts, honest._places, honest._peers, honest._blocks_of
    made = SmallLyingCohort(*parts, plan=plan, n_colluders=1, secrets=world.secrets)
    world.lying_cohorts.append(made)
    return made
