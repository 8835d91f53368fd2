"""The device's fit against the equations of docs/protocol.md and of the paper, written plainly."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr import ItemCodes, OpenRows, UserCode, errors
from lightfr.interactions import LEVELS, MIDDLE, Interactions
from lightfr.training import PublishedModel, fit_for_round, fit_for_use, may_refine
from lightfr.training.constants import RECENCY_WEIGHTS, Recency
from lightfr.v1 import model_pb2
from lightfr_harness import oracle
from tests.helpers import make_model, random_signs

SEEDS = st.integers(0, 2**32 - 1)
# What the newest opinion weighs more than the oldest.
SURPLUS = {Recency.OFF: 0, Recency.WEAK: 10, Recency.STRONG: 40}
# Of all sorts; who has only seen items; who likes nothing; who dislikes nothing; just beside the middle.
KINDS_OF_USER = ([0, 630, 1260, 1890, 2520], [1260], [0, 1259], [1260, 2520], [1259, 1260, 1261])


def plain_weights(levels, surplus):
    """What each opinion weighs in the fit for use, oldest first, in sixteenths."""
    ages = range(len(levels) - 1, -1, -1)
    whole = [16 + int(16 * surplus * 2 ** (-age / 5) + 0.5) for age in ages]
    liked = MIDDLE + 1 if max(levels, default=0) > MIDDLE else MIDDLE
    return [w if level >= liked else w // 2 for w, level in zip(whole, levels, strict=True)]


def plain_catalogue_fit(signs, rated, weights, far, mean, start, max_sweeps):
    """docs/protocol.md, user fit, in Python integers. `far` says of each item whether it is disliked."""
    m, f = signs.shape
    d = signs.astype(object)
    near = [w for w, is_far in zip(weights, far, strict=True) if not is_far]
    catalogue = 2 * (sum(near) + 16 * max(0, 32 - len(near)))
    target, tau = (6 * f + 5) // 10, (4 * f + 5) // 10
    gram, columns = d.T @ d, d.sum(axis=0)
    quadratic = (catalogue + 80) * gram + m * sum(
        (w * np.outer(d[i], d[i]) for w, i in zip(weights, rated, strict=True)), np.zeros((f, f), object)
    )
    pulls = (-w * d[i] if is_far else w * d[i] for w, i, is_far in zip(weights, rated, far, strict=True))
    linear = m * target * sum(pulls, np.zeros(f, object))
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
@given(st.sampled_from([8, 16, 24]), st.integers(1, 70), st.integers(0, 60), st.sampled_from(KINDS_OF_USER), SEEDS)
def test_the_catalogue_fit_follows_the_protocol(code_bits, n_items, n_rated, levels, seed):
    rng = np.random.default_rng(seed)
    signs = random_signs(n_items, code_bits, seed)
    rated = rng.permutation(n_items)[: min(n_rated, n_items)].tolist()
    given_levels = rng.choice(levels, len(rated)).tolist()
    mean = rng.integers(-256, 257, code_bits).astype("<i2")
    start = random_signs(1, code_bits, seed + 1)[0]
    model = make_model(signs, mean_user=mean.tobytes())
    interactions = Interactions(zip(rated, given_levels, strict=True))
    code, how = UserCode(oracle.pack(start)), (mean.tolist(), start.tolist())
    for recency, surplus in SURPLUS.items():
        got = fit_for_use(model, interactions, code, recency=recency)
        weights, far = plain_weights(given_levels, surplus), [level < MIDDLE for level in given_levels]
        assert oracle.unpack(got.reveal()).tolist() == plain_catalogue_fit(signs, rated, weights, far, *how, 30)
    # A round is handed what teaches: there every item weighs the same and pulls.
    got = fit_for_round(model, interactions, code)
    expected = plain_catalogue_fit(signs, rated, [16] * len(rated), [False] * len(rated), *how, 10)
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
@given(st.sampled_from([16, 64]), st.integers(1, 200), st.integers(1, 20), st.sampled_from(Recency), SEEDS)
def test_refinement_ends_where_no_flip_of_one_bit_raises_the_ranking_objective(
    code_bits, n_items, n_rated, recency, seed
):
    rng = np.random.default_rng(seed)
    signs = random_signs(n_items, code_bits, seed)
    opinions = rng.permutation(n_items)[: min(n_rated, n_items)].tolist()
    levels = rng.choice([0, 1260, 2520], len(opinions)).tolist()
    # Dislikes do not take part in it; those that are liked and seen weigh as in the fit.
    weighed = zip(opinions, plain_weights(levels, SURPLUS[recency]), levels, strict=True)
    near = [(i, weight) for i, weight, level in weighed if level >= MIDDLE]
    rated, weights = [i for i, _ in near], [weight for _, weight in near]
    model, interactions = make_model(signs), Interactions(zip(opinions, levels, strict=True))
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


def test_recency_weights_fall_from_forty_one_or_eleven_to_one():
    strong, weak = RECENCY_WEIGHTS[Recency.STRONG], RECENCY_WEIGHTS[Recency.WEAK]
    assert (strong[0], strong[5], strong[-1]) == (16 * 41, 16 * 21, 17)
    assert (weak[0], weak[5], weak[-1]) == (16 * 11, 16 * 6, 16)
    assert int(640 * 2 ** (-len(strong) / 5) + 0.5) == 0
    assert set(RECENCY_WEIGHTS[Recency.OFF]) == {16}


def test_a_user_without_ratings_gets_a_code_from_the_mean_user_alone():
    signs = random_signs(40, 16, 3)
    mean = np.full(16, 256, "<i2")
    model = make_model(signs, mean_user=mean.tobytes())
    codes = {fit_for_use(model, Interactions(), UserCode(bytes(2)), recency=recency).reveal() for recency in Recency}
    assert len(codes) == 1


def test_a_cold_start_user_is_fitted_on_the_device_alone_and_ranks_the_rated_kind_first():
    """Two kinds of items; three ratings of one kind are enough to prefer its other members."""
    kinds = random_signs(2, 64, 9)
    signs = np.repeat(kinds, 20, axis=0)
    code = fit_for_use(make_model(signs), Interactions([(i, LEVELS) for i in (1, 5, 7)]), UserCode.random(64))
    own = oracle.distances(signs[:20], oracle.unpack(code.reveal())).mean()
    other = oracle.distances(signs[20:], oracle.unpack(code.reveal())).mean()
    assert own < other


def test_a_disliked_kind_is_ranked_behind_one_that_nothing_is_known_of():
    kinds = random_signs(3, 64, 9)
    signs = np.repeat(kinds, 20, axis=0)
    opinions = [(1, LEVELS), (2, LEVELS), (41, 0), (45, 0), (47, 0)]
    code = oracle.unpack(fit_for_use(make_model(signs), Interactions(opinions), UserCode.random(64)).reveal())
    liked, unknown, disliked = (oracle.distances(signs[[at]], code)[0] for at in (0, 20, 40))
    assert liked < unknown < disliked


@pytest.mark.parametrize(
    ("bits", "levels", "may"),
    [
        (128, [LEVELS] * 20, True),
        (128, [MIDDLE] * 20, True),
        (128, [LEVELS] * 19 + [MIDDLE - 1] * 5, False),
        (120, [LEVELS] * 40, False),
    ],
)
def test_a_code_is_refined_from_20_liked_items_and_128_bits_on(bits, levels, may):
    opinions = Interactions(enumerate(levels))
    assert may_refine(make_model(random_signs(50, bits, 1)), opinions) is may
    paper = {"objective": model_pb2.OBJECTIVE_PAPER, "upload_kind": model_pb2.UPLOAD_KIND_EXACT}
    assert not may_refine(make_model(random_signs(50, bits, 1), **paper), opinions)


def test_the_fit_of_the_paper_knows_neither_recency_nor_refinement():
    paper = {"objective": model_pb2.OBJECTIVE_PAPER, "upload_kind": model_pb2.UPLOAD_KIND_EXACT}
    model, opinions = make_model(random_signs(60, 128, 1), **paper), Interactions((i, 40 * i) for i in range(60))
    plain = fit_for_use(model, opinions, UserCode(bytes(16)))
    assert plain == fit_for_use(model, opinions, UserCode(bytes(16)), recency=Recency.STRONG, refine=True)


def test_a_code_of_another_length_is_refused():
    with pytest.raises(errors.CodeLengthError, match="64 bits, expected 16"):
        fit_for_round(make_model(random_signs(5, 16, 1)), Interactions(), UserCode.random(64))


def test_a_rated_item_beyond_the_matrix_is_refused():
    with pytest.raises(errors.ItemIndexError):
        fit_for_round(make_model(random_signs(5, 16, 1)), Interactions([(5, 0)]), UserCode.random(16))


def test_a_code_is_not_refined_among_more_items_than_the_kernel_counts():
    """README promises catalogues of ten million items, and a server may publish larger ones."""
    opinions = Interactions((item, LEVELS) for item in range(20))
    for n_items, may in ((2**24, True), (2**24 + 1, False)):
        open_rows = OpenRows(bytes([255] * 8 + [0] * ((n_items + 7) // 8 - 8)), n_items)
        message = model_pb2.RoundModel(code_bits=128, item_count=n_items, objective=1, upload_kind=1)
        model = PublishedModel(ItemCodes(bytes(65 * 16), 128, open_rows), message)
        assert may_refine(model, opinions) is may


def model_of_many(n_items, code_bits, n_open):
    """A model in which the first items are open, and all others share one row."""
    bitmap = np.packbits(np.arange(n_items) < n_open, bitorder="little").tobytes()
    codes = np.random.default_rng(1).bytes((n_open + 1) * code_bits // 8)
    message = model_pb2.RoundModel(code_bits=code_bits, item_count=n_items, objective=1, upload_kind=1)
    return PublishedModel(ItemCodes(codes, code_bits, OpenRows(bitmap, n_items)), message)


def test_a_user_with_more_opinions_than_64_bits_have_room_for_is_fitted_to_the_newest():
    """Else who rates for years would one day get no recommendations any more, and leave every round."""
    model, rng = model_of_many(2**21, 1024, 3000), np.random.default_rng(2)
    opinions = [(item, int(level)) for item, level in enumerate(rng.integers(0, LEVELS + 1, 3000))]
    room, old = 2**51 // (1024**2 * 2**21), UserCode(bytes(128))
    newest, older = (Interactions(opinions[-count:]) for count in (room, room - 1))
    for fit in (fit_for_round, lambda *given: fit_for_use(*given, recency=Recency.STRONG)):
        fitted = fit(model, Interactions(opinions), old)
        assert fitted == fit(model, newest, old)
        assert fitted != fit(model, older, old)
