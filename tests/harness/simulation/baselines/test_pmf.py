"""PMF against a slow loop and against the slope of its objective."""

import numpy as np
import pytest

from lightfr_harness.data import generate
from lightfr_harness.simulation.baselines.pmf import ENTRIES, Pmf, PmfOptions
from lightfr_harness.simulation.baselines.rows import add_rows, is_among, pair_numbers

RATINGS = generate("tiny")
OPTIONS = PmfOptions(learning_rate=0.02, regularization=0.1)


def begun(options=OPTIONS):
    method = Pmf(options)
    method.begin(RATINGS, 3)
    return method


def test_a_step_over_a_batch_is_the_sum_of_the_steps_of_its_ratings():
    method, batch = begun(), slice(0, 300)
    users, items = method.user_factors.copy(), method.item_factors.copy()
    wanted_users, wanted_items = users.copy(), items.copy()
    triples = zip(RATINGS.user_index[batch], RATINGS.item_index[batch], RATINGS.rating[batch], strict=True)
    for user, item, rating in triples:
        error = rating - sum(p * q for p, q in zip(users[user], items[item], strict=True))
        for factor in range(users.shape[1]):
            wanted_users[user, factor] += 0.02 * (error * items[item, factor] - 0.1 * users[user, factor])
            wanted_items[item, factor] += 0.02 * (error * users[user, factor] - 0.1 * items[item, factor])
    method.descend(RATINGS.user_index[batch], RATINGS.item_index[batch], RATINGS.rating[batch])
    np.testing.assert_allclose(method.user_factors, wanted_users, atol=1e-12)
    np.testing.assert_allclose(method.item_factors, wanted_items, atol=1e-12)


def test_a_step_goes_down_the_slope_of_half_the_objective():
    method = begun()
    rows = RATINGS.user_index, RATINGS.item_index, RATINGS.rating

    def objective(users, items):
        error = rows[2] - (users[rows[0]] * items[rows[1]]).sum(axis=1)
        return 0.5 * ((error**2).sum() + 0.1 * ((users[rows[0]] ** 2).sum() + (items[rows[1]] ** 2).sum()))

    users, items = method.user_factors.copy(), method.item_factors.copy()
    method.descend(*rows)
    for table, moved in ((users, method.user_factors), (items, method.item_factors)):
        for place in ((0, 0), (17, 30)):
            values, before = [], table[place]
            for step in (1e-5, -1e-5):
                table[place] = before + step
                values.append(objective(users, items))
            table[place] = before
            slope = (values[0] - values[1]) / 2e-5
            assert moved[place] - before == pytest.approx(-0.02 * slope, rel=1e-5)


def test_sampled_zeros_are_pairs_outside_train():
    method = begun(PmfOptions(learning_rate=0.02, regularization=0.1, negatives=4))
    users, items, wanted = method._examples()
    rated = set(zip(RATINGS.user_index.tolist(), RATINGS.item_index.tolist(), strict=True))
    pairs = list(zip(users.tolist(), items.tolist(), strict=True))
    assert [pair in rated for pair in pairs] == (wanted == 1).tolist()
    assert (wanted == 1).sum() == len(RATINGS)
    assert (wanted == 0).sum() > 2.5 * len(RATINGS)


def test_training_brings_the_error_down_and_depends_on_the_seed_alone():
    one, other = begun(), begun()
    for _ in range(10):
        one.step()
        other.step()
    error = RATINGS.rating - one.scores(RATINGS.user_index, RATINGS.item_index)
    assert np.sqrt((error**2).mean()) < RATINGS.rating.std()
    assert (one.user_factors == other.user_factors).all()


def test_an_unknown_constant_is_refused():
    with pytest.raises(TypeError, match="momentum"):
        ENTRIES[0].make({"momentum": 0.9})


def test_rows_that_occur_twice_are_added_twice():
    table = np.zeros((3, 2))
    add_rows(table, np.array([2, 0, 2], np.uint32), np.array([[1.0, 1], [5, 5], [2, 3]]))
    assert table.tolist() == [[5, 5], [0, 0], [3, 4]]


def test_pairs_beyond_the_last_known_one_are_not_among_them():
    known = np.array([1, 4, 9])
    assert is_among(np.array([0, 4, 9, 10]), known).tolist() == [False, True, True, False]
    assert pair_numbers(np.array([2], np.uint32), np.array([3], np.uint32), 2**32).tolist() == [2**33 + 3]
