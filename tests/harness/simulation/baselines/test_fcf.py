"""FCF against its own equations: the device's factors are the minimum, and its gradients are those of the loss."""

from dataclasses import replace

import numpy as np
import pytest

from lightfr_harness.data import Ratings
from lightfr_harness.simulation.baselines.fcf import ENTRIES, Fcf, FcfDevice, FcfOptions, FcfServer, cost
from lightfr_harness.simulation.baselines.tables import best_unrated, decode_rows, decode_table
from tests.harness.simulation.baselines.made import made_ratings

OPTIONS = [FcfOptions(factors=4), FcfOptions(factors=4, unrated_weight=0.0)]


def make_device(options, n_items=30):
    rng = np.random.default_rng(0)
    items = rng.choice(n_items, 6, replace=False).astype(np.uint32)
    return FcfDevice(items, rng.random(6), options), rng.normal(0, 0.5, (n_items, 4))


def gradients_of(device, item_factors, options):
    """One row for each item."""
    message = device.answer(item_factors, 0)
    if options.unrated_weight:
        return decode_table(message)
    whole = np.zeros_like(item_factors)
    items, rows = decode_rows(message)
    whole[items] = rows
    return whole


@pytest.mark.parametrize("options", OPTIONS)
def test_a_fit_is_the_minimum_of_the_users_loss(options):
    device, item_factors = make_device(options)
    x = device.factors(item_factors)
    best = device.loss(item_factors, x)
    for step in np.random.default_rng(1).normal(0, 0.01, (20, 4)):
        assert device.loss(item_factors, x + step) > best


@pytest.mark.parametrize("options", OPTIONS)
def test_uploaded_gradients_are_those_of_the_loss(options):
    device, item_factors = make_device(options)
    x, gradients = device.factors(item_factors), -2 * gradients_of(device, item_factors, options)
    for place in np.ndindex(*item_factors.shape):
        step = np.zeros_like(item_factors)
        step[place] = 1e-6
        slope = (device.loss(item_factors + step, x) - device.loss(item_factors - step, x)) / 2e-6
        assert gradients[place] == pytest.approx(slope, abs=1e-6)


def test_the_papers_account_uploads_rated_items_and_the_published_method_all():
    published, rated = (make_device(options) for options in OPTIONS)
    assert len(decode_table(published[0].answer(published[1], 0))) == 30
    items, _ = decode_rows(rated[0].answer(rated[1], 0))
    assert sorted(items) == sorted(rated[0]._items)


@pytest.mark.parametrize("options", OPTIONS)
def test_the_servers_first_step_goes_against_the_sum_of_the_gradients(options):
    """Adam's first step has the length of the learning rate in each number, and the direction of the sign."""
    device, _ = make_device(options)
    server = FcfServer(30, replace(options, regularization=0.5), np.random.default_rng(3))
    before = server.item_factors
    gradient = 2 * 0.5 * before - 2 * 2 * gradients_of(device, before, options)
    for _ in range(2):
        server.receive(device.answer(before, 0))
    server.step()
    np.testing.assert_allclose(server.item_factors, before - 0.05 * gradient / (np.abs(gradient) + 1e-8), atol=1e-12)


def test_training_finds_the_group_of_a_user():
    """Two groups of users rate two halves of the catalogue: what is recommended comes from the own half."""
    rng, users = np.random.default_rng(5), np.repeat(np.arange(40), 8)
    items = np.concatenate([20 * (user % 2) + rng.choice(20, 8, replace=False) for user in range(40)])
    names = [[str(number) for number in range(40)]] * 2
    train = Ratings(users, items, np.full(len(users), 5.0), np.arange(len(users)), *names, 1, 5)
    method = Fcf(FcfOptions(factors=4))
    method.fit(train, seed=1, steps=30)
    table = method.server.item_factors
    own_half = []
    for user, device in enumerate(method.devices):
        best = best_unrated(table @ device.factors(table), device._items, 5)
        own_half.append(np.mean(best // 20 == user % 2))
    assert np.mean(own_half) > 0.95


def test_a_rating_counts_by_its_place_in_the_scale():
    train = Ratings([0, 0, 0], [0, 1, 2], [1.0, 3.0, 5.0], [1, 2, 3], ["u"], list("abc"), 1, 5)
    method = Fcf(FcfOptions(alpha=4.0))
    method.begin(train, seed=0)
    assert method.devices[0]._confidence.tolist() == [1.0, 3.0, 5.0]


def central_least_squares(train, options, sweeps):
    """Alternating least squares by one who has all ratings; the objective after so many sweeps."""
    shape, strength = (train.n_users, train.n_items), options.regularization * np.eye(int(options.factors))
    confidence, wanted = np.ones(shape), np.zeros(shape)
    confidence[train.user_index, train.item_index] += options.alpha * (train.rating - 1) / 4
    wanted[train.user_index, train.item_index] = 1
    y = np.random.default_rng(0).normal(0, 0.1, (train.n_items, int(options.factors)))
    for _ in range(sweeps):
        x = np.array(
            [np.linalg.solve((y.T * c) @ y + strength, y.T @ (c * p)) for c, p in zip(confidence, wanted, strict=True)]
        )
        y = np.array(
            [
                np.linalg.solve((x.T * c) @ x + strength, x.T @ (c * p))
                for c, p in zip(confidence.T, wanted.T, strict=True)
            ]
        )
    return (confidence * (wanted - x @ y.T) ** 2).sum() + options.regularization * ((x**2).sum() + (y**2).sum())


def test_many_rounds_reach_the_objective_of_central_least_squares():
    train, options = made_ratings(20, 15, 6), FcfOptions(factors=2, learning_rate=0.02)
    method = Fcf(options)
    method.fraction = 1.0
    method.fit(train, seed=0, steps=250)
    table = method.server.item_factors
    reached = sum(device.loss(table, device.factors(table)) for device in method.devices) + (table**2).sum()
    assert reached == pytest.approx(central_least_squares(train, options, 100), rel=0.01)


def test_bytes_on_disk_and_in_messages_are_those_of_the_formula_and_item_numbers():
    rated, published = cost(500, 20, seed=0), cost(500, 20, seed=0, unrated_weight=1.0)
    assert rated.storage_bytes == published.storage_bytes == 501 * 256
    assert rated.down_bytes == published.down_bytes == published.up_bytes
    assert 0 < rated.down_bytes - 500 * 256 < 10
    assert 20 <= rated.up_bytes - 20 * 256 < 20 * 2 + 20
    assert len(rated.recommend(10)) == 10


def test_an_unknown_setting_is_refused():
    with pytest.raises(TypeError, match="speed"):
        ENTRIES[0].make({"speed": 1.0})
