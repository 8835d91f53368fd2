"""SVD++ against the textbook's loop, which adds up all implicit factors for every rating."""

import numpy as np
import pytest

from lightfr_harness.data import generate
from lightfr_harness.simulation.baselines.svdpp import ENTRY, Svdpp, SvdppOptions

RATINGS = generate("tiny")
OPTIONS = SvdppOptions(learning_rate=0.01, bias_regularization=0.02, factor_regularization=0.05)


def begun():
    method = Svdpp(OPTIONS, users_at_once=1)
    method.begin(RATINGS, 5)
    return method


def slow_pass_over_one_user(method, user, order):
    """One rating after the other; everything is computed anew for each."""
    p, q, y = method.user_factors.copy(), method.item_factors.copy(), method.implicit_factors.copy()
    user_bias, item_bias = method.user_bias.copy(), method.item_bias.copy()
    rows = np.flatnonzero(RATINGS.user_index == user)[order]
    rated = RATINGS.item_index[rows]
    for row in rows:
        item = RATINGS.item_index[row]
        implicit = y[rated].sum(axis=0) / np.sqrt(len(rated))
        predicted = method.mean + user_bias[user] + item_bias[item] + q[item] @ (p[user] + implicit)
        error, old_p, old_q = RATINGS.rating[row] - predicted, p[user].copy(), q[item].copy()
        user_bias[user] += 0.01 * (error - 0.02 * user_bias[user])
        item_bias[item] += 0.01 * (error - 0.02 * item_bias[item])
        p[user] += 0.01 * (error * old_q - 0.05 * old_p)
        q[item] += 0.01 * (error * (old_p + implicit) - 0.05 * old_q)
        for each in rated:
            y[each] += 0.01 * (error * old_q / np.sqrt(len(rated)) - 0.05 * y[each])
    return p, q, y, user_bias, item_bias


def test_one_user_at_a_time_is_exactly_the_textbooks_descent():
    method, user = begun(), 7
    size = int((RATINGS.user_index == user).sum())
    order = np.random.default_rng(1).permutation(size)

    class Drawn:
        """Gives the order that the loop has too."""

        def permutation(self, count):
            assert count == size
            return order

    wanted = slow_pass_over_one_user(method, user, order)
    method._rng = Drawn()
    method._descend(np.array([user]))
    tables = (method.user_factors, method.item_factors, method.implicit_factors, method.user_bias, method.item_bias)
    for ours, theirs in zip(tables, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_the_implicit_factors_have_a_part_in_the_scores():
    method = begun()
    users, items = np.array([7, 7], np.uint32), np.array([1, 2], np.uint32)
    before = method.scores(users, items)
    rated = RATINGS.item_index[RATINGS.user_index == 7]
    method.implicit_factors[rated] += 1
    moved = method.item_factors[items].sum(axis=1) * np.sqrt(len(rated))
    np.testing.assert_allclose(method.scores(users, items) - before, moved)


def test_users_side_by_side_learn_as_well_as_one_at_a_time():
    errors, some = [], RATINGS.subset(RATINGS.user_index < 32)
    for users_at_once in (1, 16):
        method = Svdpp(OPTIONS, users_at_once)
        method.fit(some, 5, 3)
        error = some.rating - method.scores(some.user_index, some.item_index)
        errors.append(np.sqrt((error**2).mean()))
    assert errors[0] < 0.97 * some.rating.std()
    assert errors[1] == pytest.approx(errors[0], rel=0.02)


def test_a_user_without_ratings_has_scores_by_biases_and_factors_of_items():
    method = Svdpp(OPTIONS)
    method.begin(RATINGS.subset(RATINGS.user_index != 3), 0)
    method.step()
    assert np.isfinite(method.scores(np.array([3], np.uint32), np.array([0], np.uint32))).all()


def test_an_unknown_constant_is_refused():
    with pytest.raises(TypeError, match="momentum"):
        ENTRY.make({**ENTRY.authors, "momentum": 0.9})
