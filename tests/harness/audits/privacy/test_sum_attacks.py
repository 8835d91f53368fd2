"""Sums, matrices and who took part: planted leaks are found, noise is guessed."""

from dataclasses import replace

import numpy as np
import pytest

from lightfr.secagg.vector import Vector, round_blocks
from lightfr_harness.audits.capture import CohortSum
from lightfr_harness.audits.privacy import (
    intersection,
    item_set_recovery,
    published_codes,
    rating_membership,
    rating_recovery,
    run,
    small_cohort,
    user_code_recovery,
)
from lightfr_harness.simulation.train import privacy_loss


def with_rows(capture, make_rows):
    """The capture with other row sums."""
    views = [replace(view, total=replace(view.total, rows=make_rows(view))) for view in capture.rounds]
    return replace(capture, rounds=tuple(views))


def noise(view):
    return np.random.default_rng(1).integers(-3, 4, view.total.rows.shape)


def test_the_attacker_of_a_masked_round_has_no_upload_in_the_clear(secagg):
    captured, capture, _ = secagg
    view = capture.rounds[0]
    n_open, n_devices = int(view.open_rows.sum()), len(view.devices)
    assert len(view.uploads) == n_devices == 38
    assert {len(upload) for upload in view.uploads} == {Vector(round_blocks(n_open, 64, n_devices)).packed_bytes}
    assert capture.upload_bytes == len(view.uploads[0])
    ones = np.unpackbits(np.frombuffer(b"".join(view.uploads), np.uint8)).mean()
    assert abs(ones - 0.5) < 0.005
    assert not {"codes", "items", "steps"} & set(vars(capture))
    assert all(later.uploads == () for later in capture.rounds[1:])
    trials = run._trials(captured, capture, 2, seed=0)
    assert all(trial.view.uploads == () for trial in trials)


def test_the_sum_under_masks_is_the_one_in_the_clear(clear, secagg):
    for masked, plain in zip(secagg[1].rounds, clear[1].rounds, strict=True):
        assert masked.devices == plain.devices
        for name in ("rows", "products", "user_sum", "weight", "n_devices"):
            assert np.array_equal(getattr(masked.total, name), getattr(plain.total, name))
        assert (masked.after == plain.after).all()


def test_the_captured_vectors_alone_do_not_add_up_to_the_sum(secagg):
    """Who adds up the captured bytes without what the survivors reveal has nothing."""
    view = secagg[1].rounds[0]
    total = Vector(round_blocks(int(view.open_rows.sum()), 64, len(view.devices)))
    for upload in view.uploads:
        total.add_packed(upload)
    guessed = np.asarray(total["rows"]).reshape(-1, 64) - view.total.rows[view.open_rows]
    assert np.mean(guessed % 2**7 == 0) < 0.05


def observed_sum(run_, **how):
    saved = run_.fleet.codes().copy()
    view, *_ = run_.observe(np.arange(20), np.random.default_rng(0), **how)
    run_.fleet.restore(saved)
    return view


def test_leaving_out_the_masks_changes_no_sum(secagg):
    masked, plain = (observed_sum(secagg[0], masked=masked) for masked in (True, False))
    assert (len(masked.uploads), len(plain.uploads)) == (20, 0)
    assert (masked.total.rows == plain.total.rows).all()
    assert (masked.total.products == plain.total.products).all()
    assert masked.total.weight == plain.total.weight


def test_noise_is_in_the_captured_sum_whether_masked_or_not(noisy, secagg):
    exact = observed_sum(secagg[0]).total
    assert not exact.is_noisy
    for masked in (True, False):
        total = observed_sum(noisy[0], masked=masked).total
        assert total.is_noisy
        assert total.weight == 20 * 64
        # 20 devices of deviation 3 each; what they have to say is small beside it.
        inside = total.rows[noisy[1].rounds[0].open_rows]
        assert np.std(inside) == pytest.approx(3 * 20**0.5, rel=0.1)
        assert not total.rows[~noisy[1].rounds[0].open_rows].any()
        above = total.products[np.triu_indices(64, 1)] / 64
        assert np.std(above) == pytest.approx(np.hypot(3 * 20**0.5, 20**0.5), rel=0.15)


def test_the_spectrum_of_a_noisy_sum_shows_one_device_under_little_noise_and_nothing_under_much():
    code = np.random.default_rng(3).choice(np.array([-1, 1]), 64)
    for deviation, reads in ((1, True), (30, False)):
        noise_above = np.triu(np.random.default_rng(4).normal(0, deviation, (64, 64)), 1)
        products = np.rint(np.outer(code, code) + noise_above + noise_above.T).astype(np.int64)
        total = CohortSum(np.zeros((5, 64), np.int64), products, 5 * code, 1, 1, is_noisy=True)
        claimed = user_code_recovery.codes_from_sum(total)
        assert claimed.shape == (1, 64)
        assert (np.mean(claimed[0] == code) > 0.9) == reads


def test_epsilon_counts_the_noise_of_those_who_do_not_collude(noisy, secagg):
    all_honest, some = privacy_loss(noisy[0]), privacy_loss(noisy[0], colluding=4)
    assert some["honest_devices"] == all_honest["honest_devices"] - 4 == 34
    assert some["epsilon"] > all_honest["epsilon"]
    assert privacy_loss(secagg[0]) is None


def test_the_sum_is_the_one_that_the_server_forms(clear):
    captured, *_ = clear
    view = observed_sum(captured)
    for upload in view.uploads:
        captured.server.add(upload)
    products, user_sum, weight = captured.server._cohort_sums()
    assert (captured.server._row_sums == view.total.rows).all()
    assert (products == view.total.products).all()
    assert (user_sum == view.total.user_sum).all()
    assert weight == view.total.weight
    captured.server.begin_round()


def test_small_cohorts_are_read_and_sums_of_noise_are_not(secagg):
    captured, capture, _ = secagg
    trials = run._trials(captured, capture, 3, seed=0)
    codes, rows = small_cohort.audit(trials, capture.item_counts, "secagg, cohort 3", private=True)
    assert (codes.measured, codes.verdict, rows.verdict) == (1.0, "broken", "broken")
    assert rows.measured > 0.9
    empty = CohortSum(trials[0].view.total.rows * 0, np.eye(64) * 40, np.ones(64), 120, 3)
    blind = [replace(trial, view=replace(trial.view, total=empty)) for trial in trials]
    codes, _ = small_cohort.audit(blind, capture.item_counts, "secagg, cohort 3", private=True)
    assert codes.measured == 0


def test_claims_that_are_codes_of_strangers_are_no_better_than_guessing(secagg, monkeypatch):
    """Users resemble each other: as many guesses as claims, or the mere number of claims would look like a leak."""
    _, capture, truth = secagg
    # Strangers with the very codes of the cohort: the claims are all right, and say nothing that strangers do not.
    strangers = np.array(list(truth.codes[-1].values()))
    monkeypatch.setattr(user_code_recovery, "codes_from_sum", lambda total: strangers[:20])
    alike = replace(truth, bystanders=strangers)
    for finding in user_code_recovery.audit(capture, alike, None, private=True):
        assert finding.measured > 0.4
        assert finding.predicted > 0.3
    alone = replace(truth, bystanders=None)
    assert user_code_recovery.audit(capture, alone, None, private=True)[1].predicted < 0.1


def test_bystanders_took_no_part_and_leave_the_devices_as_they_were(secagg):
    captured, *_ = secagg
    before = captured.fleet.codes().copy()
    codes = captured.bystanders(np.arange(4, len(captured.fleet)))
    assert codes.shape == (4, 64)
    assert (captured.fleet.codes() == before).all()
    assert len(captured.bystanders(np.arange(len(captured.fleet)))) == 0


def test_membership_is_told_from_sums_and_not_from_noise(secagg):
    _, capture, truth = secagg
    told, _ = rating_membership.audit(capture, truth, None, seed=0)
    assert told.interval[0] > 0.3
    guessed, _ = rating_membership.audit(with_rows(capture, noise), truth, None, seed=0)
    assert guessed.interval[0] < 0.1
    assert abs(guessed.measured) < 0.25


def test_pairs_ask_about_each_item_as_often_with_a_rater_as_without(secagg):
    _, capture, truth = secagg
    pairs = rating_membership.choose_pairs(truth, capture, seed=0)
    items, answers = np.array(pairs.items), pairs.answers
    assert (np.sort(items[answers]) == np.sort(items[~answers])).all()
    rated = [item in truth.items[user] for user, item in zip(pairs.users, pairs.items, strict=True)]
    assert rated == answers.tolist()


def test_item_sets_stay_at_guessing_under_sums_and_a_planted_trace_is_found(secagg):
    _, capture, truth = secagg
    found = item_set_recovery.audit(with_rows(capture, noise), truth, None, private=True)[0]
    assert found.measured < found.predicted + 0.03

    def everything_of_the_present(view):
        rows = np.zeros(view.total.rows.shape, np.int64)
        for user in view.devices:
            rows[truth.items[user]] += 50 if user == traced else 0
        return rows

    traced = next(user for user in truth.scored if 0 < sum(user in view.devices for view in capture.rounds) < 3)
    known = replace(capture.knowledge, colluders=(traced,), items={traced: truth.items[traced]})
    planted = replace(with_rows(capture, everything_of_the_present), knowledge=known)
    scores = item_set_recovery.SumReader(planted).score(traced)
    named = item_set_recovery.named(scores, len(truth.items[traced]))
    assert set(named.tolist()) == set(truth.items[traced].tolist())


def test_ratings_stay_at_guessing_under_sums(secagg):
    _, capture, truth = secagg
    for finding in rating_recovery.audit(capture, truth, None, private=True):
        assert finding.measured < finding.predicted + 0.02
        assert finding.verdict == "holds"


def test_two_sums_of_one_matrix_that_differ_by_a_device_give_its_code(secagg):
    captured, capture, _ = secagg
    same = run._differences(captured, capture, 20, 0, next_matrix=False)
    codes, rows = intersection.audit_differences(same, "same matrix", capture.item_counts, "secagg")
    assert codes.measured > 0.6 > codes.predicted + 0.3
    assert rows.measured > rows.predicted
    assert codes.verdict == "for information"


def test_taking_part_at_random_does_not_single_a_device_out(secagg):
    _, capture, truth = secagg
    assert intersection.audit_campaign(capture, truth, private=True)[0].verdict == "holds"


def test_rows_that_are_user_codes_are_read_from_the_matrix_and_others_are_not(secagg):
    _, capture, truth = secagg
    planted = []
    for view, codes in zip(capture.rounds, truth.codes, strict=True):
        after = np.random.default_rng(2).choice(np.array([-1, 1], np.int8), view.after.shape)
        after[: len(codes)] = -np.array(list(codes.values()))
        planted.append(replace(view, after=after))
    found = published_codes.audit(replace(capture, rounds=tuple(planted)), truth, promised=True)
    assert (found.measured, found.verdict, found.limit) == (1.0, "broken", 0.005)
    random = [replace(view, after=np.roll(view.after, 31, axis=1)) for view in planted]
    assert published_codes.audit(replace(capture, rounds=tuple(random)), truth, promised=True).verdict == "holds"
