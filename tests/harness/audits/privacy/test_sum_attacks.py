"""Sums and matrices: planted leaks are found, noise is guessed."""

from dataclasses import replace

import numpy as np
import pytest

from lightfr.secagg.noise import row_variance, ternary_threshold, user_sum_thousandths
from lightfr.secagg.vector import Vector, round_blocks
from lightfr_harness.audits.privacy import (
    blind_separation,
    chosen_cohorts,
    item_set_recovery,
    published_codes,
    rating_membership,
    rating_recovery,
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
    trials = chosen_cohorts.small_cohorts(captured, 2, seed=0)
    assert all(trial.view.uploads == () for trial in trials)


def test_the_captured_vectors_alone_do_not_add_up_to_the_sum(secagg):
    """Who adds up the captured bytes without what the survivors reveal has nothing."""
    view = secagg[1].rounds[0]
    total = Vector(round_blocks(int(view.open_rows.sum()), 64, len(view.devices)))
    for upload in view.uploads:
        total.add_packed(upload)
    guessed = np.asarray(total["rows"]).reshape(-1, 64) - view.total.rows[view.open_rows]
    assert np.mean(guessed % 2**7 == 0) < 0.05


def observed_sum(run_, size=20, **how):
    saved = run_.fleet.codes().copy()
    view = run_.observe(np.arange(size), np.random.default_rng(0), **how).view
    run_.fleet.restore(saved)
    return view


def test_leaving_out_the_masks_changes_the_noise_alone(secagg, small_leaking):
    """What is not noise is the same: its deviation is that of all devices under masks, and of four in five without."""
    masked, plain = (observed_sum(secagg[0], masked=masked) for masked in (True, False))
    assert (len(masked.uploads), len(plain.uploads)) == (20, 0)
    without = type(small_leaking[0])(secagg[0].server, secagg[0].fleet, secagg[0].options)
    bare = observed_sum(without).total
    for view, devices in ((masked, 20), (plain, 16)):
        noise = (view.total.rows - bare.rows)[view.open_rows]
        assert np.var(noise) == pytest.approx(devices * 2 * ternary_threshold(20, row_variance(64)) / 65536, rel=0.1)
        assert np.std(view.total.user_sum - bare.user_sum) == pytest.approx(
            user_sum_thousandths(20) / 1000 * devices**0.5, rel=0.3
        )
        assert not view.total.rows[~view.open_rows].any()


def test_noise_that_a_server_asks_for_is_in_the_captured_sum_whether_masked_or_not(noisy):
    for masked, devices in ((True, 20), (False, 16)):
        view = observed_sum(noisy[0], masked=masked)
        # What the devices have to say is small beside it.
        each = view.model.noise.rows_thousandths / 1000
        assert np.std(view.total.rows[view.open_rows]) == pytest.approx(each * devices**0.5, rel=0.1)
        assert not view.total.rows[~view.open_rows].any()


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
    user_sum, weight = captured.server._cohort_sums()
    rows = captured.server._row_sums
    assert (rows[:-1] == view.total.rows[view.open_rows]).all()
    assert not view.total.rows[~view.open_rows].any()
    assert not rows[-1].any()
    assert (user_sum == view.total.user_sum).all()
    assert weight == view.total.weight
    captured.server.begin_round()


def test_one_sum_is_read_without_noise_and_not_with_it(small, small_leaking):
    for (captured, capture, _), reads in ((small, False), (small_leaking, True)):
        trials = chosen_cohorts.small_cohorts(captured, 50, seed=0)
        codes, rows = small_cohort.audit(trials, capture, "secagg, cohort 50", private=True)
        assert (codes.measured > codes.predicted + 0.3) == reads
        assert (rows.measured > rows.predicted + 0.1) == reads
        assert (codes.verdict == "broken") == reads


def test_codes_are_told_apart_in_rows_that_single_devices_fill_and_not_in_noise(secagg):
    _, capture, truth = secagg
    members = np.array(list(truth.codes[-1].values()), np.int64)

    def one_row_each(view):
        kept = np.random.default_rng(len(view.devices)).random(members.shape) < 0.7
        return np.concatenate([members * kept, noise(view)[len(members) :] * 9])

    for rows, verdict in ((one_row_each, "broken"), (noise, "holds")):
        assert blind_separation.audit(with_rows(capture, rows), truth, private=True).verdict == verdict


def test_claims_are_compared_with_devices_outside_the_cohort(small_leaking):
    """Users resemble each other: a claim that is somebody else's code as much as a member's says nothing of members."""
    _, capture, truth = small_leaking
    members = np.array([code for user, code in truth.codes[-1].items() if user in set(truth.scored)])
    alike = replace(truth, bystanders=(*truth.bystanders[:-1], members))
    for finding in user_code_recovery.audit(capture, alike, None, private=True):
        assert finding.predicted == finding.measured


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
    assert guessed.measured < guessed.predicted + 0.05


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
    scores = item_set_recovery.SumReader(planted).score(traced, len(truth.items[traced]))
    named = item_set_recovery.named(scores, len(truth.items[traced]))
    assert set(named.tolist()) == set(truth.items[traced].tolist())


def test_ratings_stay_at_guessing_under_sums(secagg):
    _, capture, truth = secagg
    for finding in rating_recovery.audit(capture, truth, None, private=True):
        assert finding.measured < finding.predicted + 0.02
        assert finding.verdict == "holds"


def test_rows_that_are_user_codes_are_read_from_the_matrix_and_others_are_not(secagg):
    _, capture, truth = secagg
    planted = []
    for view, codes in zip(capture.rounds, truth.codes, strict=True):
        after = np.random.default_rng(2).choice(np.array([-1, 1], np.int8), view.after.shape)
        after[: len(codes)] = -np.array(list(codes.values()))
        planted.append(replace(view, after=after))
    found = published_codes.audit(replace(capture, rounds=tuple(planted)), truth, promised=True)
    assert (found.measured, found.verdict) == (1.0, "broken")
    assert found.limit == pytest.approx(found.predicted + 0.02)
    random = [replace(view, after=np.roll(view.after, 31, axis=1)) for view in planted]
    assert published_codes.audit(replace(capture, rounds=tuple(random)), truth, promised=True).verdict == "holds"
