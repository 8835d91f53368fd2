"""What the catalogue rule makes of refreshes and of the sums of cohorts."""

import numpy as np
import pytest

from lightfr.v1 import model_pb2
from lightfr_harness.server.rules import CatalogueRule
from lightfr_harness.server.rules.plausible import ImplausibleSumError
from tests.harness.server.rules.full_matrix import FullMatrix
from tests.harness.server.rules.test_plausible import BITS, N, honest, server

F = 16


def make(counts, gate=5, **options):
    defaults = {"upload_kind": model_pb2.UPLOAD_KIND_TERNARY, "max_rows": 0, "seed": 7}
    return CatalogueRule(np.asarray(counts), F, gate=gate, **{**defaults, **options})


def bits_of(rule):
    return {name: value.tobytes() for name, value in rule.state().items()}


def test_the_smaller_of_two_refreshes_is_how_many_devices_counted():
    rule = make(np.zeros(3, int))
    assert (rule.counted_devices, rule.state()["counting_devices"].tolist()) == (0, [0, 0])
    for devices, counted, state in ((50, 0, [50, 0]), (40, 40, [0, 40]), (60, 40, [60, 40]), (70, 60, [0, 60])):
        rule.set_gate(np.array([9, 9, 9]), 1, devices)
        assert (rule.counted_devices, rule.state()["counting_devices"].tolist()) == (counted, state)


def test_counts_of_a_first_refresh_go_with_items_that_stay_the_first_among_them():
    rule = make(np.zeros(4, int))
    rule.set_gate(np.array([7, 8, 9, 6]), 1)
    rule.change_items(np.array([2, -1, 0, 1, 3]), np.array([0, 0, 0, 1, 0], bool), np.zeros(5, int), 1)
    assert rule.state()["first_counts"].tolist() == [9, 0, 7, 0, 6]


def test_a_gate_of_one_is_none_and_a_gate_of_two_is_one():
    """One row says what all devices together can, the other what is too long for its count."""
    rules, sums = {gate: server(gate) for gate in (0, 1, 2, 10)}, honest(0)
    sums["rows"].reshape(-1, BITS)[[200, 290]] += np.random.default_rng(9).choice([-1, 1], BITS) * [[60], [200]]
    for rule in rules.values():
        rule.add_cohort(sums, N)
        rule.finish_round()
    assert bits_of(rules[0]) == bits_of(rules[1])
    assert bits_of(rules[2]) == bits_of(rules[10])
    assert not np.array_equal(rules[0].trails, rules[10].trails)


@pytest.mark.parametrize("gate", [0, 10])
@pytest.mark.parametrize(("block", "number", "match"), [("weight", 71 * N, "weight"), ("user_sum", 75 * N, "user sum")])
def test_users_that_so_many_devices_cannot_have_spoil_the_sum(gate, block, number, match):
    sums = honest(0)
    sums[block] = np.full_like(sums[block], number)
    with pytest.raises(ImplausibleSumError, match=match):
        server(gate).add_cohort(sums, N)


def test_a_row_that_is_held_does_not_fade_and_counts_as_it_is_for_what_is_usual():
    """Three rows of 32 devices, each of which rates all. The first says more than they can, the last nothing.

    The trail of the first is 16 long, which is the median. So the second may be 16 * 160 // 256 = 10 and
    3 (1024 * 16 // 100) 100 // 1024 = 47 long, 57 together. It is not shortened, for 16 * 7663^2 // 2^24 = 56.
    """
    rule = make([100, 100, 100])
    rule.counting_devices = np.array([0, 100])
    rule.trails[0], rule.trails[1] = 4096, 2712
    rows = np.zeros((3, F), np.int64)
    rows[0], rows[1] = 100, 20
    users = {"user_sum": np.zeros(F, np.int64), "weight": np.array([32 * 32])}
    assert rule.add_cohort({"rows": rows.ravel(), **users}, 32) == 1
    rule.finish_round()
    assert rule.trails.tolist() == [[4096] * F, [2712 - 2712 // 16 + 256 * 20] * F, [0] * F, [0] * F]


def test_the_model_tells_the_mean_user_once_there_is_one():
    rule = make(np.full(3, 9), gate=0)
    assert rule.model().mean_user == b""
    rule.add_sums(np.zeros(3 * F, np.int64), np.array([64, -32] * (F // 2)), np.array([64]))
    rule.finish_round()
    assert rule.model().mean_user == (b"\x00\x01" + b"\x80\xff") * (F // 2)


@pytest.mark.parametrize("weight", [1, 2, 48])
def test_sums_of_any_weight_pull_the_rows_from_what_users_have_in_common(weight):
    counts = np.array([9, 0, 9, 7])
    rule, full = make(counts), FullMatrix(counts, F, 5, 7)
    rows, user_sum = np.arange(3 * F).reshape(3, F) - 20, np.arange(F) * 3 - 7
    rule.add_sums(rows.ravel(), user_sum, np.array([weight]))
    rule.finish_round()
    full.round(rows, user_sum, weight)
    assert rule.memory.tolist() == full.memory[[0, 2, 3, 4]].tolist()


@pytest.mark.parametrize("weight", [0, -1])
def test_sums_without_a_weight_move_the_rows_by_what_devices_say_of_them_alone(weight):
    rule, rows = make(np.full(2, 9), gate=0), np.arange(2 * F).reshape(2, F) - 9
    rule.add_sums(rows.ravel(), np.full(F, 1000), np.array([weight]))
    rule.finish_round()
    assert rule.memory[:2].tolist() == (256 * rows).tolist()
    assert not rule.mean_user.any()


def test_sums_beyond_2_to_the_26_count_as_that_many():
    rule, rows = make(np.full(2, 9), gate=0), np.zeros((2, F), np.int64)
    rows[0, :4] = 2**18, 2**18 + 1, -(2**18), -(2**18) - 1
    rows[1, :4] = 2**18 - 1, 2**22, -(2**18) + 1, -(2**22)
    rule.add_sums(rows.ravel(), np.zeros(F, np.int64), np.array([0]))
    rule.finish_round()
    assert rule.memory[0, :4].tolist() == [2**26, 2**26, -(2**26), -(2**26)]
    assert rule.memory[1, :4].tolist() == [2**26 - 256, 2**26, -(2**26) + 256, -(2**26)]
