"""PrivRec's reconstruction: its walk, its clipping, its noise, and the epsilon that follows."""

import math

import numpy as np
import pytest

from lightfr.errors import OutOfRangeError
from lightfr_harness.simulation.baselines.privrec import (
    ENTRY,
    PrivRec,
    PrivRecDevice,
    PrivRecOptions,
    PrivRecServer,
    clipped,
    cost,
    epsilon,
    sampled_loss,
)
from lightfr_harness.simulation.baselines.tables import decode_rows, encode_rows
from tests.harness.simulation.baselines.made import made_ratings

ITEMS, RATINGS = np.array([2, 0], np.uint32), np.array([4.0, 1.0])


def make_device(**changes):
    rng = np.random.default_rng(0)
    options = PrivRecOptions(**{"factors": 3, "step_size": 0.1, "regularization": 0.2, **changes})
    return PrivRecDevice(ITEMS, RATINGS, options, rng), rng.normal(0, 1, (4, 3))


def slow_walk(p, table, rate, strength):
    """The equations, rating by rating; p and the changed table."""
    table = table.copy()
    for item, rating in zip(ITEMS, RATINGS, strict=True):
        error = rating - p @ table[item]
        p = p + rate * (error * table[item] - strength * p)
        table[item] += rate * (error * p - strength * table[item])
    return p, table


def test_an_upload_is_the_change_of_the_rated_rows():
    device, table = make_device()
    p, changed = slow_walk(device.user_factors, table, 0.1, 0.2)
    items, change = decode_rows(device.answer(table, 0))
    np.testing.assert_array_equal(items, ITEMS)
    np.testing.assert_allclose(change, (changed - table)[ITEMS], rtol=1e-12)
    np.testing.assert_allclose(device.user_factors, p, rtol=1e-12)


def test_changes_are_those_of_the_loss_when_steps_are_tiny():
    device, table = make_device(step_size=1e-9)
    p = device.user_factors

    def loss(q):
        return 0.5 * ((RATINGS - q @ p) ** 2).sum() + 0.1 * (q**2).sum()

    _, change = decode_rows(device.answer(table, 0))
    for place in np.ndindex(2, 3):
        step = np.zeros((2, 3))
        step[place] = 1e-6
        slope = (loss(table[ITEMS] + step) - loss(table[ITEMS] - step)) / 2e-6
        assert -change[place] / 1e-9 == pytest.approx(slope, abs=1e-5)


def test_a_long_change_is_shortened_over_all_rows_and_a_short_one_is_not():
    long = np.array([[3.0, 0.0], [0.0, 4.0]])
    np.testing.assert_allclose(clipped(long, 1.0), long / 5)
    np.testing.assert_array_equal(clipped(long, 5.0), long)
    np.testing.assert_array_equal(clipped(np.zeros((2, 2)), 1.0), np.zeros((2, 2)))
    device, table = make_device(clip=0.01)
    assert np.linalg.norm(decode_rows(device.answer(table, 0))[1]) == pytest.approx(0.01)


def test_the_server_shortens_what_a_device_did_not():
    options = PrivRecOptions(factors=2, clip=1.0, noise=0.0)
    server = PrivRecServer(3, options, np.random.default_rng(0))
    before = server.item_factors
    server.receive(encode_rows(np.array([1], np.uint32), np.array([[30.0, 40.0]])))
    server.receive(encode_rows(np.array([1], np.uint32), np.array([[0.2, 0.0]])))
    server.step()
    np.testing.assert_allclose(server.item_factors - before, [[0, 0], [0.4, 0.4], [0, 0]], atol=1e-12)


def test_noise_is_on_every_number_of_the_table_and_shrinks_with_the_devices():
    server = PrivRecServer(4000, PrivRecOptions(factors=5, clip=3.0, noise=2.0), np.random.default_rng(0))
    before = server.item_factors
    for _ in range(10):
        server.receive(encode_rows(np.zeros(0, np.uint32), np.zeros((0, 5))))
    server.step()
    moved = server.item_factors - before
    assert (moved != 0).all()
    assert moved.std() == pytest.approx(2.0 * 3.0 / 10, rel=0.02)


def test_a_device_adapts_before_it_recommends_and_keeps_its_own_factors():
    device, table = make_device(adaptation=1)
    before = device.user_factors.copy()
    adapted = device.factors(table)
    rows, rate, strength = table[ITEMS], 0.1, 0.2
    expected = before
    for q, rating in zip(rows, RATINGS, strict=True):
        expected = expected + rate * ((rating - expected @ q) * q - strength * expected)
    np.testing.assert_allclose(adapted, expected, rtol=1e-12)
    np.testing.assert_array_equal(device.user_factors, before)


def test_training_without_noise_lowers_the_error_and_noise_undoes_it():
    train = made_ratings(20, 30, 10)
    errors = []
    for noise, steps in ((0.0, 1), (0.0, 60), (1.0, 60)):
        method = PrivRec(PrivRecOptions(factors=4, step_size=0.05, noise=noise, clip=5.0))
        method.fit(train, seed=0, steps=steps)
        errors.append(float(np.mean((train.rating - method.scores(train.user_index, train.item_index)) ** 2)))
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] > 2 * errors[1]


def test_epsilon_of_fifty_rounds_is_at_most_what_the_usual_conversion_says():
    """rho + 2 sqrt(rho ln(1/delta)) is 59 for all devices; 36 with three fifths, order by order. Ours is tighter."""
    usual = 25 + 2 * math.sqrt(25 * math.log(1e5))
    sampled = min(50 * sampled_loss(a, 1.0, 0.6) + math.log(1e5) / (a - 1) for a in range(2, 64))
    assert (round(usual), round(sampled)) == (59, 36)
    assert usual - 2 < epsilon(1.0, 50) < usual
    assert sampled - 2 < epsilon(1.0, 50, 0.6) < sampled
    assert f"{epsilon(1.0, 50):.1f} at a delta of 1e-5, or {epsilon(1.0, 50, 0.6):.1f} if" in ENTRY.note


def test_a_sampled_release_loses_what_a_numerical_integral_says():
    z, q, order = 1.3, 0.4, 5
    x = np.linspace(-30, 30, 200_001)
    base = np.exp(-(x**2) / (2 * z**2)) / (z * math.sqrt(2 * math.pi))
    ratio = 1 - q + q * np.exp((2 * x - 1) / (2 * z**2))
    moment = np.sum(base * ratio**order) * (x[1] - x[0])
    assert sampled_loss(order, z, q) == pytest.approx(math.log(moment) / (order - 1), rel=1e-9)


def test_epsilon_grows_with_rounds_and_fraction_and_falls_with_noise():
    assert epsilon(1.0, 10, 0.6) < epsilon(1.0, 50, 0.6) < epsilon(1.0, 50)
    assert epsilon(2.0, 50, 0.6) < epsilon(1.0, 50, 0.6)
    assert epsilon(0.0, 1) == math.inf
    with pytest.raises(OutOfRangeError):
        epsilon(1.0, 50, 0.0)


def test_bytes_are_those_of_the_formula_and_item_numbers():
    measured = cost(500, 20, seed=0)
    assert measured.storage_bytes == 501 * 256
    assert 20 <= measured.up_bytes - 20 * 256 < 20 * 2 + 20
    assert len(measured.recommend(10)) == 10
