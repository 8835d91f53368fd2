"""The device's fit against the equations of docs/protocol.md and of the paper, written plainly."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr import UserCode, errors
from lightfr.interactions import LEVELS, Interactions
from lightfr.training import fit_for_round, fit_for_use
from lightfr.training.constants import RECENCY_WEIGHTS
from lightfr.v1 import model_pb2
from lightfr_harness import oracle
from tests.helpers import make_model, random_signs

SEEDS = st.integers(0, 2**32 - 1)


def plain_catalogue_fit(signs, rated, mean, start, max_sweeps, recency):
    """docs/protocol.md, user fit, in Python integers."""
    m, f = signs.shape
    d, n = signs.astype(object), len(rated)
    weights = [16] * n
    if recency:
        weights = [16 + int(640 * 2 ** (-(n - 1 - place) / 5) + 0.5) for place in range(n)]
    total = sum(weights)
    catalogue = 2 * (total + 16 * max(0, 32 - n))
    target, tau = (6 * f + 5) // 10, (4 * f + 5) // 10
    gram, columns = d.T @ d, d.sum(axis=0)
    quadratic = (catalogue + 80) * gram + m * sum(
        (w * np.outer(d[i], d[i]) for w, i in zip(weights, rated, strict=True)), np.zeros((f, f), object)
    )
    linear = m * target * sum((w * d[i] for w, i in zip(weights, rated, strict=True)), np.zeros(f, object))
    linear = linear - catalogue * tau * columns + 80 * ((gram @ np.array(mean, object)) // 256)

    def descend(b):
        b = list(b)
        for _ in range(max_sweeps):
            before = list(b)
            for k in range(f):
                g = linear[k] - sum(quadratic[k][j] * b[j] for j in range(f) if j != k)
                b[k] = b[k] if g == 0 else (1 if g > 0 else -1)
            if b == before:
                break
        loss = sum(quadratic[k][j] * b[k] * b[j] for k in range(f) for j in range(k)) - sum(
            linear * np.array(b, object)
        )
        return b, loss

    old, old_loss = descend(start)
    signed, signed_loss = descend([s if x == 0 else (1 if x > 0 else -1) for x, s in zip(linear, start, strict=True)])
    return signed if signed_loss < old_loss else old


@settings(max_examples=40)
@given(st.sampled_from([8, 16, 24]), st.integers(1, 60), st.integers(0, 50), st.booleans(), SEEDS)
def test_the_catalogue_fit_follows_the_protocol(code_bits, n_items, n_rated, recency, seed):
    rng = np.random.default_rng(seed)
    signs = random_signs(n_items, code_bits, seed)
    rated = rng.permutation(n_items)[: min(n_rated, n_items)].tolist()
    mean = rng.integers(-256, 257, code_bits).astype("<i2")
    start = random_signs(1, code_bits, seed + 1)[0]
    model = make_model(signs, mean_user=mean.tobytes())
    interactions = Interactions([(i, 0) for i in rated])
    code = UserCode(oracle.pack(start))
    got = fit_for_use(model, interactions, code, recency=True) if recency else fit_for_round(model, interactions, code)
    expected = plain_catalogue_fit(signs, rated, mean.tolist(), start.tolist(), 30 if recency else 10, recency)
    assert oracle.unpack(got.reveal()).tolist() == expected


@settings(max_examples=60)
@given(
    st.integers(0, 12),
    SEEDS,
    st.sampled_from([Fraction(0), Fraction(1, 1000), Fraction(1, 5), Fraction(1)]),
    st.sampled_from([1, 4, 9]),
)
def test_the_paper_fit_is_the_printed_user_update(n_rated, seed, lam, steps):
    """In exact fractions, for scales of 1, 4 and 9 steps."""
    f, rng = 8, np.random.default_rng(seed)
    signs, start = random_signs(12, f, seed), random_signs(1, f, seed + 1)[0].tolist()
    rated = rng.permutation(12)[:n_rated].tolist()
    ratings = [Fraction(int(step), steps) for step in rng.integers(0, steps + 1, n_rated)]
    model = make_model(
        signs,
        objective=model_pb2.OBJECTIVE_PAPER,
        upload_kind=model_pb2.UPLOAD_KIND_EXACT,
        balance=round(4 * f * f * lam * LEVELS),
    )
    interactions = Interactions([(i, int(r * LEVELS)) for i, r in zip(rated, ratings, strict=True)])
    got = fit_for_round(model, interactions, UserCode(oracle.pack(np.array(start, np.int8))))
    expected = oracle.user_update(start, [(signs[i].tolist(), r) for i, r in zip(rated, ratings, strict=True)], lam, 10)
    assert oracle.unpack(got.reveal()).tolist() == expected
    cold = fit_for_use(model, interactions, UserCode(oracle.pack(np.array(start, np.int8))))
    pairs = [(signs[i].tolist(), r) for i, r in zip(rated, ratings, strict=True)]
    assert oracle.unpack(cold.reveal()).tolist() == oracle.user_update(start, pairs, Fraction(0), 30)


def plain_objective(signs, rated, weights, code, code_bits):
    """The ranking objective that refinement climbs, in floating point."""
    temperature = (64 + code_bits) / 10
    b = oracle.unpack(code.reveal()).astype(float)
    s = signs @ b
    return sum(w * s[i] for w, i in zip(weights, rated, strict=True)) / temperature - sum(weights) * np.log(
        np.exp(s / temperature).sum()
    )


@settings(max_examples=25)
@given(st.sampled_from([16, 64]), st.integers(1, 200), st.integers(1, 20), st.booleans(), SEEDS)
def test_refinement_ends_where_no_flip_of_one_bit_raises_the_ranking_objective(
    code_bits, n_items, n_rated, recency, seed
):
    rng = np.random.default_rng(seed)
    signs = random_signs(n_items, code_bits, seed)
    rated = rng.permutation(n_items)[: min(n_rated, n_items)].tolist()
    weights = [*RECENCY_WEIGHTS[: len(rated)]][::-1] if recency else [1] * len(rated)
    model, interactions = make_model(signs), Interactions([(i, 0) for i in rated])
    start = UserCode(oracle.pack(random_signs(1, code_bits, seed + 1)[0]))
    plain = fit_for_use(model, interactions, start, recency=recency)
    refined = fit_for_use(model, interactions, start, recency=recency, refine=True)
    reached = plain_objective(signs, rated, weights, refined, code_bits)
    tolerance = 1e-3 * sum(weights)
    assert reached >= plain_objective(signs, rated, weights, plain, code_bits) - tolerance
    for k in range(code_bits):
        flipped = bytearray(refined.reveal())
        flipped[k >> 3] ^= 1 << (k & 7)
        assert plain_objective(signs, rated, weights, UserCode(bytes(flipped)), code_bits) <= reached + tolerance


def test_recency_weights_fall_from_forty_one_to_one():
    assert RECENCY_WEIGHTS[0] == 16 * 41
    assert RECENCY_WEIGHTS[5] == 16 * 21
    assert RECENCY_WEIGHTS[-1] == 17
    assert int(640 * 2 ** (-len(RECENCY_WEIGHTS) / 5) + 0.5) == 0


def test_a_user_without_ratings_gets_a_code_from_the_mean_user_alone():
    signs = random_signs(40, 16, 3)
    mean = np.full(16, 256, "<i2")
    code = fit_for_use(make_model(signs, mean_user=mean.tobytes()), Interactions(), UserCode(bytes(2)), recency=False)
    assert code == fit_for_use(
        make_model(signs, mean_user=mean.tobytes()), Interactions(), UserCode(bytes(2)), recency=True
    )


def test_a_cold_start_user_is_fitted_on_the_device_alone_and_ranks_the_rated_kind_first():
    """Two kinds of items; three ratings of one kind are enough to prefer its other members."""
    kinds = random_signs(2, 64, 9)
    signs = np.repeat(kinds, 20, axis=0)
    code = fit_for_use(
        make_model(signs), Interactions([(i, LEVELS) for i in (1, 5, 7)]), UserCode.random(64), recency=False
    )
    own = oracle.distances(signs[:20], oracle.unpack(code.reveal())).mean()
    other = oracle.distances(signs[20:], oracle.unpack(code.reveal())).mean()
    assert own < other


def test_a_code_of_another_length_is_refused():
    with pytest.raises(errors.CodeLengthError, match="64 bits, expected 16"):
        fit_for_round(make_model(random_signs(5, 16, 1)), Interactions(), UserCode.random(64))


def test_a_rated_item_beyond_the_matrix_is_refused():
    with pytest.raises(errors.ItemIndexError):
        fit_for_round(make_model(random_signs(5, 16, 1)), Interactions([(5, 0)]), UserCode.random(16))
