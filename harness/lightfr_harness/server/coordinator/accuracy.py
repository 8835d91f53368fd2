"""How good the model is for users: what evaluation rounds say, how devices shall rank by it, and what people report."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import islice
from typing import Any

import numpy as np

from lightfr.rankings import GROUPS, UNSAID, RankBy, Ranking, Rankings
from lightfr.training.constants import Recency
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.server.rules import AggregationRule, CatalogueRule
from lightfr_harness.server.rules.evaluation import (
    POPULARITY,
    Evaluated,
    Figures,
    candidates_for,
    require_plausible_hits,
    to_messages,
    variance_of,
)
from lightfr_harness.server.rules.plausible import Numbers
from lightfr_harness.server.rules.popularity import prior_of

# So many evaluations of the same candidates are added up to choose by.
POOLED = 4
# Evaluations that are kept, and shown.
REMEMBERED_EVALUATIONS = 256
# A report is compared with those of so many versions.
_COMPARED_VERSIONS = 16


@dataclass(frozen=True)
class Evaluation:
    """What a cohort added up in an evaluation round."""

    round_number: int
    # Whose codes and candidates it was about.
    model_version: int
    evaluated: Evaluated

    @classmethod
    def of(cls, round_number: int, manifest: manifest_pb2.Manifest, hits: Numbers, devices: int) -> Evaluation:
        """Take the sum over so many devices; raises ImplausibleSumError when they cannot have said it."""
        model = manifest.model
        noise = model.noise if model.HasField("noise") else None
        if noise is None:  # In mode SECAGG_DP the noise is too large to tell.
            require_plausible_hits(hits, devices)
        candidates = list(Rankings.of(manifest).candidates)
        return cls(round_number, manifest.model_version, Evaluated.of(candidates, hits, variance_of(noise, devices)))

    def row(self) -> tuple[int, int, str, bytes, float]:
        """As the database keeps it."""
        kept = self.evaluated
        sums = kept.sums.astype("<i8").tobytes()
        return self.round_number, self.model_version, json.dumps(kept.candidates), sums, kept.noise_variance

    @classmethod
    def from_row(cls, number: int, version: int, candidates: str, sums: bytes, noise_variance: float) -> Evaluation:
        """The reverse."""
        fields = json.loads(candidates)
        rankings = [Ranking(RankBy(by), prior, Recency(recency), refine) for by, prior, recency, refine in fields]
        return cls(number, version, Evaluated.of(rankings, np.frombuffer(sums, "<i8"), noise_variance))


def in_words(ranking: Ranking) -> str:
    """A ranking for people."""
    if ranking.by != RankBy.CODES:
        return ranking.by.name.lower()
    recency = "" if ranking.recency == Recency.OFF else f", {ranking.recency.name.lower()} recency"
    popularity = f", popularity times {ranking.prior_fourths / 4:g}" if ranking.prior_fourths else ""
    return f"codes{popularity}{recency}{', refined' if ranking.refine else ''}"


@dataclass(frozen=True)
class Quality:
    """How well devices rank with the codes of a version: as its evaluation chose, and by popularity alone."""

    model_version: int
    rankings: list[Ranking]
    chosen: Figures
    popularity: Figures

    def facts(self) -> dict[str, object]:
        """For a log."""
        figures = {"": self.chosen, "popularity_": self.popularity}
        shares = {f"{of}{name}": round(value, 4) for of, one in figures.items() for name, value in one.shares().items()}
        opinions = {"opinions": self.chosen.opinions, "dislikes": self.chosen.dislikes}
        return {
            "model_version": self.model_version,
            **opinions,
            **shares,
            "rankings": list(map(in_words, self.rankings)),
        }


@dataclass(frozen=True)
class Evaluations:
    """The last evaluations, oldest first."""

    kept: tuple[Evaluation, ...] = ()

    def plus(self, evaluation: Evaluation) -> Evaluations:
        return Evaluations((*self.kept, evaluation)[-REMEMBERED_EVALUATIONS:])

    def rankings(self) -> list[Ranking]:
        """One for each group, as the last evaluations choose; empty: there was none."""
        return self._chosen(len(self.kept)) if self.kept else []

    def _chosen(self, n: int) -> list[Ranking]:
        """What was chosen after the n-th evaluation: by it, and by those before it that had the same candidates."""
        newest, *before = [one.evaluated for one in reversed(self.kept[:n])]
        same = (one for one in before if one.candidates == newest.candidates)
        return reduce(Evaluated.plus, islice(same, POOLED - 1), newest).best()

    @cached_property
    def qualities(self) -> list[Quality]:
        """What each evaluation says of its own version, oldest first."""
        found = []
        for n, one in enumerate(self.kept, 1):
            rankings, evaluated = self._chosen(n), one.evaluated
            by_popularity = evaluated.figures([POPULARITY] * len(GROUPS))
            found.append(Quality(one.model_version, rankings, evaluated.figures(rankings), by_popularity))
        return found

    def has_fallen(self, tolerance: float | None) -> bool:
        """Whether the newest hit rate is below the best of the last four by more than the tolerance and what is chance.

        That is 1.96 standard deviations of the difference. No tolerance: never.
        """
        if tolerance is None or not self.kept:
            return False
        *before, newest = [quality.chosen for quality in self.qualities[-POOLED:]]
        falls = (earlier.hr - newest.hr - math.hypot(earlier.hr_within, newest.hr_within) for earlier in before)
        return any(fall > tolerance for fall in falls)


def about_ranking(
    rule: AggregationRule, chosen: list[Ranking], *, is_day_zero: bool, public_counts: Numbers | None = None
) -> dict[str, Any]:
    """The fields of a manifest that say how devices rank. `chosen`: what evaluations say; empty: nothing yet.

    Counts that somebody gave are told, however small; those that devices counted only from the gate on.

    Without, devices rank by popularity on day zero, if there are counts, and later by the codes.
    """
    is_counted = isinstance(rule, CatalogueRule) and rule.counted_devices > 0
    counts = rule.device_counts if public_counts is None else public_counts
    prior = prior_of(counts, rule.gate if is_counted and public_counts is None else 1, rule.removed)
    if not chosen and not is_day_zero:
        chosen = [UNSAID] * len(GROUPS)
    elif not chosen and prior is not None:
        chosen = [POPULARITY] * len(GROUPS)
    is_secure = rule.privacy_mode != model_pb2.PRIVACY_MODE_CLEAR
    candidates = candidates_for(rule.code_bits, has_counts=prior is not None) if is_secure else []
    return {"prior": prior, "rankings": to_messages(chosen), "candidates": to_messages(candidates)}


@dataclass(frozen=True)
class AccuracyReport:
    """What somebody measured on devices that were held out."""

    model_version: int
    users: int
    hit_rate: float
    ndcg: float


def has_fallen(reports: Mapping[int, AccuracyReport], tolerance: float | None) -> bool:
    """Whether the newest hit rate is below the best of the last versions by more than the tolerance. None: never."""
    if tolerance is None or not reports:
        return False
    newest = max(reports)
    recent = (report.hit_rate for version, report in reports.items() if newest - version < _COMPARED_VERSIONS)
    return reports[newest].hit_rate < max(recent) - tolerance
