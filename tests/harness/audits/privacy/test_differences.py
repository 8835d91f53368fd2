"""Two sums one device apart: exact without noise, popularity with it."""

import numpy as np

from lightfr_harness.audits.privacy import chosen_cohorts, differences
from lightfr_harness.audits.privacy.differences import GateTrial


def test_two_sums_of_one_matrix_give_code_and_rows_without_noise_and_nothing_with_it(small, small_leaking):
    for (run, capture, _), verdict in ((small, "holds"), (small_leaking, "broken")):
        trials = chosen_cohorts.round_pairs(run, 100, 0, next_matrix=False)
        codes, rows = differences.audit_rounds(trials, capture, "same matrix", private=True)
        assert (codes.verdict, rows.verdict) == (verdict, verdict)
        assert (codes.measured > 0.9) == (verdict == "broken")


def test_the_next_matrix_is_another_and_everything_is_put_back(small):
    run, _, _ = small
    codes, matrix = run.fleet.codes().copy(), run.server.signs().copy()
    chosen_cohorts.round_pairs(run, 50, 0, next_matrix=True)
    assert (run.fleet.codes() == codes).all()
    assert (run.server.signs() == matrix).all()


def test_two_gate_refreshes_without_noise_name_the_items(small):
    run, capture, _ = small
    noisy = chosen_cohorts.gate_pairs(run, 100, 0)
    bare = []
    for trial in noisy:
        counts = np.zeros(len(trial.without), np.int64)
        counts[trial.items] = 1
        bare.append(GateTrial(np.zeros_like(counts), counts, trial.items))
    exact = differences.audit_gate(bare, capture, private=True)
    assert exact.measured > 0.99
    assert exact.verdict == "broken"
    assert differences.audit_gate(noisy, capture, private=True).verdict == "holds"
