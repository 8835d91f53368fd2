"""But for the noise, a fleet learns from secure sums bit for bit what it learns in the clear, whoever drops out."""

import numpy as np
import pytest

from lightfr.errors import ProtocolError
from lightfr.secagg import round_vector
from lightfr.secagg.noise import row_variance, ternary_threshold
from lightfr.secagg.roster import usual_numbers
from lightfr.secagg.vector import Vector, round_blocks
from lightfr.v1 import model_pb2
from lightfr_harness.data import generate
from lightfr_harness.server.rules import CatalogueRule, PaperRule
from lightfr_harness.simulation.collecting import leave_before
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.secure import SecureRound
from lightfr_harness.simulation.training import RunOptions, TrainingRun

NOISE = model_pb2.Noise(rows_thousandths=20_000, sums_thousandths=10_000, counts_thousandths=2000)
SECAGG, SECAGG_DP = model_pb2.PRIVACY_MODE_SECAGG, model_pb2.PRIVACY_MODE_SECAGG_DP


@pytest.fixture(scope="module")
def ratings():
    return generate("tiny", seed=1)


class Quiet:
    """Randomness in the middle of its range, for which all noise is zero."""

    def bytes(self, n):
        return b"\0\x80" * (n // 2)

    def binomial(self, n, p, size=None):
        return np.zeros(size or np.shape(n), np.int64)

    def normal(self, mean, deviation, size):
        return np.zeros(size)


class QuietRun(TrainingRun):
    def random(self, round_index, purpose):
        return Quiet() if purpose == 5 else super().random(round_index, purpose)


def trained(ratings, privacy_mode=model_pb2.PRIVACY_MODE_CLEAR, noise=None, gate=2, of=TrainingRun, **options):
    server = CatalogueRule(
        ratings.item_counts(),
        16,
        upload_kind=model_pb2.UPLOAD_KIND_EXACT if noise else model_pb2.UPLOAD_KIND_TERNARY,
        gate=gate,
        max_rows=40,
        seed=3,
        privacy_mode=privacy_mode,
        noise=noise,
    )
    plan = RunOptions(**{"rounds": 3, "fraction": 0.4, "seed": 3, **options})
    run = of(server, Fleet.of(ratings, 16, 3), plan)
    for _ in run:
        pass
    return run


def same(one, other):
    states = one.server.state(), other.server.state()
    return all(np.array_equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(("dropout", "gate"), [(0.0, 2), (0.1, 2), (0.3, 0)])
def test_masked_sums_without_noise_move_the_matrix_as_uploads_in_the_clear_do(ratings, dropout, gate, masked):
    clear = trained(ratings, dropout=dropout, gate=gate)
    secure = trained(ratings, SECAGG, dropout=dropout, gate=gate, masked=masked, of=QuietRun)
    assert secure.traffic.abandoned == 0
    assert secure.traffic.dropped == clear.traffic.dropped
    assert (secure.traffic.dropped > 0) == (dropout > 0)
    assert same(clear, secure)
    assert (secure.fleet.codes() == clear.fleet.codes()).all()


def test_devices_that_drop_out_do_so_before_each_step_up_to_the_upload():
    drops = np.array([True, False, True, True, False, True, True, True])
    assert leave_before(drops).tolist() == [1, 0, 2, 3, 0, 4, 5, 1]


def test_a_round_that_loses_too_many_devices_is_abandoned_and_moves_nothing(ratings):
    before = trained(ratings, rounds=0)
    after = trained(ratings, SECAGG, rounds=1, dropout=0.9)
    assert after.traffic.abandoned == 1
    assert same(before, after)


def test_bytes_are_those_of_the_seven_messages(ratings):
    run = trained(ratings, SECAGG, rounds=1)
    n = round(0.4 * ratings.n_users)
    vector_bytes = Vector(round_blocks(int(run.server.open_rows.sum()), 16, n)).packed_bytes
    _, holders, _ = usual_numbers(n)
    keys, signatures, complaints = 64 + 104 + 64, 2 * 64, (n + 7) // 8
    # A device reveals shares of all whose holder it is; over the cohort these are as many as holders.
    numbers = n * (keys + holders * 98 + complaints + signatures + vector_bytes + (holders + 1) * 37)
    framing = run.traffic.up_bytes - numbers
    # Round id seven times, digest and upload id once, and a few bytes of tag and length for each field.
    assert n * 160 < framing < n * 210


@pytest.mark.parametrize(("mode", "noise"), [(SECAGG, None), (SECAGG_DP, NOISE)])
def test_noise_moves_the_matrix_and_the_same_seed_gives_it_again(ratings, mode, noise):
    first, again = (trained(ratings, mode, noise, rounds=1) for _ in range(2))
    assert same(first, again)
    assert not same(first, trained(ratings, mode, noise, rounds=1, of=QuietRun))


def test_really_masked_sums_are_those_of_the_devices_numbers_with_the_same_noise(ratings):
    """The simulation's generator gives the devices' noise in their order, so that it can be drawn a second time."""
    run = trained(ratings, SECAGG, rounds=0)
    model, users = run.published(), run.cohort(0)
    updates = [run.fleet.devices[user].update(model, run.random(0, 3).bytes) for user in users]
    random = run.random(0, 5).bytes
    total = sum(np.concatenate([vector[b.name] for b in vector.blocks], dtype=np.int64)
                for vector in (round_vector(model, update, len(users), random) for update in updates))  # fmt: skip
    secure, nobody = SecureRound.of_updates(model, updates, run.random(0, 5).bytes), np.zeros(len(users), np.bool_)
    secure.run(lambda _: nobody)
    assert np.concatenate(list(secure.finish().values())).tolist() == total.tolist()


@pytest.mark.parametrize(("mode", "noise"), [(SECAGG, None), (SECAGG_DP, NOISE)])
def test_noise_drawn_for_the_sum_is_distributed_as_that_of_all_survivors_together(ratings, mode, noise, monkeypatch):
    sums = {}
    for how, options in {"masked": {}, "unmasked": {"masked": False}, "none": {"of": QuietRun}}.items():

        def keep(server, found, n, how=how):
            sums[how] = found, n

        monkeypatch.setattr(CatalogueRule, "add_cohort", keep)
        trained(ratings, mode, noise, rounds=1, dropout=0.2, **options)
    places, (plain, n) = round(0.4 * ratings.n_users), sums["none"]
    assert n < places
    ternary = np.sqrt(2 * ternary_threshold(places, row_variance(16)) / 65536)
    rows, user_sum = (20, 10) if noise else (ternary, 4 * np.sqrt(places))
    for found, same_n in (sums["masked"], sums["unmasked"]):
        assert same_n == n
        added = {name: found[name] - plain[name] for name in plain}
        assert np.std(added["rows"]) == pytest.approx(rows * np.sqrt(n), rel=0.1)
        assert np.mean(added["rows"] ** 4) == pytest.approx(_fourth_moment(rows**2, n, gaussian=bool(noise)), rel=0.2)
        assert np.std(added["user_sum"]) == pytest.approx(user_sum * np.sqrt(n), rel=0.5)


def _fourth_moment(variance, n, *, gaussian):
    """Of a sum of n numbers: a ternary one has a fourth moment that is its variance."""
    return 3 * (n * variance) ** 2 + (0 if gaussian else n * (variance - 3 * variance**2))


def test_with_an_epsilon_every_device_weighs_the_same():
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
    user_sum = np.arange(8)
    server.add_cohort({"rows": np.zeros(24, np.int64), "user_sum": user_sum}, 7)
    total, weight = server._cohort_sums()
    assert weight == 7 * 20
    assert total.tolist() == (20 * user_sum).tolist()


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
    with pytest.raises(ProtocolError, match="objective CATALOGUE alone"):
        next(iter(TrainingRun(server, Fleet.of(ratings, 16, 3), RunOptions(rounds=1))))
