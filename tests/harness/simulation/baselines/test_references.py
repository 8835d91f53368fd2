"""Popularity, iALS and EASE against their equations, written out."""

import numpy as np
import pytest

from lightfr.errors import InvalidInputError
from lightfr_harness.data import generate
from lightfr_harness.simulation.baselines import references
from lightfr_harness.simulation.baselines.references import Ease, EaseOptions, Ials, IalsOptions, Popularity

RATINGS = generate("tiny")
USERS, ITEMS = np.array([3, 0, 3], np.uint32), np.array([7, 2, 5], np.uint32)


def seen():
    matrix = np.zeros((RATINGS.n_users, RATINGS.n_items))
    matrix[RATINGS.user_index, RATINGS.item_index] = 1
    return matrix


def loss(method):
    weight, exponent = method.options.unrated_weight, method.options.exponent
    scores, matrix = method.user_factors @ method.item_factors.T, seen()
    norms = sum(
        ((counts + weight * others) ** exponent) @ (factors**2).sum(axis=1)
        for counts, others, factors in (
            (matrix.sum(axis=1), RATINGS.n_items, method.user_factors),
            (matrix.sum(axis=0), RATINGS.n_users, method.item_factors),
        )
    )
    fit = (matrix * (1 - scores) ** 2).sum() + weight * (scores**2).sum()
    return fit + method.options.regularization * norms


def test_popularity_scores_by_how_many_users_rated_an_item():
    method = Popularity()
    method.begin(RATINGS, 0)
    assert method.scores(USERS, ITEMS).tolist() == RATINGS.item_counts()[ITEMS].tolist()


@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_a_step_of_ials_leaves_no_slope_by_the_items_and_never_raises_the_loss(exponent):
    method = Ials(IalsOptions(regularization=0.05, unrated_weight=0.2, exponent=exponent))
    method.begin(RATINGS, 0)
    before = loss(method)
    method.step()
    after = loss(method)
    assert after < before
    for item, factor in ((0, 0), (40, 31)):
        slopes = []
        for step in (1e-4, -1e-4):
            method.item_factors[item, factor] += step
            slopes.append(loss(method))
            method.item_factors[item, factor] -= step
        assert abs(slopes[0] - slopes[1]) / 2e-4 < 1e-5
        assert min(slopes) > after


def test_ease_has_the_least_squares_weights_with_a_zero_diagonal():
    """Each column solves a ridge regression of its item on all others."""
    method = Ease(EaseOptions(regularization=20.0))
    method.begin(RATINGS, 0)
    matrix, item = seen(), 11
    others = np.delete(matrix, item, axis=1)
    wanted = np.linalg.solve(others.T @ others + 20 * np.eye(others.shape[1]), others.T @ matrix[:, item])
    assert method.weights[item, item] == 0
    np.testing.assert_allclose(np.delete(method.weights[:, item], item), wanted, atol=1e-10)
    np.testing.assert_allclose(method.scores(USERS, ITEMS), (matrix @ method.weights)[USERS, ITEMS])


def test_ease_refuses_a_catalogue_that_it_cannot_hold(monkeypatch):
    monkeypatch.setattr(references, "MOST_ITEMS", 100)
    with pytest.raises(InvalidInputError, match="200 items are too many"):
        Ease(EaseOptions(regularization=1.0)).begin(RATINGS, 0)
