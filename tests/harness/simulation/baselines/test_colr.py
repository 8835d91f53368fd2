"""CoLR: the compressed step is fair, everybody who catches up has the server's table, and messages are short."""

import numpy as np
import pytest

from lightfr_harness.simulation.baselines.colr import (
    Colr,
    ColrDevice,
    ColrOptions,
    ColrServer,
    basis,
    cost,
)
from lightfr_harness.simulation.baselines.lightfr_baselines_pb2 import Table
from lightfr_harness.simulation.baselines.pfedrec import PfedrecDevice, PfedrecOptions, PfedrecServer
from lightfr_harness.simulation.baselines.pfedrec import cost as pfedrec_cost
from lightfr_harness.simulation.baselines.tables import from_table

from .small import share_of_own_half, two_groups

RATED = np.array([1, 4, 7], np.uint32)


def test_the_expected_step_is_the_one_without_compression():
    products = [b.T @ b for b in (basis(1, number, 2, 6) for number in range(1000))]
    np.testing.assert_allclose(np.mean(products, axis=0), np.eye(6), atol=0.15)


def test_with_full_rank_nothing_is_lost():
    options, plain = ColrOptions(factors=4, rank=4), PfedrecOptions(factors=4)
    server = ColrServer(30, options, 0, np.random.default_rng(1))
    whole = PfedrecServer(30, 4, np.random.default_rng(1))
    device, twin = (kind(RATED, plain, np.random.default_rng(2)) for kind in (ColrDevice, PfedrecDevice))
    server.learn([device.compressed_answer(server.table, server.directions())])
    whole.learn([twin.answer(whole.table)])
    np.testing.assert_allclose(server.table, whole.table, atol=1e-9)


def test_a_device_that_catches_up_has_the_table_of_the_server():
    options = ColrOptions(factors=8, rank=2)
    server = ColrServer(30, options, 7, np.random.default_rng(1))
    device = ColrDevice(RATED, options, np.random.default_rng(2))
    (download,) = server.catch_up(None)
    table = from_table(Table.FromString(download)).copy()
    for _ in range(3):
        server.learn([device.compressed_answer(server.table, server.directions())])
    missed = server.catch_up(0)
    assert len(missed) == 3
    for number, step in enumerate(missed):
        table += from_table(Table.FromString(step)) @ basis(7, number, 2, 8)
    np.testing.assert_array_equal(table, server.table)


def test_whoever_was_away_for_long_gets_the_table():
    options = ColrOptions(factors=8, rank=4)
    server = ColrServer(30, options, 7, np.random.default_rng(1))
    device = ColrDevice(RATED, options, np.random.default_rng(2))
    for _ in range(3):
        server.learn([device.compressed_answer(server.table, server.directions())])
    assert server.catch_up(0) == [server.download()]
    assert server.catch_up(1) == server.steps[1:]
    assert server.catch_up(3) == []


def test_traffic_falls_when_devices_have_the_table():
    train = two_groups()
    method = Colr(ColrOptions())
    method.fraction = 1.0
    method.fit(train, 1, steps=2)
    first, second = method.rounds
    assert first.down_bytes == 40 * (40 * 32 * 8 + 5)
    assert second.down_bytes == 40 * (40 * 2 * 8 + 5)
    assert second.up_bytes == pytest.approx(40 * 40 * (2 * 8 + 1), rel=0.02)


def test_users_learn_the_half_of_their_group():
    train = two_groups()
    method = Colr(ColrOptions(factors=8, rank=2, rate=0.5, item_rate=5))
    method.fit(train, 1, steps=30)
    assert share_of_own_half(method, train) > 0.95


def test_the_payload_is_the_share_that_the_note_says():
    whole, found = pfedrec_cost(1000, 10, 0), cost(1000, 10, 0)
    assert found.down_bytes / whole.down_bytes == pytest.approx(0.0625, abs=1e-3)
    assert found.up_bytes == pytest.approx(50 * (2 * 8 + 2), abs=30)
    assert "6.25%" in found.note
    assert len(set(found.recommend(7).tolist())) == 7
