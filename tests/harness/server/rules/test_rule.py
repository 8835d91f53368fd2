"""What every rule does with its rows: which are open, which are published, and what the model says."""

import numpy as np
import pytest

from lightfr.errors import InvalidInputError
from lightfr.v1 import model_pb2
from lightfr_harness.server.rules import CatalogueRule, PaperRule
from tests.harness.server.rules.full_matrix import FullMatrix

F = 16


def make(counts, gate, **options):
    defaults = {"upload_kind": model_pb2.UPLOAD_KIND_TERNARY, "max_rows": 0, "seed": 7}
    return CatalogueRule(np.asarray(counts), F, gate=gate, **{**defaults, **options})


@pytest.mark.parametrize("gate", [-1, 0, 1])
def test_a_gate_of_one_or_less_is_none_and_every_item_starts_with_a_code_of_its_own(gate):
    rule = make([0, 0, 9, 1, -3], gate)
    assert rule.open_rows.all()
    assert not rule.has_shared_row
    assert rule.open_rows_bitmap() == b""
    assert rule.published_items().tolist() == [0, 1, 2, 3, 4]
    assert len(np.unique(rule.signs(), axis=0)) == 5


def test_a_gate_of_two_closes_what_fewer_devices_rate():
    rule = make([0, 1, 2, 3], 2)
    assert rule.open_rows.tolist() == [False, False, True, True]
    assert rule.has_shared_row
    assert rule.open_rows_bitmap() == bytes([0b1100])
    assert rule.published_items().tolist() == [2, 3, -1]
    assert len(np.unique(rule.signs(), axis=0)) == 3
    assert np.array_equal(rule.signs()[0], rule.signs()[1])


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_random_codes_are_those_of_their_seed_whatever_their_bytes(first):
    for seed in range(first, first + 100):
        rule, full = make([9, 0, 0], 5, seed=seed), FullMatrix([9, 0, 0], F, 5, seed)
        assert (rule.signs() == full.published()).all()
        for _ in range(2):
            rule.set_gate(np.array([9, 9, 0]), seed)
        full.count(np.array([9, 9, 0]), seed)
        assert (rule.signs() == full.published()).all()


def test_the_model_says_what_the_round_is_about():
    noise = model_pb2.Noise(rows_thousandths=3, sums_thousandths=4, counts_thousandths=5)
    rule = make([9, 9, 9], 2, max_rows=5, privacy_mode=model_pb2.PRIVACY_MODE_SECAGG_DP, noise=noise)
    assert rule.model() == model_pb2.RoundModel(
        code_bits=F,
        item_count=3,
        upload_kind=model_pb2.UPLOAD_KIND_TERNARY,
        max_rows=5,
        privacy_mode=model_pb2.PRIVACY_MODE_SECAGG_DP,
        noise=noise,
        objective=model_pb2.OBJECTIVE_CATALOGUE,
    )


def test_a_rule_without_refreshes_awaits_none():
    rule = PaperRule(
        np.full(3, 9), F, regularization=0.01, upload_kind=model_pb2.UPLOAD_KIND_EXACT, gate=5, max_rows=0, seed=7
    )
    assert not rule.awaits_refresh


def test_first_codes_without_a_closed_item_leave_the_shared_row_as_it_is():
    rule = make([9, 9], 5)
    shared = rule.codes[-1].copy()
    codes = np.arange(2 * F // 8, dtype=np.uint8).reshape(2, -1)
    rule.set_codes(codes)
    assert np.array_equal(rule.codes, [*codes, shared])


@pytest.mark.parametrize(
    ("removed", "counts"), [(np.zeros(3, bool), np.zeros(2, int)), (np.zeros(2, bool), np.zeros(3, int))]
)
def test_another_catalogue_needs_as_many_counts_and_removed_items_as_it_has(removed, counts):
    rule = make([9, 9, 9], 5)
    with pytest.raises(InvalidInputError, match="must be as many as the new catalogue has"):
        rule.change_items(np.array([0, 1]), removed, counts, 1)


def test_the_first_and_the_last_item_of_the_old_catalogue_may_stay_alone():
    rule = make([9, 9, 9], 5)
    before = rule.codes.copy()
    rule.change_items(np.array([2, 0]), np.zeros(2, bool), np.array([9, 9]), 1)
    assert np.array_equal(rule.codes, before[[2, 0, 3]])


def test_a_catalogue_may_lose_all_its_items():
    rule = make([9, 9, 9], 5)
    shared = rule.codes[-1].copy()
    rule.change_items(np.zeros(0, int), np.zeros(0, bool), np.zeros(0, int), 1)
    assert np.array_equal(rule.codes, [shared])
