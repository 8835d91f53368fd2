"""Regression on taking part: codes that stand still are read by name, and noise hides them."""

from dataclasses import replace

import numpy as np
import pytest

from lightfr_harness.audits.capture import draw_cohorts
from lightfr_harness.audits.privacy import blind_separation, item_set_recovery, known_items, participation
from lightfr_harness.audits.privacy.plan import AuditOptions
from tests.helpers import random_signs


def planted(capture, truth, deviation, rounds=150):
    """A campaign in which every device always adds the same code to v, under noise."""
    rng = np.random.default_rng(5)
    codes = random_signs(capture.n_users, 64, 6)
    views, of_round = [], []
    for _ in range(rounds):
        devices = np.sort(rng.choice(capture.n_users, 38, replace=False))
        user_sum = 40 * codes[devices].astype(np.int64).sum(axis=0) + rng.normal(0, deviation, 64).astype(np.int64)
        total = replace(capture.rounds[0].total, user_sum=user_sum)
        views.append(replace(capture.rounds[0], devices=tuple(devices.tolist()), total=total))
        of_round.append({int(user): codes[user] for user in devices})
    known = {user: codes[user] for user in capture.knowledge.colluders}
    knowledge = replace(capture.knowledge, codes=(known,) * rounds)
    capture = replace(capture, rounds=tuple(views), knowledge=knowledge)
    return capture, replace(truth, codes=tuple(of_round))


@pytest.mark.parametrize(("deviation", "verdict"), [(0, "broken"), (2_000, "holds")])
def test_codes_in_sums_without_noise_are_read_by_name(secagg, deviation, verdict):
    found = participation.audit(*planted(*secagg[1:], deviation), private=True)
    assert (found.verdict, found.measured > 0.9) == (verdict, verdict == "broken")


def test_attacks_on_a_cohort_of_the_attackers_own_devices_have_nothing_to_read(secagg):
    """And say so without a warning."""
    capture, truth = secagg[1], replace(secagg[2], scored=())
    for attack in (participation, blind_separation):
        assert "n = 0." in attack.audit(capture, truth, private=False).note


def test_the_weights_add_up_to_what_each_user_adds(secagg):
    capture, _ = planted(*secagg[1:], 0)
    weights, present = participation.regression(capture), capture.participation()
    assert (weights * present.T).sum(axis=1) == pytest.approx(1)
    assert weights.sum(axis=1) == pytest.approx(0, abs=1e-9)
    assert np.abs((weights @ present) - np.eye(capture.n_users)).mean() < 0.05


def test_ten_known_items_lead_to_others_where_devices_leave_their_noise_out(small, small_leaking):
    gains = []
    for _, capture, truth in (small, small_leaking):
        codes, items = known_items.audit(capture, truth, 0, private=True)
        assert codes.claim == known_items.CODES_CLAIM
        gains.append(items.measured - items.predicted)
    assert gains[1] > 0.04
    assert gains[1] > 2 * gains[0]


def test_items_are_named_by_taking_part_and_more_of_them_where_devices_leave_their_noise_out(small, small_leaking):
    gains = []
    for _, capture, truth in (small, small_leaking):
        (found,) = item_set_recovery.audit(capture, truth, None, private=True)
        gains.append(found.measured - found.predicted)
    assert gains[1] > max(0.02, gains[0])


def test_a_campaign_ends_when_too_few_devices_may_take_part_once_more():
    cohorts = draw_cohorts(100, 30, rounds=200, rounds_per_device=6, seed=0)
    taken = np.bincount(np.concatenate(cohorts), minlength=100)
    assert all(len(np.unique(cohort)) == 30 for cohort in cohorts)
    assert taken.max() == 6
    assert np.count_nonzero(taken < 6) < 30
    assert len(draw_cohorts(100, 30, rounds=10, rounds_per_device=6, seed=0)) == 10


def test_an_epsilon_is_for_the_rounds_that_a_device_takes_part_in():
    options = AuditOptions(rounds=200, rounds_per_device=16)
    rounds = {mode: options.training(mode, None).rounds for mode in ("clear", "secagg", "secagg+dp")}
    assert rounds == {"clear": 10, "secagg": 200, "secagg+dp": 16}


def test_the_attacker_is_told_ten_items_of_each_and_no_more(secagg):
    _, capture, truth = secagg
    known = known_items.choose_known(capture, truth, seed=0)
    assert {len(items) for items in known.values()} == {10}
    assert all(np.isin(items, truth.items[user]).all() for user, items in known.items())
