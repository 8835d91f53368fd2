"""PFedRec: the moves of a device are its gradients, the server averages, and the scorer stays at home."""

import numpy as np
import pytest

from lightfr_harness.simulation.baselines.lightfr_baselines_pb2 import ItemRows, Table
from lightfr_harness.simulation.baselines.pfedrec import (
    ENTRY,
    Pfedrec,
    PfedrecDevice,
    PfedrecOptions,
    PfedrecServer,
    cost,
)
from lightfr_harness.simulation.baselines.tables import from_rows, from_table

from .small import share_of_own_half, slope, two_groups

RATED = np.array([1, 4, 7], np.uint32)


def trained(seed=0, **options):
    """A device, its scorer before a round, the table of the round, and what the device moved in it."""
    rng = np.random.default_rng(seed)
    device = PfedrecDevice(RATED, PfedrecOptions(factors=4, **options), rng)
    before, table = np.append(device.weights, device.bias), rng.normal(size=(30, 4))
    items, moves = from_rows(ItemRows.FromString(device.answer(table)))
    return device, before, table, items, moves


def test_scorer_and_rows_move_against_their_gradients():
    device, scorer, table, items, moves = trained(rate=0.1, item_rate=2.0)
    labels = np.isin(items, RATED).astype(float)

    def loss():
        logits = table[items] @ scorer[:4] + scorer[4]
        return np.mean(np.logaddexp(0, logits) - labels * logits)

    slopes = np.array([slope(loss, scorer, place) for place in range(5)])
    scorer -= 0.1 * slopes
    np.testing.assert_allclose(np.append(device.weights, device.bias), scorer, atol=1e-8)
    # The rows follow with the scorer that has moved, at the rate of the scorer x items x item_rate.
    expected = [[-0.1 * 30 * 2.0 * slope(loss, table, (item, column)) for column in range(4)] for item in items]
    np.testing.assert_allclose(moves, expected, atol=1e-6)


def test_a_device_answers_with_its_rated_items_and_four_times_as_many_others_once_each():
    _, _, _, items, _ = trained()
    assert len(items) == 15 == len(set(items.tolist()))
    assert set(RATED.tolist()) < set(items.tolist())


def test_a_round_gives_the_mean_of_whole_tables():
    server = PfedrecServer(30, 4, np.random.default_rng(3))
    table = from_table(Table.FromString(server.download()))
    np.testing.assert_array_equal(table, server.table)
    devices = [PfedrecDevice(RATED + user, PfedrecOptions(factors=4), np.random.default_rng(user)) for user in range(3)]
    answers = [device.answer(table) for device in devices]
    tables = []
    for answer in answers:
        items, moves = from_rows(ItemRows.FromString(answer))
        tables.append(table.copy())
        tables[-1][items] += moves
    server.learn(answers)
    np.testing.assert_allclose(server.table, np.mean(tables, axis=0), atol=1e-12)


def test_only_a_tuned_device_scores_with_the_rows_that_it_moved():
    everything = np.arange(30, dtype=np.uint32)
    for tuned in (False, True):
        device, _, table, items, moves = trained(tuned=tuned)
        used = table.copy()
        if tuned:
            used[items] += moves
        np.testing.assert_allclose(device.scores(table, everything), used @ device.weights + device.bias)


def test_users_learn_the_half_of_their_group():
    train = two_groups()
    method = Pfedrec(PfedrecOptions(factors=8, rate=0.5, item_rate=5))
    method.fit(train, 1, steps=30)
    assert share_of_own_half(method, train) > 0.95


def test_a_user_without_ratings_takes_part_and_moves_nothing():
    train = two_groups()
    method = Pfedrec(PfedrecOptions())
    method.begin(train.subset(train.user_index != 0), 1)
    assert method.round([0]).up_bytes < 20


def test_traffic_counts_the_table_for_every_device():
    train = two_groups()
    method = ENTRY.make(ENTRY.authors)
    method.fit(train, 1, steps=1)
    (traffic,) = method.rounds
    assert traffic.devices == 24
    assert traffic.down_bytes == 24 * (40 * 32 * 8 + 5)
    assert 24 * 40 * 32 * 8 < traffic.up_bytes < 24 * 40 * (32 * 8 + 4)


def test_the_cost_is_that_of_the_table_down_and_the_samples_up():
    found = cost(1000, 10, 0)
    assert found.storage_bytes == (1000 * 32 + 33) * 8
    assert found.down_bytes == pytest.approx(1000 * 32 * 8, abs=16)
    assert found.up_bytes == pytest.approx(50 * (32 * 8 + 2), abs=30)
    assert len(set(found.recommend(7).tolist())) == 7
