"""FCF against its own equations: the device's factors are the minimum, and its gradients are those of the loss."""

import numpy as np
import pytest

from lightfr_harness.simulation.baselines.fcf import FcfDevice, FcfOptions, FcfServer, FcfUpload, fcf_bytes, save

OPTIONS = [FcfOptions(), FcfOptions(unrated_weight=0.0)]


def make_device(options, seed=0, n_items=30, factors=4):
    rng = np.random.default_rng(seed)
    items = rng.choice(n_items, 6, replace=False).astype(np.uint32)
    return FcfDevice(items, rng.random(6), options), rng.normal(0, 0.5, (n_items, factors))


@pytest.mark.parametrize("options", OPTIONS)
def test_a_fit_is_the_minimum_of_the_users_loss(options):
    device, item_factors = make_device(options)
    device.fit(item_factors)
    best, fitted = device.loss(item_factors), device.user_factors
    for step in np.random.default_rng(1).normal(0, 0.01, (20, 4)):
        device.user_factors = fitted + step
        assert device.loss(item_factors) > best


@pytest.mark.parametrize("options", OPTIONS)
def test_uploaded_gradients_are_those_of_the_loss(options):
    device, item_factors = make_device(options)
    device.fit(item_factors)
    upload = device.upload(item_factors)
    whole = np.zeros_like(item_factors)
    whole[upload.item_indices] = -2 * upload.gradients
    for item, factor in np.ndindex(*item_factors.shape):
        moved = item_factors.copy()
        moved[item, factor] += 1e-6
        slope = (device.loss(moved) - device.loss(item_factors)) / 1e-6
        assert whole[item, factor] == pytest.approx(slope, abs=1e-4)


def test_the_papers_account_uploads_rated_items_and_the_published_method_all():
    for options, rows in zip(OPTIONS, (30, 6), strict=True):
        device, item_factors = make_device(options)
        device.fit(item_factors)
        assert len(device.upload(item_factors).item_indices) == rows


def test_an_upload_survives_the_wire():
    upload = FcfUpload(np.array([3, 9], np.uint32), np.arange(64.0).reshape(2, 32))
    assert len(upload.encode()) == 2 * (4 + 32 * 8)
    decoded = FcfUpload.decode(upload.encode())
    np.testing.assert_array_equal(decoded.item_indices, upload.item_indices)
    np.testing.assert_array_equal(decoded.gradients, upload.gradients)


def test_training_finds_the_group_of_a_user():
    """Two groups of users rate two halves of the catalogue: what is recommended comes from the own half."""
    rng, options = np.random.default_rng(5), FcfOptions()
    devices = []
    for user in range(40):
        items = (20 * (user % 2) + rng.choice(20, 8, replace=False)).astype(np.uint32)
        devices.append(FcfDevice(items, np.ones(8), options))
    server = FcfServer(40, options, seed=1, factors=4)
    losses = []
    for _ in range(30):
        for device in devices:
            device.fit(server.item_factors)
        losses.append(sum(device.loss(server.item_factors) for device in devices))
        server.step([device.upload(server.item_factors).encode() for device in devices])
    assert losses[-1] < 0.5 * losses[0]
    own_half = [np.mean(d.recommend(server.item_factors, 5) // 20 == user % 2) for user, d in enumerate(devices)]
    assert np.mean(own_half) > 0.95


def test_a_device_never_recommends_what_was_rated():
    device, item_factors = make_device(FcfOptions())
    device.fit(item_factors)
    assert not set(device.recommend(item_factors, 24).tolist()) & set(device._items.tolist())


def test_bytes_on_disk_and_in_messages_are_those_of_the_formula(tmp_path):
    assert save(tmp_path, np.ones((100, 32)), np.ones(32)) == (1 + 100) * 32 * 8
    measured = fcf_bytes(500, 20, seed=0)
    assert measured["storage_bytes"] == 501 * 256
    assert measured["round_bytes"] == 500 * 256 + 20 * 260
    assert measured["published_round_bytes"] == 500 * 256 + 500 * 260
