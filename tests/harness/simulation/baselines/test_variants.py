"""LightFR's forms as methods: they are what the trainer trains, and Random is chance."""

from dataclasses import replace

import numpy as np
import pytest

from lightfr_harness.data import generate, leave_last_out
from lightfr_harness.data.evaluation import evaluate_candidates
from lightfr_harness.simulation.baselines.registry import METHODS
from lightfr_harness.simulation.baselines.variants import LightFr
from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.paper import quantised_factors
from lightfr_harness.simulation.train import train

SPLIT = leave_last_out(generate("tiny"))


def judged(method, split=SPLIT):
    return evaluate_candidates(split.test, method.scores(split.test.users_of_rows(), split.test.item_index))


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "paper", "regularization": 0.001},
        {"objective": "paper", "aggregate": "para"},
        {"objective": "paper", "aggregate": "init"},
        {"objective": "paper", "aggregate": "random"},
        {"positives": "all"},
    ],
)
def test_a_form_gives_what_the_trainer_gives(options):
    record = train(TrainOptions(synthetic="tiny", rounds=2, **options)).record
    method = LightFr(TrainOptions(**options))
    method.fit(SPLIT.train, 0, 2)
    metrics = judged(method)
    assert (metrics.hr, metrics.ndcg) == pytest.approx((record.hr, record.ndcg))
    assert len(method.rounds) == (0 if options.get("aggregate") in ("init", "random") else 2)
    if method.rounds:
        sent = sum(each.up_bytes for each in method.rounds) / sum(each.devices for each in method.rounds)
        assert sent == pytest.approx(record.up_bytes_per_device_round)


def test_random_codes_are_chance():
    """Ten of fifty, and the mean of their discounts: .200 and .091 by expectation."""
    figures = []
    split = leave_last_out(generate("small"))
    for seed in range(12):
        method = METHODS["lightfr-random"].make({})
        method.fit(split.train, seed, 0)
        metrics = judged(method, split)
        figures.append((metrics.hr, metrics.ndcg))
    discounts = (1 / np.log2(np.arange(2, 12))).sum() / 50
    assert discounts == pytest.approx(0.091, abs=0.0005)
    np.testing.assert_allclose(np.mean(figures, axis=0), (0.2, discounts), atol=0.02)


def test_init_cuts_users_and_items_at_their_medians_and_fits_nothing():
    method = METHODS["lightfr-init"].make({})
    method.fit(SPLIT.train, 1, 0)
    users, items = quantised_factors(SPLIT.train, 64, 1)
    for codes in (users, items):
        share = np.unpackbits(codes, axis=1).mean(axis=0)
        assert np.abs(share - 0.5).max() <= 0.5 / len(codes)
    assert (method.run.fleet.codes() == users).all()
    who, what = SPLIT.test.users_of_rows(), SPLIT.test.item_index
    bits = [np.unpackbits(codes, axis=1).astype(int) * 2 - 1 for codes in (users, items)]
    assert method.scores(who, what).tolist() == (bits[0][who] * bits[1][what]).sum(axis=1).tolist()


def test_scores_come_back_in_the_order_of_the_pairs():
    method = LightFr(TrainOptions(objective="paper"))
    method.fit(SPLIT.train, 0, 2)
    users, items = SPLIT.test.users_of_rows(), SPLIT.test.item_index
    shuffled = np.random.default_rng(0).permutation(len(users))
    assert (method.scores(users[shuffled], items[shuffled]) == method.scores(users, items)[shuffled]).all()


def test_secure_rounds_count_the_bytes_of_the_round_that_is_masked():
    method = METHODS["ours-secagg"].make({})
    few = SPLIT.train.subset(SPLIT.train.user_index < 12)
    method.fit(replace(few, user_ids=few.user_ids[:12]), 0, 3)
    assert len(method.rounds) == 1
    assert method.rounds[0].up_bytes > 0
    assert method.run.finished_rounds == 3
