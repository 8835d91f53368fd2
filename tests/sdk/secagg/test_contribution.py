"""What a device adds to a secure sum, against numpy; and what it refuses to add."""

from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr import UserCode
from lightfr.errors import CodeLengthError, InvalidInputError, ItemIndexError, OutOfRangeError
from lightfr.interactions import Interactions
from lightfr.secagg import blocks_of, gate_vector, round_vector
from lightfr.training import make_update
from lightfr.v1 import model_pb2
from lightfr_harness import oracle
from lightfr_harness.simulation.fleet import stream
from tests.helpers import make_model, random_signs

DEVICES = 300
NOISY = {
    "privacy_mode": model_pb2.PRIVACY_MODE_SECAGG_DP,
    "noise": model_pb2.Noise(rows_thousandths=2000, sums_thousandths=9000),
}


def no_noise(n):
    """Random bytes in the middle of the range, for which the noise is zero."""
    return (bytes(15) + b"\x80") * (n // 16)


def model_of(n_items, code_bits, is_open=None, **fields):
    bitmap = b"" if is_open is None else np.packbits(is_open, bitorder="little").tobytes()
    return make_model(random_signs(n_items, code_bits, n_items), open_rows=bitmap, **{"max_rows": 64, **fields})


def update_of(model, items, seed=0):
    code = UserCode(stream("code", seed)(model.code_bits // 8))
    return make_update(model, Interactions((item, 100) for item in items), code, stream("round", seed))


def expected(model, update, is_open, weight):
    """The blocks by the definitions of docs/secagg.md, dense and slow."""
    f, shape = model.code_bits, (len(update.item_indices), model.code_bits)
    bits = [np.unpackbits(np.frombuffer(p, np.uint8), bitorder="little") for p in (update.nonzero, update.positive)]
    dense = np.zeros((model.n_items, f), int)
    dense[np.array(update.item_indices, int)] = (2 * bits[1].astype(int) - bits[0]).reshape(shape)
    b = oracle.unpack(update.user_code).astype(int)
    products = [weight * b[j] * b[k] for j in range(f) for k in range(j + 1, f)]
    rows = dense if is_open is None else dense[is_open]
    return {"rows": rows.reshape(-1).tolist(), "products": products, "user_sum": (weight * b).tolist()}


@settings(max_examples=60)
@given(
    st.integers(1, 150),
    st.sampled_from([8, 16, 40]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
    st.sampled_from([{}, NOISY]),
)
def test_a_contribution_is_the_update_spread_over_all_open_rows(n_items, code_bits, gated, seed, fields):
    rng = np.random.default_rng(seed)
    is_open = rng.random(n_items) < 0.5 if gated else None
    model = model_of(n_items, code_bits, is_open, **fields)
    update = update_of(model, rng.permutation(n_items)[: rng.integers(n_items + 1)].tolist(), seed)
    weight = 1 if fields else max(len(update.item_indices), 32)
    vector = round_vector(model, update, DEVICES, no_noise)
    found = {block.name: vector[block.name].tolist() for block in vector.blocks}
    assert vector.blocks == blocks_of(model, DEVICES)
    assert found.pop("weight", None) == (None if fields else [weight])
    assert found == expected(model, update, is_open, weight)


def test_bits_behind_the_last_item_of_the_gate_do_not_count():
    model = model_of(11, 8)
    model.set_open_rows(b"\xff\xff")
    assert blocks_of(model, DEVICES)[0].count == 11 * 8


def test_noise_is_drawn_for_every_number_with_the_deviation_of_its_block():
    model = model_of(500, 64, **NOISY)
    update = update_of(model, range(0, 500, 9))
    plain, noisy = (round_vector(model, update, DEVICES, source) for source in (no_noise, stream("noise")))
    deviation = {b.name: np.std(np.array(noisy[b.name]) - np.array(plain[b.name])) for b in plain.blocks}
    assert deviation["rows"] == pytest.approx(2, rel=0.03)
    assert deviation["products"] == pytest.approx(9, rel=0.1)
    assert deviation["user_sum"] == pytest.approx(9, rel=0.4)


@settings(max_examples=30)
@given(st.integers(1, 100), st.sets(st.integers(0, 99)))
def test_a_gate_refresh_says_1_for_each_rated_item(n_items, rated):
    interactions = Interactions((item, 7) for item in rated)
    if rated and max(rated) >= n_items:
        with pytest.raises(ItemIndexError):
            gate_vector(n_items, interactions, DEVICES)
    else:
        vector = gate_vector(n_items, interactions, DEVICES)
        assert vector["counts"].tolist() == [int(i in rated) for i in range(n_items)]


def test_an_update_that_does_not_fit_the_model_is_refused():
    is_open = np.arange(100) != 5
    model = model_of(100, 16, is_open)
    update = update_of(model, [3, 7])
    cases = [
        (update._replace(item_indices=array("I", [3, 5])), InvalidInputError, "closed by the gate"),
        (update._replace(item_indices=array("I", [3, 100])), ItemIndexError, "100"),
        (update._replace(item_indices=array("I", [7, 3])), InvalidInputError, "ascending"),
        (update._replace(item_indices=array("I", [3, 3])), InvalidInputError, "ascending"),
        (update._replace(upload_kind=model_pb2.UPLOAD_KIND_EXACT), InvalidInputError, "ternary"),
        (update._replace(code_bits=8), CodeLengthError, "8 bits"),
        (update._replace(user_code=b""), CodeLengthError, "0 bits"),
        (update._replace(positive=b"\xff" * 4, nonzero=bytes(4)), InvalidInputError, "domain"),
    ]
    for bad, error, reason in cases:
        with pytest.raises(error, match=reason) as raised:
            round_vector(model, bad, DEVICES)
        assert "5" not in str(raised.value)


@pytest.mark.parametrize(("max_rows", "most"), [(0, 64), (65, 64), (20, 20)])
def test_more_rows_than_the_bits_of_a_sum_have_room_for_are_refused(max_rows, most):
    update = update_of(model_of(100, 8, max_rows=most + 1), range(100))
    with pytest.raises(OutOfRangeError) as raised:
        round_vector(model_of(100, 8, max_rows=max_rows), update, DEVICES)
    assert (raised.value.actual, raised.value.maximum) == (most + 1, most)
