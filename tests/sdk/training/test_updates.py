"""What a device uploads: the right rows, the right numbers, and nothing else."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr import UserCode, _wire
from lightfr.interactions import LEVELS, Interactions
from lightfr.training import make_update
from lightfr.v1 import model_pb2, update_pb2
from lightfr_harness import oracle
from lightfr_harness.simulation.fleet import stream
from tests.helpers import make_model, random_signs

SIGNS = random_signs(40, 16, 0)
CODE = UserCode(oracle.pack(random_signs(1, 16, 1)[0]))
PAPER = {"objective": model_pb2.OBJECTIVE_PAPER}
EXACT, CODES = model_pb2.UPLOAD_KIND_EXACT, model_pb2.UPLOAD_KIND_CODES


def sent(model, interactions, random_bytes):
    """The message as a server parses it."""
    return update_pb2.RowUpdate.FromString(_wire.encode_update(make_update(model, interactions, CODE, random_bytes)))


def test_exact_gradients_of_the_catalogue_objective_follow_the_protocol():
    rated = Interactions([(9, 0), (2, LEVELS), (30, 7)])
    message = sent(make_model(SIGNS, upload_kind=EXACT), rated, stream("x"))
    b, target = oracle.unpack(CODE.reveal()).astype(int), (6 * 16 + 5) // 10
    expected = [(target - int(SIGNS[i].astype(int) @ b)) * b + SIGNS[i] for i in (2, 9, 30)]
    assert np.frombuffer(message.item_indices, "<u4").tolist() == [2, 9, 30]
    assert np.frombuffer(message.exact.gradients, "<i4").reshape(3, 16).tolist() == np.array(expected).tolist()
    assert message.user_code == CODE.reveal()


@settings(max_examples=30)
@given(st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_exact_gradients_of_the_paper_are_the_printed_ones_times_2_f_levels(n_rated, seed):
    rng = np.random.default_rng(seed)
    items = rng.permutation(40)[:n_rated].tolist()
    levels = (rng.integers(0, 5, n_rated) * (LEVELS // 4)).tolist()
    message = sent(
        make_model(SIGNS, upload_kind=EXACT, **PAPER), Interactions(zip(items, levels, strict=True)), stream("x")
    )
    got = np.frombuffer(message.exact.gradients, "<i4").reshape(n_rated, 16)
    b = oracle.unpack(CODE.reveal()).tolist()
    for row, (item, level) in zip(got, sorted(zip(items, levels, strict=True)), strict=True):
        printed = oracle.item_gradient(b, SIGNS[item].tolist(), Fraction(level, LEVELS))
        assert row.tolist() == [2 * 16 * LEVELS * value for value in printed]
    assert message.user_code == b""


@pytest.mark.parametrize("lam", [Fraction(0), Fraction(1, 5)])
def test_rows_of_agg_para_are_what_the_device_alone_would_set(lam):
    rated = [(4, 0), (8, LEVELS), (20, LEVELS // 2)]
    model = make_model(SIGNS, upload_kind=CODES, balance=round(4 * 16 * 16 * lam * LEVELS), **PAPER)
    message = sent(model, Interactions(rated), stream("x"))
    b = oracle.unpack(CODE.reveal()).tolist()
    for place, (item, level) in enumerate(rated):
        d = SIGNS[item].tolist()
        gradient = oracle.item_gradient(b, d, Fraction(level, LEVELS))
        expected = oracle.aggregate_gradients(d, [gradient], lam)
        assert oracle.unpack(message.codes.codes[2 * place : 2 * place + 2]).tolist() == expected


def test_a_zero_vote_of_agg_para_keeps_the_old_bit():
    """A balance is chosen for which one element's vote is exactly zero."""
    b, level = oracle.unpack(CODE.reveal()).astype(int), LEVELS // 4
    item, k, balance = next(
        (i, k, g // others)
        for i, d in enumerate(SIGNS.astype(int))
        for k in range(16)
        for g in [(2 * 16 * level - 16 * LEVELS - LEVELS * int(d @ b)) * b[k] + LEVELS * d[k]]
        for others in [int(d.sum()) - d[k]]
        if others and g % others == 0 and g // others > 0 and d[k] == -1
    )
    model = make_model(SIGNS, upload_kind=CODES, balance=int(balance), **PAPER)
    message = sent(model, Interactions([(item, level)]), stream("x"))
    gradient = oracle.item_gradient(b.tolist(), SIGNS[item].tolist(), Fraction(level, LEVELS))
    lam = Fraction(int(balance), 4 * 16 * 16 * LEVELS)
    expected = oracle.aggregate_gradients(SIGNS[item].tolist(), [gradient], lam)
    assert expected[k] == -1
    assert oracle.unpack(message.codes.codes).tolist() == expected


def test_ternary_rows_are_signs_of_the_exact_ones_and_unbiased():
    rated = Interactions([(i, 0) for i in range(40)])
    exact = np.frombuffer(sent(make_model(SIGNS, upload_kind=EXACT), rated, stream("x")).exact.gradients, "<i4")
    total = np.zeros(len(exact))
    for draw in range(400):
        message = sent(make_model(SIGNS), rated, stream(draw))
        nonzero, positive = (
            np.unpackbits(np.frombuffer(plane, np.uint8), bitorder="little").astype(int)
            for plane in (message.ternary.nonzero, message.ternary.positive)
        )
        values = 2 * positive - nonzero
        assert (values * np.sign(exact) >= 0).all()
        total += values
    expected = np.clip(exact / 16, -1, 1)
    assert np.abs(total / 400 - expected).max() < 5 * np.sqrt(0.25 / 400)


def test_rows_behind_the_gate_never_leave_the_device():
    gate = np.zeros(40, bool)
    gate[[3, 11]] = True
    model = make_model(SIGNS, is_open=gate)
    message = sent(model, Interactions([(i, 0) for i in range(20)]), stream("x"))
    assert np.frombuffer(message.item_indices, "<u4").tolist() == [3, 11]


def test_at_most_max_rows_are_sent_each_open_row_as_often_as_the_others():
    gate = np.ones(40, bool)
    gate[:10] = False
    model = make_model(SIGNS, max_rows=5, is_open=gate)
    counts = np.zeros(40, int)
    for draw in range(1200):
        chosen = np.frombuffer(sent(model, Interactions([(i, 0) for i in range(40)]), stream(draw)).item_indices, "<u4")
        assert len(chosen) == len(set(chosen.tolist())) == 5
        counts[chosen] += 1
    assert not counts[:10].any()
    assert np.abs(counts[10:] - 200).max() < 5 * np.sqrt(200 * 25 / 30)


def test_no_ratings_make_an_empty_upload():
    message = sent(make_model(SIGNS), Interactions(), stream("x"))
    assert message.item_indices == b""
    assert message.WhichOneof("rows") == "ternary"


def test_randomness_comes_from_the_system_by_default():
    model, rated = make_model(SIGNS), Interactions([(i, 0) for i in range(40)])
    first, second = (make_update(model, rated, CODE) for _ in range(2))
    assert first.nonzero != second.nonzero


def test_an_update_shows_nothing_in_its_repr():
    update = make_update(make_model(SIGNS), Interactions([(3, 0)]), CODE)
    assert repr(update) == "<RowUpdate of 16 bits>"
