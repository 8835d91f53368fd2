"""Codes of discrete collaborative filtering against the objective, written out."""

import numpy as np
import pytest

from lightfr_harness.data import generate
from lightfr_harness.simulation.baselines.ddl import Ddl, DdlOptions, balanced, fit_codes

RATINGS = generate("tiny")
BITS = 8


def begun(alpha=0.0, beta=0.0):
    method = Ddl(DdlOptions(alpha, beta), BITS)
    method.begin(RATINGS, 2)
    return method


def objective(method):
    wanted = BITS * (2 * RATINGS.rating / RATINGS.rating_max - 1)
    error = wanted - method.scores(RATINGS.user_index, RATINGS.item_index)
    pulls = method.options.alpha * (method.user_codes * method.user_targets).sum()
    pulls += method.options.beta * (method.item_codes * method.item_targets).sum()
    return (error**2).sum() - 2 * pulls


def fit(method, side):
    users, items = (RATINGS.user_index, method.user_codes), (RATINGS.item_index, method.item_codes)
    (rows, codes), (other_rows, others) = (users, items) if side == "users" else (items, users)
    targets, weight = (
        (method.user_targets, method.options.alpha) if side == "users" else (method.item_targets, method.options.beta)
    )
    wanted = BITS * (2 * RATINGS.rating / RATINGS.rating_max - 1)
    residual = wanted - method.scores(RATINGS.user_index, RATINGS.item_index)
    fit_codes(codes, others, rows, other_rows, residual, weight * targets)
    return wanted, residual


@pytest.mark.parametrize("side", ["users", "items"])
@pytest.mark.parametrize("weight", [0.0, 5.0, 50.0])
def test_after_a_fit_no_single_bit_can_flip_for_the_better(side, weight):
    """This fails for a pull of the wrong sign."""
    method = begun(weight, weight)
    before = objective(method)
    wanted, residual = fit(method, side)
    after = objective(method)
    assert after < before
    np.testing.assert_allclose(residual, wanted - method.scores(RATINGS.user_index, RATINGS.item_index))
    codes = method.user_codes if side == "users" else method.item_codes
    for row in range(0, len(codes), 7):
        for bit in range(BITS):
            codes[row, bit] *= -1
            assert objective(method) >= after
            codes[row, bit] *= -1


def test_targets_are_balanced_uncorrelated_and_as_near_as_can_be():
    codes = np.random.default_rng(0).choice([-1.0, 1.0], (50, BITS))
    near = balanced(codes, np.random.default_rng(1))
    np.testing.assert_allclose(near.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(near.T @ near, 50 * np.eye(BITS), atol=1e-9)
    values = np.linalg.svd(codes - codes.mean(axis=0), compute_uv=False)
    assert (codes * near).sum() == pytest.approx(np.sqrt(50) * values.sum())


def test_missing_directions_are_filled_up():
    codes = np.random.default_rng(0).choice([-1.0, 1.0], (50, BITS))
    codes[:, 1] = codes[:, 0]
    codes[:, 2] = 1
    near = balanced(codes, np.random.default_rng(1))
    np.testing.assert_allclose(near.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(near.T @ near, 50 * np.eye(BITS), atol=1e-9)


def test_a_strong_pull_balances_the_bits():
    free, pulled = begun(), begun(1000.0, 1000.0)
    for method in (free, pulled):
        for _ in range(3):
            method.step()
    assert np.abs(pulled.item_codes.mean(axis=0)).mean() < 0.5 * np.abs(free.item_codes.mean(axis=0)).mean()
