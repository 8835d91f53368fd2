"""Messages and rounds that methods with a shared item table have in common."""

import numpy as np
import pytest

from lightfr.errors import ProtocolError
from lightfr_harness.data import Ratings
from lightfr_harness.simulation.baselines import item_factors
from lightfr_harness.simulation.baselines.fcf import Fcf, FcfOptions
from lightfr_harness.simulation.baselines.item_factors import histories
from lightfr_harness.simulation.baselines.lightfr_baselines_pb2 import ItemRows, Table
from lightfr_harness.simulation.baselines.tables import (
    best_unrated,
    decode_rows,
    decode_table,
    encode_rows,
    encode_table,
    stored_bytes,
)
from tests.harness.simulation.baselines.made import made_ratings


def test_tables_and_rows_survive_the_wire():
    table, items = np.random.default_rng(0).normal(size=(5, 3)), np.array([7, 300, 2], np.uint32)
    np.testing.assert_array_equal(decode_table(encode_table(table)), table)
    decoded_items, rows = decode_rows(encode_rows(items, table[:3]))
    np.testing.assert_array_equal(decoded_items, items)
    np.testing.assert_array_equal(rows, table[:3])


def test_an_upload_without_rows_survives_too():
    items, rows = decode_rows(encode_rows(np.zeros(0, np.uint32), np.zeros((0, 4))))
    assert items.shape == (0,)
    assert rows.shape == (0, 4)


@pytest.mark.parametrize("message", [b"\xff", Table(columns=3, values=b"1" * 16), Table(columns=0, values=b"1" * 8)])
def test_a_malformed_table_is_refused(message):
    with pytest.raises(ProtocolError):
        decode_table(message if isinstance(message, bytes) else message.SerializeToString())


def test_an_upload_with_more_items_than_rows_is_refused():
    message = ItemRows(item_indices=[1, 2], rows=Table(columns=1, values=b"1" * 8))
    with pytest.raises(ProtocolError, match="2 items and 1 rows"):
        decode_rows(message.SerializeToString())


def test_histories_are_each_users_ratings_oldest_first_and_may_be_empty():
    ratings = Ratings([2, 0, 2], [5, 4, 3], [1.0, 2.0, 5.0], [9, 1, 8], list("abc"), list("uvwxyz"), 1, 5)
    assert [(items.tolist(), stars.tolist()) for items, stars in histories(ratings)] == [
        ([4], [2.0]),
        ([], []),
        ([3, 5], [5.0, 1.0]),
    ]


def test_recommendations_are_the_best_of_what_was_not_rated():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    assert best_unrated(scores, np.array([1], np.uint32), 3).tolist() == [0, 2, 3]
    assert scores[1] == 4.0, "the scores are the caller's"


def test_bytes_on_disk_are_those_of_all_parts():
    assert stored_bytes(np.ones((100, 32)), np.ones(32), b"key") == 101 * 32 * 8 + 3


def test_a_round_counts_the_download_for_each_device_and_every_upload():
    train, method = made_ratings(6, 9, 4), Fcf(FcfOptions(factors=3, unrated_weight=0.0))
    method.begin(train, seed=0)
    table = method.opened(method.server.download())
    uploads = [len(method.devices[user].answer(table, 0)) for user in (1, 4)]
    traffic = method.round([1, 4])
    assert (traffic.devices, traffic.down_bytes) == (2, 2 * len(encode_table(table)))
    assert traffic.up_bytes == sum(uploads)


def test_a_step_takes_three_fifths_of_the_devices_and_numbers_the_rounds():
    class Counting(Fcf):
        def begin(self, train, seed):
            super().begin(train, seed)
            self.numbers, device = [], self.devices[0]

            class Noting(item_factors.Device):
                def answer(noting, item_factors, number):  # noqa: N805
                    self.numbers.append(number)
                    return device.answer(item_factors, number)

                def factors(noting, item_factors):  # noqa: N805
                    return device.factors(item_factors)

            self.devices = [Noting()] * 5

    method = Counting(FcfOptions(factors=2))
    method.fit(made_ratings(5, 9, 4), seed=0, steps=2)
    assert method.numbers == [0] * 3 + [1] * 3


def test_scores_are_inner_products_in_the_order_asked_for():
    train, method = made_ratings(5, 9, 4), Fcf(FcfOptions(factors=3))
    method.fit(train, seed=0, steps=2)
    users, items = np.array([3, 0, 3], np.uint32), np.array([8, 8, 1], np.uint32)
    table = method.server.item_factors
    expected = [method.devices[u].factors(table) @ table[i] for u, i in zip(users, items, strict=True)]
    np.testing.assert_allclose(method.scores(users, items), expected, rtol=1e-12)


def test_the_same_seed_gives_the_same_model_and_a_second_fit_starts_anew():
    train, method = made_ratings(8, 9, 4), Fcf(FcfOptions(factors=3))
    tables = []
    for seed in (1, 1, 2):
        method.fit(train, seed, steps=3)
        tables.append(method.server.item_factors)
    np.testing.assert_array_equal(tables[0], tables[1])
    assert not np.array_equal(tables[0], tables[2])
    assert len(method.rounds) == 3
