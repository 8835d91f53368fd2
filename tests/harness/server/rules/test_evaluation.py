"""What the sums of evaluation rounds say, and which rankings they choose."""

import numpy as np
import pytest

from lightfr.rankings import GROUPS, MOST_CANDIDATES, RankBy, Ranking, Rankings
from lightfr.training.constants import Recency
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.server.rules.evaluation import (
    CHANCE,
    POPULARITY,
    Evaluated,
    candidates_for,
    require_plausible_hits,
    to_messages,
    variance_of,
)
from lightfr_harness.server.rules.plausible import ImplausibleSumError

CODES = Ranking(RankBy.CODES, 0, Recency.OFF, refine=False)
PRIOR = Ranking(RankBy.CODES, 8, Recency.WEAK, refine=False)
CANDIDATES = [CODES, PRIOR, POPULARITY, CHANCE]


def evaluated(*groups, candidates=CANDIDATES):
    """Groups of (opinions, dislikes), each of which has how many, then (shown, counted) by candidate."""
    hits = np.zeros((len(GROUPS), 2, 1 + 2 * len(candidates)), np.int64)
    for group, kinds in enumerate(groups):
        for kind, (n, *by_candidate) in enumerate(kinds):
            hits[group, kind] = [n, *np.ravel(by_candidate)]
    return Evaluated.of(candidates, hits.ravel())


NONE = (0, (0, 0), (0, 0), (0, 0), (0, 0))
LIKES_CODES = (200, (150, 100), (140, 90), (120, 70), (40, 20))
LIKES_POPULARITY = (200, (90, 50), (100, 60), (160, 110), (40, 20))


@pytest.mark.parametrize("bits", [8, 64, 128, 256, 1024])
@pytest.mark.parametrize("has_counts", [True, False])
def test_candidates_are_few_and_all_different_and_have_popularity_and_chance(bits, has_counts):
    candidates = candidates_for(bits, has_counts=has_counts)
    assert len(set(candidates)) == len(candidates) <= MOST_CANDIDATES
    assert {POPULARITY, CHANCE} < set(candidates)
    assert any(ranking.prior_fourths for ranking in candidates) == has_counts
    assert {ranking.recency for ranking in candidates if ranking.by == RankBy.CODES} == set(Recency)


@pytest.mark.parametrize(("has_counts", "priors", "refined"), [(True, [0, 8, 32, 128], 8), (False, [0], 0)])
def test_codes_come_with_each_recency_and_each_prior_and_from_128_bits_on_refined(has_counts, priors, refined):
    plain = [
        Ranking(RankBy.CODES, p, r, refine=False) for r in (Recency.OFF, Recency.WEAK, Recency.STRONG) for p in priors
    ]
    also = [Ranking(RankBy.CODES, refined, r, refine=True) for r in (Recency.OFF, Recency.WEAK, Recency.STRONG)]
    assert candidates_for(120, has_counts=has_counts) == [*plain, POPULARITY, CHANCE]
    assert candidates_for(128, has_counts=has_counts) == [*plain, *also, POPULARITY, CHANCE]


def test_rankings_are_read_from_a_manifest_as_they_were_written():
    candidates = candidates_for(256, has_counts=True)
    read = Rankings.of(manifest_pb2.Manifest(candidates=to_messages(candidates)))
    assert list(read.candidates) == candidates


def test_each_group_gets_what_is_best_for_it():
    one = evaluated((LIKES_CODES, NONE), (LIKES_POPULARITY, NONE), (LIKES_CODES, NONE), (LIKES_POPULARITY, NONE))
    it = Evaluated(one.candidates, 9 * one.sums)
    assert it.best() == [CODES, POPULARITY, CODES, POPULARITY]


def test_a_group_of_few_opinions_goes_by_what_is_best_for_all():
    most = (1800, (1350, 900), (1260, 810), (1080, 630), (360, 180))
    few = (100, (20, 10), (40, 16), (30, 12), (10, 10))
    assert evaluated((most, NONE), (few, NONE)).best()[:2] == [CODES, CODES]
    enough = (1100, *((11 * shown, 11 * counted) for shown, counted in few[1:]))
    assert evaluated((most, NONE), (enough, NONE)).best()[:2] == [CODES, PRIOR]


def test_the_nets_of_a_group_lie_between_its_own_and_those_of_all_by_what_is_known_of_it():
    it = evaluated((LIKES_CODES, NONE), (LIKES_POPULARITY, NONE))
    # Shown and counted together, 250 of 400 and 390 of 800. 128 / 200^2 + .1 / 200 = .0037: of how far the group lies
    # from all users, .0009 / .0046 is believed.
    assert it.likely_nets(0)[0] == pytest.approx(0.4875 + (0.625 - 0.4875) * 0.0009 / 0.0046)
    assert it.likely_nets(2)[0] == pytest.approx(0.4875, abs=0.001)


def test_what_priors_and_recencies_give_is_taken_to_add_up():
    grid = [Ranking(RankBy.CODES, prior, recency, refine=False) for recency in Recency for prior in (0, 8)]
    counted = [60, 90, 70, 70, 80, 110]
    it = evaluated(
        ((200, *((0, n) for n in counted), (0, 85), (0, 0)), (0, *[(0, 0)] * 8)), candidates=[*grid, POPULARITY, CHANCE]
    )
    # The priors have the means 70 and 90, the recencies 75, 70 and 95, and all 80.
    assert (it.likely_nets(0) * 400).tolist() == pytest.approx([65, 85, 60, 80, 85, 105, 85, 0])


def test_groups_of_which_nothing_but_noise_is_heard_say_nothing_about_all():
    # 2 sqrt(2 * 128) = 32.
    loud, quiet = (
        evaluated((LIKES_CODES, NONE), ((32, (0, 0), (30, 30), (0, 0), (0, 0)), NONE)),
        evaluated((LIKES_CODES, NONE)),
    )
    assert loud.likely_nets(0).tolist() == quiet.likely_nets(0).tolist()
    heard = evaluated((LIKES_CODES, NONE), ((33, (0, 0), (30, 30), (0, 0), (0, 0)), NONE))
    assert heard.likely_nets(0).tolist() != quiet.likely_nets(0).tolist()
    nobody = evaluated(((9, (9, 9), (0, 0), (0, 0), (0, 0)), NONE))
    assert nobody.best() == [CODES] * 4


def test_showing_what_is_disliked_counts_against_a_ranking():
    dislikes = (50, (40, 30), (0, 0), (40, 20), (10, 5))
    it = evaluated((LIKES_CODES, dislikes))
    assert it.best()[0] == PRIOR
    assert it.nets(0).tolist() == [70 / 250, 90 / 250, 50 / 250, 15 / 250]


def test_nets_and_opinions_of_all_groups_are_those_of_their_sums():
    dislikes = (50, (40, 30), (0, 0), (40, 20), (10, 5))
    it = evaluated((LIKES_CODES, dislikes), (NONE, NONE), (LIKES_POPULARITY, NONE))
    assert (it.opinions(), it.opinions(0), it.opinions(2)) == (450, 250, 200)
    assert it.nets().tolist() == [120 / 450, 150 / 450, 160 / 450, 35 / 450]


def test_a_group_without_opinions_counts_as_one_opinion():
    it = evaluated((NONE, NONE), ((-7, (1, 1), (0, 0), (0, 0), (0, 0)), NONE))
    assert [it.opinions(group) for group in (0, 1, None)] == [1, 1, 1]
    assert it.nets(1).tolist() == [1, 0, 0, 0]


def test_the_sums_of_other_candidates_are_not_taken():
    with pytest.raises(ValueError, match="reshape"):
        Evaluated.of(CANDIDATES, evaluated(candidates=CANDIDATES[:3]).sums.ravel())


def test_the_first_of_equals_is_chosen_and_chance_never():
    same = (200, (150, 90), (150, 90), (100, 60), (180, 120))
    assert evaluated((same, NONE)).best()[0] == CODES


@pytest.mark.parametrize(("shown", "expected"), [(20, POPULARITY), (21, CODES)])
def test_of_few_devices_no_more_than_a_quarter_is_asked(shown, expected):
    """Of 40 opinions, codes and popularity have (20 + shown) / 80 and 20 / 80."""
    one = (40, (shown, 20), (0, 0), (10, 10), (0, 0))
    assert evaluated((one, NONE)).best()[0] == expected


@pytest.mark.parametrize(("noise", "expected"), [(512, CODES), (513, POPULARITY)])
def test_no_more_than_a_quarter_is_asked_as_long_as_the_noise_is_that_of_four_evaluations(noise, expected):
    one = (70, (30, 30), (0, 0), (0, 0), (0, 0))
    assert Evaluated(CANDIDATES, evaluated((one, NONE)).sums, noise).best()[0] == expected


@pytest.mark.parametrize(("shown", "expected"), [(7100, POPULARITY), (7238, POPULARITY), (7242, CODES)])
def test_codes_are_used_when_they_are_surely_better_than_popularity(shown, expected):
    """Opinions alone, 10,000 of them, leave a doubt of .0035: codes must be better by .0070, or 140 of 20,000."""
    one = (10_000, (shown, 4000), (6000, 3000), (7100, 4000), (4000, 2000))
    it = evaluated((one, NONE))
    assert it.doubt(0) == pytest.approx(0.0035, rel=0.001)
    assert it.best()[0] == expected


def test_figures_are_those_of_each_groups_ranking_together():
    dislikes = (50, (40, 30), (20, 10), (10, 5), (10, 5))
    figures = evaluated((LIKES_CODES, dislikes), (LIKES_POPULARITY, NONE)).figures([CODES, POPULARITY, CODES, CODES])
    assert (figures.opinions, figures.dislikes) == (400, 50)
    assert (figures.hr, figures.ndcg, figures.disliked_hr) == (310 / 400, 210 / 400, 40 / 50)


def test_intervals_are_those_of_who_was_asked_and_of_the_noise():
    """1.96 deviations; each of the two numbers of a share has the noise of four groups."""
    figures = evaluated((LIKES_CODES, NONE), (LIKES_POPULARITY, NONE)).figures([CODES, POPULARITY, CODES, CODES])
    assert figures.hr_within == pytest.approx(1.96 * (0.775 * 0.225 / 400 + 2 * 4 * 128 / 400**2) ** 0.5)
    assert figures.ndcg_within == pytest.approx(1.96 * (0.525 * 0.475 / 400 + 2 * 4 * 128 / 400**2) ** 0.5)
    assert figures.shares() == {
        "hit_rate": 0.775,
        "hit_rate_within": figures.hr_within,
        "ndcg": 0.525,
        "ndcg_within": figures.ndcg_within,
        "disliked_hit_rate": 0,
    }


@pytest.mark.parametrize("n", [0, 1])
def test_figures_of_no_opinion_are_those_of_one(n):
    one = (n, (1, 1), (0, 0), (0, 0), (0, 0))
    figures = evaluated((one, one)).figures([CODES] * 4)
    assert (figures.opinions, figures.dislikes) == (1, 1)
    assert (figures.hr, figures.ndcg, figures.disliked_hr) == (1, 1, 1)


def test_intervals_hold_what_the_share_is_in_nineteen_of_twenty_rounds():
    rng = np.random.default_rng(2)
    inside = []
    for _ in range(400):
        groups = []
        for _ in GROUPS:
            shown = rng.binomial(130, 0.7)
            noise = np.rint(rng.normal(0, 128**0.5, 2))
            groups.append(((130 + noise[0], (shown + noise[1], 0), (0, 0), (0, 0), (0, 0)), NONE))
        figures = evaluated(*groups).figures([CODES] * 4)
        inside.append(abs(figures.hr - 0.7) <= figures.hr_within)
    assert 0.92 < np.mean(inside) <= 1


def test_sums_of_rounds_add_up_with_their_noise():
    one, other = evaluated((LIKES_CODES, NONE)), evaluated((LIKES_POPULARITY, NONE))
    both = one.plus(other)
    assert both.opinions(0) == 400
    assert both.noise_variance == 256
    assert both.nets(0)[0] == 150 / 400


def test_figures_of_noise_alone_are_shares_with_wide_intervals():
    noise = (-3, (5, -2), (4, 4), (1, 1), (0, 0))
    figures = evaluated((noise, noise)).figures([CODES] * 4)
    assert all(0 <= value <= 1 for value in (figures.hr, figures.ndcg, figures.disliked_hr))
    assert figures.hr_within > 1


def test_the_noise_of_each_mode_is_known():
    assert variance_of(None, 500) == 128
    assert variance_of(model_pb2.Noise(counts_thousandths=2000), 500) == 2000


@pytest.mark.parametrize(("devices", "reach"), [(1, 1), (50, 50), (127, 127), (129, 128), (500, 128)])
def test_a_number_that_so_many_devices_cannot_reach_is_implausible(devices, reach):
    for number in (-reach, devices + reach):
        require_plausible_hits(np.array([0, 1, number]), devices)
    for number in (-reach - 1, devices + reach + 1):
        with pytest.raises(ImplausibleSumError, match="below zero or above the number of devices"):
            require_plausible_hits(np.array([0, 1, number]), devices)


def test_few_devices_can_choose_in_a_trial_but_not_through_the_noise_of_secagg_dp():
    one = (6, (6, 6), (0, 0), (0, 0), (0, 0))
    assert evaluated((one, NONE)).best()[0] == CODES
    loud = Evaluated(CANDIDATES, 100 * evaluated((one, NONE)).sums, noise_variance=10**6)
    assert loud.best()[0] == POPULARITY
