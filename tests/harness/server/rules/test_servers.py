"""The aggregation rules against plain versions of the protocol and of the paper."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr import _kernel, errors
from lightfr.v1 import model_pb2, update_pb2
from lightfr_harness import oracle
from lightfr_harness.server.rules import CatalogueRule, PaperRule, balance_of
from tests.helpers import random_signs

SEEDS = st.integers(0, 2**32 - 1)
TERNARY, EXACT, CODES = (
    model_pb2.UPLOAD_KIND_TERNARY,
    model_pb2.UPLOAD_KIND_EXACT,
    model_pb2.UPLOAD_KIND_CODES,
)
F, M = 16, 30


def options(kind, **more):
    return {"upload_kind": kind, "gate": 0, "max_rows": 0, "seed": 7, **more}


def random_uploads(kind, n_devices, rng):
    """(indices, values, user signs, message) of made-up devices."""
    uploads = []
    for _ in range(n_devices):
        indices = np.sort(rng.permutation(M)[: rng.integers(0, M)]).astype("<u4")
        shape, user = (len(indices), F), rng.choice(np.array([-1, 1]), F)
        message = update_pb2.RowUpdate(code_bits=F, item_indices=indices.tobytes(), user_code=oracle.pack(user))
        if kind == TERNARY:
            values = rng.integers(-1, 2, shape)
            message.ternary.nonzero = np.packbits(values != 0, bitorder="little").tobytes()
            message.ternary.positive = np.packbits(values > 0, bitorder="little").tobytes()
        else:
            values = rng.integers(-40, 41, shape)
            message.exact.gradients = values.astype("<i4").tobytes()
        uploads.append((indices, values, user, message.SerializeToString()))
    return uploads


def plain_round(memory, signs, uploads, kind):
    """docs/protocol.md, server rule, in Python integers."""
    row_sums, user_sum, weight = np.zeros((M, F), object), np.zeros(F, object), 0
    for indices, values, user, _ in uploads:
        row_sums[indices] += values
        w = max(len(indices), 32)
        user_sum, weight = user_sum + w * user.astype(object), weight + w
    tau, d = (4 * F + 5) // 10, signs.astype(object)
    others = ((d @ user_sum)[:, None] - d * user_sum) * user_sum // max(weight, 1)
    against = 256 * 2 * (others + tau * user_sum) // (M * F)
    own = 256 * row_sums // F if kind == EXACT else 256 * row_sums
    sums = own - against
    after = memory - memory // 16 + sums
    new_signs = np.where(after == 0, signs, np.where(after > 0, 1, -1))
    mean = (512 * user_sum + weight) // (2 * weight) if weight else np.zeros(F, object)
    return after, new_signs, mean


@settings(max_examples=30)
@given(st.sampled_from([TERNARY, EXACT]), st.integers(0, 12), SEEDS)
def test_three_catalogue_rounds_follow_the_protocol(kind, n_devices, seed):
    rng = np.random.default_rng(seed)
    server = CatalogueRule(np.full(M, 9), F, **options(kind))
    memory, signs, mean = np.zeros((M, F), object), server.signs(), np.zeros(F, object)
    for _ in range(3):
        uploads = random_uploads(kind, n_devices, rng)
        for *_, message in uploads:
            server.add(message)
        server.finish_round()
        memory, signs, new_mean = plain_round(memory, signs, uploads, kind)
        mean = new_mean if uploads else mean
        assert (server.memory[:M] == memory).all()
        assert (server.signs() == signs).all()
        assert (server.mean_user == mean).all()


def test_rows_at_a_time_make_no_difference(monkeypatch):
    from lightfr_harness.server.rules import catalogue

    rng = np.random.default_rng(3)
    uploads = random_uploads(TERNARY, 8, rng)
    results = []
    for rows in (7, 65_536):
        monkeypatch.setattr(catalogue, "_ROWS_AT_A_TIME", rows)
        server = CatalogueRule(np.full(M, 9), F, **options(TERNARY))
        for *_, message in uploads:
            server.add(message)
        server.finish_round()
        results.append((server.codes.tobytes(), server.memory.tobytes()))
    assert results[0] == results[1]


@settings(max_examples=30)
@given(st.integers(0, 10), SEEDS, st.sampled_from([Fraction(0), Fraction(1, 1000), Fraction(1, 5)]))
def test_agg_grad_is_the_printed_rule(n_devices, seed, lam):
    rng = np.random.default_rng(seed)
    server = PaperRule(np.full(M, 9), F, regularization=float(lam), **options(EXACT))
    before = server.signs()
    uploads = random_uploads(EXACT, n_devices, rng)
    for *_, message in uploads:
        parsed = update_pb2.RowUpdate.FromString(message)
        parsed.ClearField("user_code")
        server.add(parsed.SerializeToString())
    server.finish_round()
    scale = Fraction(1, 2 * F * 2520)
    for i in range(M):
        gradients = [
            [scale * int(x) for x in values[list(indices).index(i)]] for indices, values, *_ in uploads if i in indices
        ]
        assert server.signs()[i].tolist() == oracle.aggregate_gradients(before[i].tolist(), gradients, lam)


def test_agg_para_is_the_sign_of_the_sum_of_rows_and_a_tie_keeps_the_bit():
    server = PaperRule(np.full(M, 9), F, regularization=0.0, **options(CODES))
    before, rows = server.signs(), random_signs(4, F, 5)
    for row in rows:
        server.add(
            update_pb2.RowUpdate(
                code_bits=F,
                item_indices=np.array([3], "<u4").tobytes(),
                codes=update_pb2.CodeRows(codes=oracle.pack(row)),
            ).SerializeToString()
        )
    server.finish_round()
    expected = oracle.aggregate_rows(before[3].tolist(), rows.tolist())
    assert server.signs()[3].tolist() == expected
    assert (np.delete(server.signs(), 3, axis=0) == np.delete(before, 3, axis=0)).all()


def test_lambda_becomes_the_integer_of_the_protocol():
    assert balance_of(0.2, 64) == round(0.2 * 4 * 64 * 64 * 2520)


def test_the_paper_protocol_has_no_ternary_uploads():
    with pytest.raises(errors.InvalidInputError, match="no ternary uploads"):
        PaperRule(np.full(M, 9), F, regularization=0.0, **options(TERNARY))


def test_rows_below_the_gate_share_one_code_and_never_learn_from_a_device():
    counts = np.full(M, 9)
    counts[20:] = 2
    server = CatalogueRule(counts, F, **options(TERNARY, gate=3))
    assert (server.signs()[20:] == server.signs()[29]).all()
    assert len(np.unique(server.codes, axis=0)) == 21
    assert np.unpackbits(np.frombuffer(server.open_rows_bitmap(), np.uint8), bitorder="little")[:M].sum() == 20
    rng = np.random.default_rng(0)
    for indices, _, _, message in random_uploads(TERNARY, 40, rng):
        if not len(indices) or indices[-1] < 20:
            server.add(message)
    server.finish_round()
    assert (server.signs()[20:] == server.signs()[29]).all()
    assert not server.trails[-1].any()


@pytest.mark.parametrize("name", _kernel.supported_isas())
def test_every_instruction_set_gives_the_same_matrix(name):
    before, digests = _kernel.isa_name(), set()
    for isa in ("portable", name):
        _kernel.select_isa(isa)
        server = CatalogueRule(np.full(M, 9), F, **options(TERNARY))
        for *_, message in random_uploads(TERNARY, 8, np.random.default_rng(2)):
            server.add(message)
        server.finish_round()
        digests.add(server.codes.tobytes())
    _kernel.select_isa(before)
    assert len(digests) == 1


def test_a_restored_server_goes_on_as_the_first_would_have():
    first = CatalogueRule(np.full(M, 9), F, **options(TERNARY))
    rng = np.random.default_rng(2)
    rounds = [random_uploads(TERNARY, 5, rng) for _ in range(2)]
    for *_, message in rounds[0]:
        first.add(message)
    first.finish_round()
    second = CatalogueRule(np.full(M, 9), F, **options(TERNARY, seed=99))
    second.restore({key: value.copy() for key, value in first.state().items()})
    for server in (first, second):
        for *_, message in rounds[1]:
            server.add(message)
        server.finish_round()
    assert (first.codes == second.codes).all()
    assert (first.memory == second.memory).all()


@given(SEEDS, st.integers(1, 6))
@settings(max_examples=20)
def test_sums_move_the_matrix_exactly_as_the_uploads_they_are_of(seed, n_devices):
    rng = np.random.default_rng(seed)
    counts = np.where(np.arange(M) % 3, 20, 5)
    first, second = (CatalogueRule(counts, F, **options(TERNARY, gate=10)) for _ in range(2))
    rows, user_sum, weight = np.zeros((M, F), int), np.zeros(F, int), 0
    for _ in range(n_devices):
        ((indices, values, user, message),) = random_uploads(TERNARY, 1, rng)
        allowed = counts[indices] >= 10
        update = update_pb2.RowUpdate.FromString(message)
        update.item_indices = indices[allowed].tobytes()
        update.ternary.nonzero = np.packbits(values[allowed] != 0, bitorder="little").tobytes()
        update.ternary.positive = np.packbits(values[allowed] > 0, bitorder="little").tobytes()
        first.add(update.SerializeToString())
        w = max(int(allowed.sum()), 32)
        rows[indices[allowed]] += values[allowed]
        user_sum, weight = user_sum + w * user, weight + w
    second.add_sums(rows[counts >= 10].ravel(), user_sum, np.array([weight]))
    for server in (first, second):
        server.finish_round()
    assert all(np.array_equal(value, second.state()[name]) for name, value in first.state().items())


def refresh_twice(server, counts, seed):
    server.set_gate(np.array(counts), seed)
    server.set_gate(np.array(counts), seed)


def test_one_gate_refresh_alone_opens_and_closes_nothing_whatever_a_device_says_in_it():
    server = CatalogueRule(np.array([9, 9, 0, 0]), F, **options(TERNARY, gate=5))
    before = server.codes.copy()
    assert not server.awaits_refresh
    server.set_gate(np.array([-(2**30), 9, 2**30, 0]), seed=1)
    assert server.awaits_refresh
    assert server.open_rows.tolist() == [True, True, False, False]
    server.set_gate(np.array([6, 7, 1, 2]), seed=2)
    assert not server.awaits_refresh
    assert server.open_rows.tolist() == [True, True, False, False]
    assert np.array_equal(server.codes, before)


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 3), min_size=1, max_size=30))
def test_two_refreshes_that_agree_decide_and_where_they_differ_a_row_stays_as_it_is(rows):
    counts = np.array(rows).T
    server = CatalogueRule(counts[0], F, **options(TERNARY, gate=5))
    server.set_gate(counts[1], seed=1)
    server.set_gate(counts[2], seed=2)
    before, first, second = counts >= 5
    assert server.open_rows.tolist() == np.where(first == second, first, before).tolist()


def test_a_server_that_was_restored_between_two_refreshes_still_knows_the_first():
    first, second = (CatalogueRule(np.zeros(6, int), F, **options(TERNARY, gate=2)) for _ in range(2))
    first.set_gate(np.full(6, 3), seed=1)
    second.restore(first.state())
    assert second.awaits_refresh
    second.set_gate(np.full(6, 3), seed=2)
    assert second.open_rows.all()


def test_an_item_gets_a_row_of_its_own_when_it_opens_first_and_has_it_again_after_it_was_closed():
    server = CatalogueRule(np.zeros(6, int), F, **options(TERNARY, gate=2))
    shared = server.codes.copy()
    assert len(shared) == 1
    server.memory[:] = 9
    refresh_twice(server, [3, 2, 1, 0, 0, 5], seed=1)
    assert server.published_items().tolist() == [0, 1, 5, -1]
    assert np.array_equal(server.codes[-1:], shared)
    assert server.memory[:, 0].tolist() == [0, 0, 0, 9]
    own = server.codes[:3].copy()
    assert len(np.unique(server.codes, axis=0)) == 4
    server.memory[0] = 4
    refresh_twice(server, [0, 2, 2, 0, 0, 5], seed=2)
    assert server.published_items().tolist() == [1, 2, 5, -1]
    refresh_twice(server, [2, 2, 2, 0, 0, 5], seed=3)
    assert server.published_items().tolist() == [0, 1, 2, 5, -1]
    assert np.array_equal(server.codes[[0, 1, 3]], own)
    assert server.memory[:, 0].tolist() == [4, 0, 0, 0, 9]
    assert not np.array_equal(server.codes[2], shared[0])


def test_sums_bent_by_noise_or_lies_keep_the_mean_in_its_range():
    server = CatalogueRule(np.full(M, 9), F, **options(TERNARY))
    user_sum = np.array([2**20, -(2**20)] * (F // 2))
    for weight in (1, 0, -5):
        server.add_sums(np.full(M * F, 2**20), user_sum, np.array([weight]))
        server.finish_round()
        assert server.mean_user.tolist() == [256, -256] * (F // 2)
