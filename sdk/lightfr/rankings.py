"""How a device ranks: by codes and what popularity adds, or by popularity alone. A signed manifest says which."""

from __future__ import annotations

from enum import IntEnum
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from lightfr.errors import ManifestError
from lightfr.training.constants import Recency

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lightfr.ranking import Prior
    from lightfr.v1 import manifest_pb2

# Devices are told how to rank by how many opinions their user has: each group begins at so many.
GROUPS = (0, 5, 20, 100)
MOST_CANDIDATES = 31
_MOST_STEPS = 64
_MOST_POPULARITY = 1_023
MOST_FOURTHS = 1_024


class RankBy(IntEnum):
    """By what items are ranked; the numbers are those of the wire."""

    CODES = 1
    POPULARITY = 2
    CHANCE = 3


class Ranking(NamedTuple):
    """One way to rank."""

    by: RankBy = RankBy.CODES
    # What popularity adds to scores, in fourths of (f / 64) ln(1 + count).
    prior_fourths: int = 0
    recency: Recency = Recency.STRONG
    refine: bool = True


# How a device ranks when its server does not say.
UNSAID = Ranking()


class Rankings(NamedTuple):
    """What a manifest says about ranking."""

    # (first row, popularity) by step; empty: the server has no counts.
    popularities: tuple[tuple[int, int], ...]
    # One for each group; empty: the server does not say.
    by_group: tuple[Ranking, ...]
    candidates: tuple[Ranking, ...]

    @classmethod
    def of(cls, manifest: manifest_pb2.Manifest) -> Rankings:
        """Read them; raises ManifestError where the manifest contradicts manifest.proto."""
        steps = _steps(manifest)
        by_group, candidates = _rankings(manifest.rankings), _rankings(manifest.candidates)
        _require(len(by_group) in (0, len(GROUPS)), f"it must have {len(GROUPS)} rankings or none")
        _require(all(ranking.by != RankBy.CHANCE for ranking in by_group), "chance is only a candidate")
        _require(len(candidates) <= MOST_CANDIDATES, f"it has more than {MOST_CANDIDATES} candidates")
        return cls(steps, by_group, candidates)

    def for_user(self, n_opinions: int) -> Ranking:
        """Return how to rank for a user with so many opinions."""
        return self.by_group[group_of(n_opinions)] if self.by_group else UNSAID

    def prior(self, ranking: Ranking, code_bits: int) -> Prior | None:
        """Return what popularity adds to scores; None: nothing."""
        from lightfr.ranking import Prior

        if not (self.popularities and ranking.prior_fourths):
            return None
        scale = ranking.prior_fourths * code_bits
        return Prior((first, (scale * popularity + 2048) // 4096) for first, popularity in self.popularities)


def group_of(n_opinions: int) -> int:
    """Return the place of the group in GROUPS."""
    return max(place for place, first in enumerate(GROUPS) if n_opinions >= first)


def _steps(manifest: manifest_pb2.Manifest) -> tuple[tuple[int, int], ...]:
    if not manifest.HasField("prior"):
        return ()
    firsts, popularities = manifest.prior.first_items, manifest.prior.popularities
    _require(len(firsts) == len(popularities) and 1 <= len(firsts) <= _MOST_STEPS, "its prior must have 1 to 64 steps")
    _require(firsts[0] == 0 and all(a < b for a, b in pairwise(firsts)), "the steps of its prior do not ascend from 0")
    _require(firsts[-1] < manifest.model.item_count, "a step of its prior begins behind the last row")
    falls = all(a >= b for a, b in pairwise(popularities))
    _require(falls and popularities[0] <= _MOST_POPULARITY, "the popularities of its prior rise, or are above 1,023")
    return tuple(zip(firsts, popularities, strict=True))


def _rankings(messages: Iterable[manifest_pb2.Ranking]) -> tuple[Ranking, ...]:
    return tuple(map(_ranking, messages))


def _ranking(message: manifest_pb2.Ranking) -> Ranking:
    _require(int(message.by) in set(RankBy), "a ranking goes by something unknown")
    _require(int(message.recency) in {0, *Recency}, "the recency of a ranking is unknown")
    _require(message.prior_fourths <= MOST_FOURTHS, "the prior of a ranking is above 1,024 fourths")
    recency = Recency(message.recency or Recency.OFF)
    return Ranking(RankBy(message.by), message.prior_fourths, recency, message.refine)


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ManifestError(f"a manifest was refused: {reason}")
