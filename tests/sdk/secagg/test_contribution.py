"""What a device adds to a secure sum, against numpy; and what it refuses to add."""

import math
from array import array
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lightfr import UserCode
from lightfr.errors import CodeLengthError, InvalidInputError, ItemIndexError, OutOfRangeError, PrivacyError
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
    "upload_kind": model_pb2.UPLOAD_KIND_EXACT,
    "noise": model_pb2.Noise(rows_thousandths=20_000, sums_thousandths=9000, counts_thousandths=3000),
}


def no_noise(n):
    """Random bytes in the middle of the range, for which the noise is zero."""
    return b"\0\x80" * (n // 2)


def model_of(n_items, code_bits, is_open=None, **fields):
    return make_model(random_signs(n_items, code_bits, n_items), is_open=is_open, **{"max_rows": 64, **fields})


def update_of(model, items, seed=0):
    code = UserCode(stream("code", seed)(model.code_bits // 8))
    return make_update(model, Interactions((item, 100) for item in items), code, stream("round", seed))


def numbers_of(update):
    if update.upload_kind == model_pb2.UPLOAD_KIND_EXACT:
        gradients = np.frombuffer(update.gradients, "<i4").astype(int)
        most = 8 * update.code_bits
        length = max(most, math.isqrt(max(0, int((gradients**2).sum()) - 1)) + 1)
        return np.sign(gradients) * (abs(gradients) * most // length)
    bits = [np.unpackbits(np.frombuffer(p, np.uint8), bitorder="little") for p in (update.nonzero, update.positive)]
    return 2 * bits[1].astype(int) - bits[0]


def expected(model, update, is_open, weight):
    """The blocks by the definitions of docs/secagg.md, dense and slow."""
    f, shape = model.code_bits, (len(update.item_indices), model.code_bits)
    dense = np.zeros((model.n_items, f), int)
    dense[np.array(update.item_indices, int)] = numbers_of(update).reshape(shape)
    b = oracle.unpack(update.user_code).astype(int)
    rows = dense if is_open is None else dense[is_open]
    return {"rows": rows.reshape(-1).tolist(), "user_sum": (weight * b).tolist()}


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


@pytest.mark.parametrize(
    ("fields", "code_bits", "of_rows", "of_sums"),
    [
        (NOISY, 64, 20, 9),
        ({}, 64, np.sqrt(12 / DEVICES), 4 * np.sqrt(DEVICES)),
        ({}, 256, np.sqrt(32 / DEVICES), 4 * np.sqrt(DEVICES)),
    ],
)
def test_noise_is_drawn_for_every_number_with_the_deviation_of_its_block(fields, code_bits, of_rows, of_sums):
    model = model_of(500, code_bits, **fields)
    update = update_of(model, range(0, 500, 9))
    plain, noisy = (round_vector(model, update, DEVICES, source) for source in (no_noise, stream("noise")))
    deviation = {b.name: np.std(np.array(noisy[b.name]) - np.array(plain[b.name])) for b in plain.blocks}
    assert deviation["rows"] == pytest.approx(of_rows, rel=0.03)
    assert deviation["user_sum"] == pytest.approx(of_sums, rel=0.25)


def test_the_weight_carries_noise_in_mode_secagg():
    model = model_of(5, 8)
    update = update_of(model, [1, 2])
    weights = [round_vector(model, update, DEVICES, stream("weight", i))["weight"][0] for i in range(300)]
    assert np.mean(weights) == pytest.approx(32, abs=4)
    assert np.std(weights) == pytest.approx(np.sqrt(DEVICES), rel=0.15)


def test_no_field_of_a_server_turns_off_the_noise_of_mode_secagg():
    """Two vectors of one update differ in rows that it has nothing for, whatever else the model says."""
    for fields in ({}, {"max_rows": 1}, {"mean_user": np.full(64, 256, "<i2").tobytes()}):
        model = model_of(500, 64, np.ones(500, bool), privacy_mode=model_pb2.PRIVACY_MODE_SECAGG, **fields)
        vector = round_vector(model, update_of(model, []), DEVICES)
        assert set(vector["rows"]) == {-1, 0, 1}
        assert len({abs(number) for number in vector["user_sum"]}) > 10


@settings(max_examples=30)
@given(st.integers(1, 100), st.sets(st.integers(0, 99)))
@example(5, {5})
def test_a_gate_refresh_says_1_for_each_rated_item(n_items, rated):
    interactions = Interactions((item, 7) for item in rated)
    if rated and max(rated) >= n_items:
        with pytest.raises(ItemIndexError):
            gate_vector(model_of(n_items, 8), interactions, DEVICES)
    else:
        vector = gate_vector(model_of(n_items, 8), interactions, DEVICES, no_noise)
        assert vector["counts"].tolist() == [int(i in rated) for i in range(n_items)]


def test_the_counts_of_a_gate_refresh_carry_noise_also_where_nothing_was_rated():
    counts = np.array(gate_vector(model_of(20_000, 8), Interactions(()), DEVICES, stream("gate noise"))["counts"])
    assert set(counts.tolist()) == {-1, 0, 1}
    assert counts.var() == pytest.approx(8 / DEVICES, rel=0.1)


def test_the_difference_of_two_gate_refreshes_does_not_tell_who_is_in_one_of_them():
    """Of 2,000 items the victim rated 40; without noise the difference is exactly these."""
    model, victim = model_of(2000, 8), Interactions((item, 7) for item in range(0, 2000, 50))

    def refresh(devices, *ratings):
        vectors = [gate_vector(model, one, devices, stream("refresh", devices, i)) for i, one in enumerate(ratings)]
        return sum(np.array(vector["counts"], int) for vector in vectors)

    others = [Interactions(())] * 63
    difference = refresh(64, victim, *others) - refresh(63, *others)
    likeliest = np.argsort(-difference, kind="stable")[:40]
    assert np.count_nonzero(likeliest % 50 == 0) < 6
    assert difference.std() == pytest.approx(np.sqrt(16), rel=0.1)


def test_with_an_epsilon_a_device_counts_64_of_its_items_and_adds_the_noise_asked_for():
    model, rated = model_of(2000, 8, **NOISY), Interactions((item, 7) for item in range(0, 2000, 10))
    plain = np.array(gate_vector(model, rated, DEVICES, quiet_after(256))["counts"])
    assert (plain.sum(), set(np.flatnonzero(plain) % 10)) == (64, {0})
    noisy = np.array(gate_vector(model, Interactions(()), DEVICES, stream("noise"))["counts"])
    assert noisy.std() == pytest.approx(3, rel=0.1)


def quiet_after(n_bytes):
    """Random bytes at first, and then those for which the noise is zero."""
    return lambda n: stream("chosen")(n) if n == n_bytes else no_noise(n)


@pytest.mark.parametrize(
    ("code_bits", "rows", "sums", "counts"),
    [(64, 40_000, 9000, 3000), (64, 41_000, 4700, 3000), (64, 41_000, 9000, 600), (256, 323_000, 9000, 3000)],
)
def test_a_device_refuses_an_epsilon_whose_noise_is_less_than_that_of_mode_secagg(code_bits, rows, sums, counts):
    """With 20 devices: less than 64 sqrt(8 / 20), or 256 sqrt(32 / 20), sqrt(455 / 20) or sqrt(8 / 20) a device."""
    noise = model_pb2.Noise(rows_thousandths=rows, sums_thousandths=sums, counts_thousandths=counts)
    model = model_of(20, code_bits, **{**NOISY, "noise": noise})
    for devices, is_enough in ((20, False), (500, True)):
        refusal = nullcontext() if is_enough else pytest.raises(PrivacyError, match="less than mode secagg")
        with refusal:
            round_vector(model, update_of(model, [1]), devices)
        with refusal if is_enough else pytest.raises(PrivacyError):
            gate_vector(model, Interactions(()), devices)


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
        (update._replace(upload_kind=model_pb2.UPLOAD_KIND_CODES), InvalidInputError, "ternary"),
        (update._replace(code_bits=8), CodeLengthError, "8 bits, expected 16"),
        (update._replace(user_code=b""), CodeLengthError, "0 bits, expected 16"),
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
    assert (raised.value.actual, raised.value.minimum, raised.value.maximum) == (most + 1, 0, most)


def test_an_item_beyond_the_catalogue_is_refused_where_there_is_no_gate():
    model = model_of(100, 16)
    with pytest.raises(ItemIndexError):
        round_vector(model, update_of(model, [3, 7])._replace(item_indices=array("I", [3, 100])), DEVICES)


@pytest.mark.parametrize(
    ("given", "clipped"), [((64, 0), (64, 0)), ((300, 0), (64, 0)), ((300, -1), (63, 0)), ((-300, 1), (-63, 0))]
)
def test_gradients_are_shortened_by_their_length_rounded_up(given, clipped):
    """The length of (300, 0) is 300, and that of (300, 1) a little more, which counts as 301; most is 8 * 8."""
    model = model_of(9, 8, **NOISY)
    update = update_of(model, [4])._replace(gradients=array("i", [*given, *[0] * 6]).tobytes())
    assert tuple(round_vector(model, update, DEVICES, no_noise)["rows"][32:34]) == clipped
