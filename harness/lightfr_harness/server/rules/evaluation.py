"""What the sums of evaluation rounds say: how well each candidate ranks, and which one devices shall use."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lightfr.rankings import GROUPS, RankBy, Ranking
from lightfr.secagg.noise import EVALUATION_VARIANCE, ternary_room
from lightfr.training.constants import REFINE_FROM_BITS, Recency
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.server.rules.plausible import ImplausibleSumError, Numbers

# What popularity adds, in fourths. Each candidate says more of the devices that compare it, so they are few.
_PRIORS = (0, 8, 32, 128)
_REFINED_PRIOR = 8
# How far the nets of a group usually lie from those of all users, as a variance: of .03.
_GROUPS_DIFFER = 0.0009
# Of what one opinion says of two candidates, which mostly agree.
_OPINION_VARIANCE = 0.1
# By how many standard deviations a candidate must be better than popularity; and the most that is asked of it where the
# noise is no more than that of four evaluations in mode SECAGG, so that trials with few devices can choose.
_SURE, _SURE_ENOUGH, _USUAL_NOISE = 2.0, 0.25, 4 * EVALUATION_VARIANCE
POPULARITY, CHANCE = Ranking(RankBy.POPULARITY), Ranking(RankBy.CHANCE)


def candidates_for(code_bits: int, *, has_counts: bool) -> list[Ranking]:
    """What an evaluation compares: at most 31 rankings."""
    priors, refined_prior = (_PRIORS, _REFINED_PRIOR) if has_counts else ((0,), 0)
    plain = [Ranking(RankBy.CODES, prior, recency, refine=False) for recency in Recency for prior in priors]
    refined = [Ranking(RankBy.CODES, refined_prior, recency, refine=True) for recency in Recency]
    return [*plain, *(refined if code_bits >= REFINE_FROM_BITS else []), POPULARITY, CHANCE]


def to_messages(rankings: list[Ranking]) -> list[manifest_pb2.Ranking]:
    """The rankings as a manifest has them."""
    return [
        manifest_pb2.Ranking(
            by=manifest_pb2.RankBy.Name(ranking.by),
            prior_fourths=ranking.prior_fourths,
            recency=manifest_pb2.Recency.Name(ranking.recency),
            refine=ranking.refine,
        )
        for ranking in rankings
    ]


def variance_of(noise: model_pb2.Noise | None, devices: int) -> float:
    """Of each number in the sum of so many devices."""
    return EVALUATION_VARIANCE if noise is None else devices * (noise.counts_thousandths / 1000) ** 2


def require_plausible_hits(hits: Numbers, survivors: int) -> None:
    """Raise ImplausibleSumError unless so many devices can have said this, but for the noise of mode SECAGG."""
    reach = ternary_room(survivors, EVALUATION_VARIANCE)
    if int(hits.min()) < -reach or int(hits.max()) > survivors + reach:
        raise ImplausibleSumError("a number of an evaluation is below zero or above the number of devices")


@dataclass(frozen=True)
class Evaluated:
    """Sums over one or more evaluation rounds with the same candidates.

    `sums` has the axes group, opinion (0: no dislike, 1: dislike), and 1 + 2 * candidates numbers: how many, then
    for each candidate how many were shown, and how many counted for their place.
    """

    candidates: list[Ranking]
    sums: Numbers
    # Of the noise in each number.
    noise_variance: float = EVALUATION_VARIANCE

    @classmethod
    def of(cls, candidates: list[Ranking], hits: Numbers, noise_variance: float = EVALUATION_VARIANCE) -> Evaluated:
        """What a cohort added up: the block `hits` of docs/secagg.md."""
        shape = len(GROUPS), 2, 1 + 2 * len(candidates)
        return cls(candidates, np.asarray(hits, np.int64).reshape(shape), noise_variance)

    def plus(self, other: Evaluated) -> Evaluated:
        return Evaluated(self.candidates, self.sums + other.sums, self.noise_variance + other.noise_variance)

    def nets(self, group: int | None = None) -> npt.NDArray[np.float64]:
        """For each candidate, what counted for opinions less what counted for dislikes, for one opinion of the group.

        That is mean NDCG@10 with disliked items counted negative. None: all groups.
        """
        sums = self.sums.sum(axis=0) if group is None else self.sums[group]
        nets: npt.NDArray[np.float64] = (sums[0, 2::2] - sums[1, 2::2]) / self.opinions(group)
        return nets

    def opinions(self, group: int | None = None) -> int:
        sums = self.sums.sum(axis=0) if group is None else self.sums[group]
        return max(1, int(sums[0, 0] + sums[1, 0]))

    def best(self) -> list[Ranking]:
        """One ranking for each group: the best by its likely net if it is surely better than popularity, else that.

        Where codes hardly help, what noise makes the best of many is often worse than popularity.
        """
        return [self._best(self.likely_nets(group), self.doubt(group)) for group in range(len(GROUPS))]

    def likely_nets(self, group: int) -> npt.NDArray[np.float64]:
        """What candidates are chosen by: HR@10 and NDCG@10, dislikes counted negative, half of each.

        That of a group lies between its own and that of all users: the nearer to all, the less is known of the group.
        """
        n, heard = self.opinions(group), self._heard()
        of_all = self._without_chance(np.sum([*map(self._gains, heard)], axis=0)) / sum(map(self.opinions, heard)) / 2
        own = self._without_chance(self._gains(group)) / n / 2
        return of_all + (own - of_all) * self._own_share(group)

    def doubt(self, group: int) -> float:
        """The standard deviation of how far the likely nets of two candidates lie apart: noise, and who was asked.

        A net is half of four sums, so two nets are apart by noise of 8 / 4 of its variance. What priors and recencies
        say together takes some of it away; that is left out.
        """
        own, heard = self._own_share(group), self._heard()
        n_of_all, variance_of_all = sum(map(self.opinions, heard)), len(heard) * self.noise_variance
        parts = (own, self.opinions(group), self.noise_variance), (1 - own, n_of_all, variance_of_all)
        return math.sqrt(sum(part**2 * (2 * noise / n**2 + _OPINION_VARIANCE / n) for part, n, noise in parts))

    def _own_share(self, group: int) -> float:
        """How much of what a group says for itself is believed; the rest is what all say."""
        n = self.opinions(group)
        return _GROUPS_DIFFER / (_GROUPS_DIFFER + self.noise_variance / n**2 + _OPINION_VARIANCE / n)

    def _gains(self, group: int) -> Numbers:
        """For each candidate, what was shown and what counted: two numbers with their own noise say more than one."""
        likes, dislikes = self.sums[group][:, 1:].reshape(2, -1, 2).sum(axis=2)
        gains: Numbers = likes - dislikes
        return gains

    def _heard(self) -> list[int]:
        """The groups with more opinions than noise alone may give; the others would only add theirs. All, if none."""
        least = 2 * (2 * self.noise_variance) ** 0.5
        return [group for group in range(len(GROUPS)) if self.opinions(group) > least] or list(range(len(GROUPS)))

    def _without_chance(self, gains: Numbers) -> npt.NDArray[np.float64]:
        """Gains with less noise: where each prior is tried with each recency, what the two give is taken to add up."""
        smooth = gains.astype(np.float64)
        for place, ranking in enumerate(self.candidates):
            alike = [i for i, other in enumerate(self.candidates) if (other.by, other.refine) == ranking[::3]]
            prior = [i for i in alike if self.candidates[i].prior_fourths == ranking.prior_fourths]
            recency = [i for i in alike if self.candidates[i].recency == ranking.recency]
            if len(prior) * len(recency) == len(alike):
                smooth[place] = gains[prior].mean() + gains[recency].mean() - gains[alike].mean()
        return smooth

    def _best(self, nets: npt.NDArray[np.float64], doubt: float) -> Ranking:
        kinds = [ranking.by for ranking in self.candidates]
        best = max((i for i, by in enumerate(kinds) if by == RankBy.CODES), key=lambda i: (nets[i], -i))
        popularity = kinds.index(RankBy.POPULARITY)
        most = _SURE_ENOUGH if self.noise_variance <= _USUAL_NOISE else math.inf
        is_surely_better = nets[best] > nets[popularity] + min(_SURE * doubt, most)
        return self.candidates[best if is_surely_better else popularity]

    def figures(self, rankings: list[Ranking]) -> Figures:
        """How well devices rank if each group uses its ranking."""
        places = [self.candidates.index(ranking) for ranking in rankings]
        chosen = np.stack([self.sums[g][:, [0, 1 + 2 * i, 2 + 2 * i]] for g, i in enumerate(places)]).sum(axis=0)
        # A share is a quotient of two numbers, each of them a sum over the groups.
        return Figures.of(chosen, 2 * len(GROUPS) * self.noise_variance)


@dataclass(frozen=True)
class Figures:
    """HR@10 and NDCG@10 of opinions that are no dislikes, HR@10 of dislikes, and half widths of 95 % intervals."""

    opinions: int
    dislikes: int
    hr: float
    ndcg: float
    disliked_hr: float
    hr_within: float
    ndcg_within: float

    @classmethod
    def of(cls, sums: Numbers, noise_variance: float) -> Figures:
        """`sums` has for opinions and dislikes how many, shown and counted, with noise of this variance in a share."""
        (n, shown, counted), (n_disliked, shown_disliked, _) = sums.tolist()
        n, n_disliked = max(1, n), max(1, n_disliked)
        hr, ndcg, disliked = (min(max(x, 0.0), 1.0) for x in (shown / n, counted / n, shown_disliked / n_disliked))
        # Each device's number is 0 or 1, so a mean m has the variance m (1 - m) / n; noise comes on top.
        noise = noise_variance / n**2
        return cls(n, n_disliked, hr, ndcg, disliked, _within(hr, n, noise), _within(ndcg, n, noise))

    def shares(self) -> dict[str, float]:
        """All figures but the numbers of opinions, by the names that logs and metrics use."""
        return {
            "hit_rate": self.hr,
            "hit_rate_within": self.hr_within,
            "ndcg": self.ndcg,
            "ndcg_within": self.ndcg_within,
            "disliked_hit_rate": self.disliked_hr,
        }


def _within(mean: float, n: int, noise_variance: float) -> float:
    return float(1.96 * (mean * (1 - mean) / n + noise_variance) ** 0.5)
