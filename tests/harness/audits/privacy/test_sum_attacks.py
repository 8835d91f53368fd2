"""Sums, matrices and who took part: planted leaks are found, noise is guessed."""

from dataclasses import replace

import numpy as np
import pytest

from lightfr_harness.audits.capture import CohortSum, masked_upload_stand_in
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


def with_rows(capture, make_rows):
    """The capture with other row sums."""
    views = [replace(view, total=replace(view.total, rows=make_rows(view))) for view in capture.rounds]
    return replace(capture, rounds=tuple(views))


def noise(view):
    return np.random.default_rng(1).integers(-3, 4, view.total.rows.shape)


def test_the_attacker_of_a_masked_round_has_no_upload_in_the_clear(secagg):
    captured, capture, _ = secagg
    view = capture.rounds[-1]
    n_open = int(view.open_rows.sum())
    sizes = {len(upload) for upload in view.uploads}
    # 38 devices: 7 bits for a row's element, 13 for an element of W, v and w.
    assert sizes == {(n_open * 64 * 7 + (64 * 65 // 2 + 64 + 1) * 13 + 7) // 8}
    ones = np.unpackbits(np.frombuffer(b"".join(view.uploads), np.uint8)).mean()
    assert abs(ones - 0.5) < 0.005
    assert not {"codes", "items", "steps"} & set(vars(capture))
    trials = run._trials(captured, capture, 2, seed=0)
    assert all(trial.view.uploads == () for trial in trials)


def test_a_stand_in_takes_just_enough_bits_for_its_cohort():
    sizes = [len(masked_upload_stand_in(1000, 64, n, np.random.default_rng(0).bytes)) for n in (1, 256)]
    assert sizes[0] * 8 == pytest.approx(1000 * 64 * 2 + 2145 * 8, abs=8)
    assert sizes[1] * 8 == pytest.approx(1000 * 64 * 10 + 2145 * 16, abs=8)


def test_the_sum_is_the_one_that_the_server_forms(clear):
    captured, *_ = clear
    saved = captured.fleet.codes().copy()
    view, _, _, uploads = captured.observe(np.arange(20), np.random.default_rng(0))
    captured.fleet.restore(saved)
    for upload in uploads:
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
