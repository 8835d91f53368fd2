"""FedRec: gradients, virtual ratings and their schedule."""

from dataclasses import replace

import numpy as np
import pytest

from lightfr_harness.simulation.baselines.fedrec import ENTRY, FedRec, FedRecDevice, FedRecOptions, FedRecServer, cost
from lightfr_harness.simulation.baselines.tables import decode_rows, encode_rows
from tests.harness.simulation.baselines.made import made_ratings

OPTIONS = FedRecOptions(factors=3, regularization=0.1, step_size=0.2, rho=2, start=1, local=4)
ITEMS, RATINGS = np.array([4, 1, 9], np.uint32), np.array([5.0, 2.0, 2.0])


def make_device(options=OPTIONS, n_items=12):
    rng = np.random.default_rng(0)
    device = FedRecDevice(ITEMS, RATINGS, n_items, options, rng)
    device.user_factors = rng.normal(0, 1, 3)
    return device, rng.normal(0, 1, (n_items, 3))


def test_gradients_are_those_of_the_loss_by_finite_differences():
    """Without virtual ratings the loss is over the real ones; the device goes against its mean, the server its sum."""
    device, table = make_device(replace(OPTIONS, rho=0))
    user = device.user_factors

    def loss(u, v):
        return 0.5 * ((RATINGS - v @ u) ** 2).sum() + 0.05 * (len(v) * u @ u + (v**2).sum())

    items, gradients = decode_rows(device.answer(table, 0))
    moved = (user - device.user_factors) / 0.2
    rows = table[items]
    for factor in range(3):
        step = 1e-6 * np.eye(3)[factor]
        slope = (loss(user + step, rows) - loss(user - step, rows)) / 2e-6
        assert moved[factor] == pytest.approx(slope / 3, abs=1e-7)
        for k in range(3):
            nudge = np.zeros((3, 3))
            nudge[k] = step
            slope = (loss(user, rows + nudge) - loss(user, rows - nudge)) / 2e-6
            assert gradients[k, factor] == pytest.approx(slope, abs=1e-7)


def test_virtual_ratings_are_the_users_mean_until_the_start_and_then_a_refined_models():
    device, table = make_device()
    sampled = table[[0, 2, 3]]
    for number in (0, 1):
        assert device.virtual_ratings(sampled, number, table).tolist() == [3.0] * 3
    user = device.user_factors
    for _ in range(4):
        gradient = 0.1 * user - (RATINGS - table[ITEMS] @ user) @ table[ITEMS] / 3
        user = user - 0.2 * 0.9**2 * gradient
    before = device.user_factors.copy()
    np.testing.assert_allclose(device.virtual_ratings(sampled, 2, table), sampled @ user, rtol=1e-12)
    np.testing.assert_array_equal(device.user_factors, before)


def test_uploads_have_the_rated_items_and_rho_times_as_many_others_drawn_anew():
    device, table = make_device()
    uploads = [set(decode_rows(device.answer(table, number))[0].tolist()) for number in range(30)]
    assert {len(upload) for upload in uploads} == {9}
    assert set.intersection(*uploads) == set(ITEMS.tolist())


def test_no_more_items_are_drawn_than_there_are():
    device, table = make_device(replace(OPTIONS, rho=50))
    assert sorted(decode_rows(device.answer(table, 0))[0]) == list(range(12))


def test_an_upload_treats_virtual_ratings_as_real_ones():
    device, table = make_device()
    user = device.user_factors
    items, gradients = decode_rows(device.answer(table, 0))
    ratings = np.concatenate([RATINGS, np.full(6, 3.0)])
    rows = table[items]
    error = ratings - rows @ user
    np.testing.assert_allclose(gradients, 0.1 * rows - error[:, None] * user, rtol=1e-12)
    np.testing.assert_allclose(device.user_factors, user - 0.2 * (0.1 * user - error @ rows / 9), rtol=1e-12)


def test_the_server_takes_the_mean_of_what_came_for_an_item_and_its_steps_shrink():
    server = FedRecServer(4, OPTIONS, np.random.default_rng(1))
    before = server.item_factors
    for number in range(2):
        at = server.item_factors
        server.receive(encode_rows(np.array([0, 2], np.uint32), np.ones((2, 3))))
        server.receive(encode_rows(np.array([2], np.uint32), np.full((1, 3), 4.0)))
        server.step()
        moved = (at - server.item_factors)[:, 0] / (0.2 * 0.9**number)
        np.testing.assert_allclose(moved, [1.0, 0.0, 2.5, 0.0], atol=1e-12)
    np.testing.assert_array_equal(server.item_factors[[1, 3]], before[[1, 3]])


def test_the_error_falls_with_the_authors_constants():
    train = made_ratings(30, 40, 15)
    errors = []
    for steps in (1, 10, 40):
        method = FedRec(FedRecOptions(**ENTRY.authors))
        method.fit(train, seed=0, steps=steps)
        errors.append(np.sqrt(np.mean((method.scores(train.user_index, train.item_index) - train.rating) ** 2)))
    assert errors[0] > 3
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < np.std(train.rating)


def test_a_device_without_ratings_sends_nothing_and_stays_finite():
    device = FedRecDevice(np.zeros(0, np.uint32), np.zeros(0), 12, OPTIONS, np.random.default_rng(0))
    items, _ = decode_rows(device.answer(np.ones((12, 3)), 5))
    assert len(items) == 0
    assert np.isfinite(device.user_factors).all()


def test_the_upload_is_four_times_that_of_the_rated_rows():
    measured = cost(500, 20, seed=0)
    assert measured.storage_bytes == 501 * 256
    assert 80 <= measured.up_bytes - 80 * 256 < 80 * 2 + 20
    assert len(measured.recommend(10)) == 10
