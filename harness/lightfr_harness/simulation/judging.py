"""A trained fleet judged on held-out ratings, beside the popularity list."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import cast

import numpy as np

from lightfr.rankings import GROUPS, RankBy, Ranking, group_of
from lightfr_harness.data import Candidates, CatalogueSplit, HeldOut, Split
from lightfr_harness.data.evaluation import CatalogueMetrics, Metrics, Values, group_rows
from lightfr_harness.records import Accuracy, AccuracyAsGiven, AccuracyByCount, CandidateFigures, RankingFields
from lightfr_harness.server.rules.evaluation import Evaluated
from lightfr_harness.simulation import scoring
from lightfr_harness.simulation.choosing import Users, evaluate, rankings_of
from lightfr_harness.simulation.options import FIXED_CODES, RECENCIES, TrainOptions
from lightfr_harness.simulation.scoring import Rows, Way
from lightfr_harness.simulation.training import TrainingRun

# By what accuracy is told before an evaluation has chosen: what devices do that are not told how to rank, but for
# refinement, which takes long.
BEFORE_EVALUATION = Ranking(refine=False)
# Columns of figures: HR and NDCG with ties as devices break them.
_HR_DEVICE, _NDCG_DEVICE = 2, 3
_RECENCY_NAMES = {recency: name for name, recency in RECENCIES.items()}


def judge(options: TrainOptions, run: TrainingRun, split: Split | CatalogueSplit) -> Metrics | CatalogueMetrics:
    """Accuracy of the current model on the held-out items, without an evaluation."""
    users = _users(run, split)
    ways = ways_of(options, users, [options.ranking or BEFORE_EVALUATION] * len(GROUPS))
    return scoring.means(scoring.figures(users.model, ways, split.test), split.test)


def _users(run: TrainingRun, split: Split | CatalogueSplit) -> Users:
    return Users(run.published(), run.fleet, rankings_of(run.server), scoring.users_of(split.test))


def ways_of(options: TrainOptions, users: Users, by_group: list[Ranking]) -> dict[int, Way]:
    """How each user ranks; `init` and `random` keep the codes that they began with, as the paper's ablation does."""
    if options.aggregate in FIXED_CODES:
        return {user: Way(device.code) for user, device in users.devices.items()}
    return users.chosen_ways(by_group)


@dataclass(frozen=True)
class Judged:
    """The finished model beside the popularity list: over all users, by their number of ratings, and as given."""

    metrics: Metrics | CatalogueMetrics
    popularity: Accuracy
    by_count: list[AccuracyByCount]
    as_given: AccuracyAsGiven | None

    @classmethod
    def of(cls, options: TrainOptions, run: TrainingRun, split: Split | CatalogueSplit) -> Judged:
        """Let the fleet choose how to rank, unless the options say it, and only then look at the test."""
        evaluated = None if options.ranking else evaluate(run, rankings_of(run.server))
        by_group = evaluated.best() if evaluated else [options.ranking or BEFORE_EVALUATION] * len(GROUPS)
        users, test = _users(run, split), split.test
        ways = ways_of(options, users, by_group)
        learned, popular = scoring.figures(users.model, ways, test), scoring.popularity_figures(split.train, test)
        tried = _Tried(evaluated, users, test)
        by_count = []
        for name, rows in group_rows(split.train, test.user_index).items():
            each: AccuracyByCount = {
                "ratings": name,
                "learned": accuracy_of(scoring.means(learned, test, rows)),
                "popularity": accuracy_of(scoring.means(popular, test, rows)),
            }
            group = group_of(len(users.devices[int(test.user_index[rows][0])].interactions))
            if options.objective != "paper":
                each["ranking"] = ranking_fields(by_group[group])
            if evaluated:
                each["evaluated_opinions"] = evaluated.opinions(group)
                each["candidates"] = tried.in_group(group, rows)
            by_count.append(each)
        as_given: AccuracyAsGiven | None = None
        if isinstance(split, Split) and (given := split.test_as_given):
            as_given = {
                "learned": accuracy_of(scoring.means(scoring.figures(users.model, ways, given), given)),
                "popularity": accuracy_of(scoring.judge_popularity(split.train, given)),
            }
        return cls(scoring.means(learned, test), accuracy_of(scoring.means(popular, test)), by_count, as_given)


class _Tried:
    """What every candidate of an evaluation would have given in the test, so that one sees whether the choice is right.

    Chance is left out: nobody may choose it.
    """

    def __init__(self, evaluated: Evaluated | None, users: Users, test: Candidates | HeldOut) -> None:
        self._evaluated = evaluated
        self._is_disliked = test.is_disliked if isinstance(test, Candidates) else np.zeros(len(test), np.bool_)
        self._figures: dict[Ranking, Values] = {
            ranking: scoring.figures(users.model, users.ways(ranking), test)
            for ranking in (evaluated.candidates if evaluated else [])
            if ranking.by != RankBy.CHANCE
        }

    def in_group(self, group: int, rows: Rows) -> list[CandidateFigures]:
        nets = self._evaluated.nets(group).tolist() if self._evaluated else []
        signs = np.where(self._is_disliked, -1, 1)[rows]
        return [
            {
                "ranking": ranking_fields(ranking),
                "evaluated_net": net,
                "test_net": float((signs * figures[rows, _NDCG_DEVICE]).mean()),
                "test_hr": float(figures[rows, _HR_DEVICE].mean()),
                "test_ndcg": float(figures[rows, _NDCG_DEVICE].mean()),
            }
            for (ranking, figures), net in zip(self._figures.items(), nets, strict=False)
        ]


def ranking_fields(ranking: Ranking) -> RankingFields:
    """A ranking as records have it. Popularity alone knows no codes, and so neither recency nor refinement."""
    if ranking.by == RankBy.POPULARITY:
        return {"by": "popularity", "prior": 0.0, "recency": "off", "refine": False}
    return {
        "by": ranking.by.name.lower(),
        "prior": ranking.prior_fourths / 4,
        "recency": _RECENCY_NAMES[ranking.recency],
        "refine": ranking.refine,
    }


def accuracy_of(metrics: Metrics | CatalogueMetrics) -> Accuracy:
    """Accuracy as records have it: without figures of users that there are none of."""
    return cast("Accuracy", {name: value for name, value in asdict(metrics).items() if value is not None})
