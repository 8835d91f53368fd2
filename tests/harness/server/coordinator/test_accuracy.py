"""What is published about ranking, and when people are warned."""

from dataclasses import replace

import numpy as np
import pytest

from lightfr.rankings import GROUPS, UNSAID, RankBy, Rankings
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.server.coordinator.accuracy import (
    REMEMBERED_EVALUATIONS,
    Evaluation,
    Evaluations,
    about_ranking,
    in_words,
)
from lightfr_harness.server.coordinator.options import make_rule
from lightfr_harness.server.rules.evaluation import CHANCE, POPULARITY, candidates_for, to_messages
from lightfr_harness.server.rules.plausible import ImplausibleSumError
from tests.harness.server.coordinator.helpers import BITS, ITEMS, SETTINGS
from tests.harness.server.coordinator.secure import SECURE, UNCOUNTED

DAY_ZERO = {"chosen": [], "is_day_zero": True}
CANDIDATES = candidates_for(BITS, has_counts=True)
N = 1600


def published(rule, **how):
    """What a device reads of it."""
    model = model_pb2.RoundModel(item_count=rule.n_items)
    return Rankings.of(manifest_pb2.Manifest(model=model, **about_ranking(rule, **how)))


def counted_by_devices(counts):
    rule = make_rule(SECURE, UNCOUNTED)
    for seed in (1, 2):
        rule.set_gate(np.array(counts), seed, devices=100)
    return rule


def test_on_day_zero_popularity_ranks_if_there_are_counts():
    read = published(make_rule(SECURE, ITEMS), **DAY_ZERO)
    assert read.by_group == (POPULARITY,) * len(GROUPS)
    assert read.popularities[0] == (0, 63)  # 16 ln 51
    assert list(read.candidates) == CANDIDATES


def test_on_day_zero_without_counts_nothing_is_said_about_ranking():
    read = published(make_rule(SECURE, UNCOUNTED), **DAY_ZERO)
    assert (read.by_group, read.popularities) == ((), ())
    assert list(read.candidates) == candidates_for(BITS, has_counts=False)


def test_counts_that_somebody_gave_are_told_however_small():
    rule = make_rule(SECURE, ITEMS)
    rule.device_counts[-1] = 1
    assert rule.gate == 25
    assert published(rule, **DAY_ZERO).popularities[-1] == (len(ITEMS.ids) - 1, 11)


def test_public_counts_are_told_for_ever_and_open_no_row():
    rule = make_rule(replace(SECURE, public_counts=True), ITEMS)
    assert not rule.open_rows.any()
    for seed in (1, 2):
        rule.set_gate(np.array([90] * 15 + [0] * 15), seed, devices=100)
    assert rule.open_rows.sum() == 15
    public = np.arange(10**12, 10**12 - 30, -1)
    assert published(rule, **DAY_ZERO, public_counts=public).popularities == ((0, 442),)  # 16 ln 10^12


def test_counts_of_devices_are_told_from_the_gate_on():
    counts = [90, 25, 24, 3] + [0] * 26
    assert published(counted_by_devices(counts), **DAY_ZERO).popularities == ((0, 72), (1, 52), (2, 0))
    assert published(counted_by_devices([24] * 30), **DAY_ZERO).popularities == ()


def test_in_the_clear_nobody_evaluates_and_codes_are_used_after_the_first_round():
    rule = make_rule(SETTINGS, ITEMS)
    assert published(rule, **DAY_ZERO).by_group == (POPULARITY,) * len(GROUPS)
    later = published(rule, chosen=[], is_day_zero=False)
    assert later.by_group == (UNSAID,) * len(GROUPS)
    assert later.candidates == ()


def test_what_was_chosen_is_published():
    chosen = CANDIDATES[:4]
    assert list(published(make_rule(SECURE, ITEMS), chosen=chosen, is_day_zero=True).by_group) == chosen


def evaluation(version, best, share=0.8, n=N, candidates=CANDIDATES):
    """All devices of one group; one candidate has this share, the others half of it."""
    hits = np.zeros((len(GROUPS), 2, 1 + 2 * len(candidates)), np.int64)
    hits[1, 0] = round(share * n / 2)
    hits[1, 0, 0] = n
    hits[1, 0, 1 + 2 * best : 3 + 2 * best] = round(share * n)
    manifest = manifest_pb2.Manifest(model_version=version, candidates=to_messages(candidates))
    return Evaluation.of(version, manifest, hits.ravel(), n)


def of(*evaluations):
    return Evaluations(tuple(evaluations))


def test_before_any_evaluation_nothing_is_chosen_and_nothing_has_fallen():
    assert of().rankings() == of().qualities == []
    assert not of().has_fallen(0.0)


def test_the_last_four_evaluations_choose_together():
    by_two = [evaluation(version, 3) for version in (1, 2)]
    by_three = [evaluation(version, 5) for version in (3, 4, 5)]
    assert of(*by_two, *by_three[:1]).rankings() == [CANDIDATES[3]] * 4
    assert of(*by_two, *by_three).rankings() == [CANDIDATES[5]] * 4
    # A fifth one is too old to count.
    strong = evaluation(1, 3, share=1.0, n=50 * N)
    rest = [evaluation(version, 5) for version in (2, 3, 4, 5)]
    assert of(strong, *rest[:3]).rankings() == [CANDIDATES[3]] * 4
    assert of(strong, *rest).rankings() == [CANDIDATES[5]] * 4


def test_evaluations_of_other_candidates_do_not_count():
    others = candidates_for(BITS, has_counts=False)
    it = of(evaluation(1, 3, n=50 * N), evaluation(2, 1, candidates=others))
    assert it.rankings() == [others[1]] * 4
    assert it.plus(evaluation(3, 5)).rankings() == [CANDIDATES[3]] * 4


def test_each_evaluation_says_how_good_its_own_version_is_beside_popularity():
    first, second = of(evaluation(7, 3, 0.8), evaluation(9, 3, 0.6)).qualities
    assert (first.model_version, first.chosen.hr, first.popularity.hr) == (7, 0.8, 0.4)
    assert (second.model_version, second.chosen.ndcg, second.popularity.ndcg) == (9, 0.6, 0.3)
    assert second.facts()["hit_rate"] == 0.6
    assert second.facts()["popularity_hit_rate"] == 0.3


@pytest.mark.parametrize(
    ("shares", "tolerance", "expected"),
    [
        ((0.8, 0.6), 0.05, True),
        ((0.8, 0.6), 0.2, False),
        ((0.8, 0.6), None, False),
        # By chance: each half width is .035, that of the difference .05.
        ((0.8, 0.76), 0.0, False),
        ((0.8, 0.7), 0.0, True),
        ((0.8, 0.6, 0.6, 0.6), 0.05, True),
        ((0.8, 0.6, 0.6, 0.6, 0.6), 0.05, False),
        ((0.6, 0.8), 0.0, False),
    ],
)
def test_a_fall_beyond_tolerance_and_chance_below_the_best_of_four_is_noticed(shares, tolerance, expected):
    it = of(*(evaluation(version, 3, share) for version, share in enumerate(shares, 1)))
    assert it.has_fallen(tolerance) == expected


def test_an_evaluation_is_kept_as_it_was():
    kept = evaluation(7, 3)
    again = Evaluation.from_row(*kept.row())
    assert again.row() == kept.row()
    assert again.evaluated.candidates == CANDIDATES
    assert {type(ranking.by) for ranking in again.evaluated.candidates} == {RankBy}


def test_only_the_last_ones_are_remembered():
    it = of()
    for version in range(REMEMBERED_EVALUATIONS + 2):
        it = it.plus(evaluation(version, 3))
    assert [one.model_version for one in it.kept] == list(range(2, REMEMBERED_EVALUATIONS + 2))


def test_sums_beyond_the_number_of_devices_are_refused_unless_noise_hides_them():
    hits = np.zeros(8 * (1 + 2 * len(CANDIDATES)), np.int64)
    hits[1] = 2 * N
    manifest = manifest_pb2.Manifest(candidates=to_messages(CANDIDATES))
    with pytest.raises(ImplausibleSumError):
        Evaluation.of(1, manifest, hits, N)
    manifest.model.noise.counts_thousandths = 2000
    assert Evaluation.of(1, manifest, hits, N).evaluated.noise_variance == 4 * N


def test_rankings_are_told_in_words():
    assert in_words(POPULARITY) == "popularity"
    assert in_words(CHANCE) == "chance"
    assert in_words(UNSAID) == "codes, strong recency, refined"
    assert in_words(CANDIDATES[1]) == "codes, popularity times 2"
