"""A fleet under secure aggregation learns bit for bit what it learns in the clear, whoever drops out."""

import numpy as np
import pytest

from lightfr.errors import InvalidInputError
from lightfr.secagg.vector import Vector, round_blocks
from lightfr.v1 import model_pb2
from lightfr_harness.data import generate
from lightfr_harness.server.rules import CatalogueRule, PaperRule
from lightfr_harness.simulation.collecting import leave_before
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.training import RunOptions, TrainingRun

NOISE = model_pb2.Noise(rows_thousandths=800, sums_thousandths=3000)
SECAGG, SECAGG_DP = model_pb2.PRIVACY_MODE_SECAGG, model_pb2.PRIVACY_MODE_SECAGG_DP


@pytest.fixture(scope="module")
def ratings():
    return generate("tiny", seed=1)


def trained(ratings, privacy_mode=model_pb2.PRIVACY_MODE_CLEAR, noise=None, gate=2, **options):
    server = CatalogueRule(
        ratings.item_counts(),
        16,
        upload_kind=model_pb2.UPLOAD_KIND_TERNARY,
        gate=gate,
        max_rows=40,
        seed=3,
        privacy_mode=privacy_mode,
        noise=noise,
    )
    plan = RunOptions(**{"rounds": 3, "fraction": 0.4, "seed": 3, **options})
    run = TrainingRun(server, Fleet.of(ratings, 16, 3), plan)
    for _ in run:
        pass
    return run


def same(one, other):
    states = one.server.state(), other.server.state()
    return all(np.array_equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(("dropout", "gate"), [(0.0, 2), (0.1, 2), (0.3, 0)])
def test_masked_sums_move_the_matrix_as_uploads_in_the_clear_do(ratings, dropout, gate, masked):
    clear = trained(ratings, dropout=dropout, gate=gate)
    secure = trained(ratings, SECAGG, dropout=dropout, gate=gate, masked=masked)
    assert secure.traffic.abandoned == 0
    assert secure.traffic.dropped == clear.traffic.dropped
    assert (secure.traffic.dropped > 0) == (dropout > 0)
    assert same(clear, secure)
    assert (secure.fleet.codes() == clear.fleet.codes()).all()


def test_devices_that_drop_out_do_so_before_each_of_three_steps():
    drops = np.array([True, False, True, True, False, True])
    assert leave_before(drops).tolist() == [1, 0, 2, 3, 0, 1]


def test_a_round_that_loses_too_many_devices_is_abandoned_and_moves_nothing(ratings):
    before = trained(ratings, rounds=0)
    after = trained(ratings, SECAGG, rounds=1, dropout=0.9)
    assert after.traffic.abandoned == 1
    assert same(before, after)


def test_bytes_are_those_of_the_four_messages(ratings):
    run = trained(ratings, SECAGG, rounds=1)
    n = round(0.4 * ratings.n_users)
    vector_bytes = Vector(round_blocks(int(run.server.open_rows.sum()), 16, n)).packed_bytes
    neighbours = min(64, n - 1)
    numbers = n * (64 + vector_bytes + neighbours * 98 + (neighbours + 1) * 49)
    framing = run.traffic.up_bytes - numbers
    # Round id four times, digest and upload id once, and a few bytes of tag and length for each field.
    assert n * 112 < framing < n * 150


def test_noise_moves_the_matrix_and_the_same_seed_gives_it_again(ratings):
    first, again = (trained(ratings, SECAGG_DP, NOISE, rounds=2) for _ in range(2))
    assert same(first, again)
    assert not same(first, trained(ratings, SECAGG, rounds=2))


def test_noise_in_the_sum_has_the_deviation_of_all_survivors_together(ratings, monkeypatch):
    sums = {}
    for masked in (True, False):

        def keep(server, found, n, masked=masked):
            sums[masked] = found, n

        monkeypatch.setattr(CatalogueRule, "add_cohort", keep)
        trained(ratings, SECAGG_DP, NOISE, rounds=1, dropout=0.2, masked=masked)
    (masked, n), (unmasked, same_n) = sums[True], sums[False]
    assert n == same_n < round(0.4 * ratings.n_users)
    for block, deviation in (("rows", 0.8), ("products", 3)):
        found = np.std(masked[block] - unmasked[block])  # two independent noises on the same sum
        assert found == pytest.approx(deviation * np.sqrt(2 * n), rel=0.2)


def test_with_noise_every_device_weighs_the_same():
    server = CatalogueRule(
        np.full(3, 9),
        8,
        upload_kind=model_pb2.UPLOAD_KIND_TERNARY,
        gate=2,
        max_rows=50,
        seed=0,
        privacy_mode=SECAGG_DP,
        noise=NOISE,
    )
    products, user_sum = np.arange(28), np.arange(8)
    server.add_cohort({"rows": np.zeros(24, np.int64), "products": products, "user_sum": user_sum}, 7)
    full, total, weight = server._cohort_sums()
    assert weight == 7 * 50
    assert total.tolist() == (50 * user_sum).tolist()
    assert full[np.triu_indices(8, 1)].tolist() == (50 * products).tolist()
    assert (full == full.T).all()
    assert (np.diag(full) == weight).all()


def test_the_papers_protocol_cannot_be_summed_securely(ratings):
    server = PaperRule(
        ratings.item_counts(),
        16,
        regularization=0.0,
        upload_kind=model_pb2.UPLOAD_KIND_EXACT,
        gate=0,
        max_rows=0,
        seed=0,
        privacy_mode=SECAGG,
    )
    with pytest.raises(InvalidInputError, match=r"ternary|catalogue"):
        next(iter(TrainingRun(server, Fleet.of(ratings, 16, 3), RunOptions(rounds=1))))
