"""The rules keep rows of items that were ever open, and one for the rest: bit for bit what a full matrix gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr.errors import InvalidInputError
from lightfr.v1 import model_pb2, update_pb2
from lightfr_harness.server.rules import CatalogueRule, PaperRule
from tests.harness.server.rules.full_matrix import FullMatrix

F, GATE = 16, 5
SEEDS = st.integers(0, 2**32 - 1)


def make(counts, kind=model_pb2.UPLOAD_KIND_TERNARY, gate=GATE, seed=7):
    options = {"upload_kind": kind, "gate": gate, "max_rows": 0, "seed": seed}
    if kind == model_pb2.UPLOAD_KIND_EXACT:
        return PaperRule(counts, F, regularization=0.01, **options)
    return CatalogueRule(counts, F, **options)


def another_catalogue(rng, m):
    """Old indices, removed items and counts: numbered anew or not, some items join, some leave."""
    old = rng.permutation(m)[: rng.integers(1, m + 1)] if rng.integers(2) else np.arange(m)
    old = np.append(old, np.full(rng.integers(0, 4), -1))
    return old, rng.random(len(old)) < 0.2, rng.integers(0, 2 * GATE, len(old))


def train(rule, full, rng):
    n_open = int(full.is_open.sum())
    rows, user_sum = rng.integers(-9, 10, (n_open, F)), rng.integers(-40, 41, F)
    rule.add_sums(rows.ravel(), user_sum, np.array([48]))
    rule.finish_round()
    full.round(rows, user_sum, 48)


def count(rule, full, rng):
    counts, seed = rng.integers(0, 2 * GATE, full.m), int(rng.integers(2**32))
    for _ in range(2):
        rule.set_gate(counts, seed)
    full.count(counts, seed)


def change(rule, full, rng):
    changed, seed = another_catalogue(rng, full.m), int(rng.integers(2**32))
    rule.change_items(*changed, seed)
    full.change(*changed, seed)


def restart(rule, full, rng):
    state = {name: value.copy() for name, value in rule.state().items()}
    rule.change_items(np.array([-1]), np.array([False]), np.array([9]), 1)
    rule.restore(state)


def require_same(rule, full):
    is_open = full.is_open
    assert (rule.n_items, rule.open_rows.tolist(), rule.removed.tolist()) == (
        full.m, is_open.tolist(), full.removed.tolist(),
    )  # fmt: skip
    assert rule.device_counts.tolist() == full.counts.tolist()
    assert (rule.signs() == full.published()).all()
    own = np.append(full.was_open, True)
    assert (rule.memory == full.memory[own]).all()
    assert (rule.trails == full.trails[own]).all()
    require_published(rule, full)


def require_published(rule, full):
    items = rule.published_items()
    assert items.tolist() == [*np.flatnonzero(full.is_open).tolist(), -1]
    expected = np.packbits(full.signs[items] > 0, axis=1, bitorder="little")
    assert (rule.codes == expected).all()
    codes = rule.item_codes()
    assert (codes.n_items, codes.n_rows) == (full.m, len(items))
    whole = np.packbits(full.published() > 0, axis=1, bitorder="little")
    assert b"".join(codes.row(item) for item in range(full.m)) == whole.tobytes()


@settings(max_examples=60)
@given(SEEDS, st.integers(1, 12), st.lists(st.sampled_from([train, train, count, change, restart]), max_size=8))
def test_rounds_refreshes_and_other_catalogues_move_the_rows_as_the_full_matrix_moves(seed, m, steps):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 2 * GATE, m)
    rule, full = make(counts), FullMatrix(counts, F, GATE, 7)
    require_same(rule, full)
    for step in steps:
        step(rule, full, rng)
        require_same(rule, full)


@settings(max_examples=30)
@given(SEEDS, st.integers(1, 12), st.lists(st.sampled_from(["round", "change"]), max_size=5))
def test_the_papers_rule_moves_them_too(seed, m, steps):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 2 * GATE, m)
    rule, full = make(counts, model_pb2.UPLOAD_KIND_EXACT), FullMatrix(counts, F, GATE, 7)
    for step in steps:
        if step == "change":
            change(rule, full, rng)
        else:
            items = np.flatnonzero(full.is_open)
            rows = rng.integers(-2000, 2001, (len(items), F)) * 100
            rule.add(
                update_pb2.RowUpdate(
                    code_bits=F,
                    item_indices=items.astype("<u4").tobytes(),
                    exact=update_pb2.ExactRows(gradients=rows.astype("<i4").tobytes()),
                ).SerializeToString()
            )
            rule.finish_round()
            full.agg_grad(rows, rule.balance)
        assert (rule.signs() == full.published()).all()
        require_published(rule, full)


def test_a_rule_holds_rows_for_open_items_only():
    """A tenth of a catalogue is open: a tenth of a full matrix, and a few bytes an item, are held and written."""
    m = 10_000
    rule = make(np.where(np.arange(m) < m // 10, GATE, 0))
    assert (rule.codes.shape, rule.memory.shape, rule.trails.shape) == (
        (m // 10 + 1, F // 8), (m // 10 + 1, F), (m // 10 + 1, F),
    )  # fmt: skip
    assert rule._row_sums.shape == rule.memory.shape
    assert sum(value.nbytes for value in rule.state().values()) < m // 10 * (F // 8 + 8 * F) + 16 * m


def test_without_a_gate_every_item_has_a_row_and_none_is_shared_until_one_leaves():
    rule = make(np.zeros(4, int), gate=0)
    before = rule.codes.copy()
    assert rule.item_codes().open_rows is None
    assert (before.shape, rule.published_items().tolist()) == ((4, F // 8), [0, 1, 2, 3])
    rule.change_items(np.array([0, 1, 2, 3, -1]), np.array([0, 1, 0, 0, 0], bool), np.zeros(5, int), 3)
    assert rule.open_rows.tolist() == [True, False, True, True, True]
    assert rule.published_items().tolist() == [0, 2, 3, 4, -1]
    assert np.array_equal(rule.codes[:3], before[[0, 2, 3]])


def test_an_item_that_comes_back_is_closed_and_starts_anew():
    rule = make(np.full(3, 9))
    rule.memory[:] = 4
    gone = rule.codes[1].copy()
    stay = np.arange(3)
    rule.change_items(stay, np.array([False, True, False]), np.full(3, 9), 3)
    rule.change_items(stay, np.zeros(3, bool), rule.device_counts, 4)
    assert rule.open_rows.tolist() == [True, False, True]
    rule.change_items(stay, np.zeros(3, bool), np.full(3, 9), 5)
    assert rule.open_rows.all()
    assert not np.array_equal(rule.codes[1], gone)
    assert rule.memory[:, 0].tolist() == [4, 0, 4, 4]


def test_counts_of_a_first_refresh_move_with_their_items_and_are_zero_for_those_that_join():
    rule = make(np.zeros(3, int))
    rule.set_gate(np.array([9, 1, 9]), 1)
    rule.change_items(np.array([2, -1, 0, 1]), np.array([False, False, True, False]), np.zeros(4, int), 1)
    assert rule.awaits_refresh
    rule.set_gate(np.full(4, 9), 2)
    assert rule.open_rows.tolist() == [True, False, False, False]


@pytest.mark.parametrize("old", [[0, 0], [3, 0], [-2, 0], [0]])
def test_old_indices_that_no_catalogue_can_have_change_nothing(old):
    rule = make(np.full(3, 9))
    before = {name: value.copy() for name, value in rule.state().items()}
    with pytest.raises(InvalidInputError, match="old ind"):
        rule.change_items(np.array(old), np.zeros(2, bool), np.zeros(2, int), 1)
    assert all(np.array_equal(value, before[name]) for name, value in rule.state().items())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("own_codes", np.zeros((3, F // 8), np.uint8)),
        ("memory", np.zeros((4, F), np.int64)),
        ("removed", np.zeros(2, bool)),
        ("mean_user", np.zeros(F, np.int32)),
        ("has_own_row", np.ones(5, bool)),
    ],
)
def test_a_state_whose_parts_do_not_fit_each_other_is_refused_and_changes_nothing(name, value):
    rule, other = make(np.full(3, 9)), make(np.full(3, 9), seed=8)
    codes = rule.codes.copy()
    with pytest.raises(InvalidInputError, match="of the state has"):
        rule.restore({**other.state(), name: value})
    assert np.array_equal(rule.codes, codes)
    with pytest.raises(InvalidInputError, match="exactly the parts counting_devices, device_counts"):
        rule.restore({"own_codes": codes})


def test_first_codes_are_those_of_open_items_and_of_the_first_closed_one():
    rule = make(np.array([9, 0, 9, 0]))
    codes = np.arange(4 * F // 8, dtype=np.uint8).reshape(4, -1)
    rule.set_codes(codes)
    assert np.array_equal(rule.codes, codes[[0, 2, 1]])
