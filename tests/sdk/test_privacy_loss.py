"""The device's own count of its privacy loss is never below what the accountant finds."""

from math import inf

import pytest

from lightfr.privacy_loss import DELTA, epsilon, round_loss
from lightfr.secagg.views import quorum
from lightfr.v1.model_pb2 import Noise
from lightfr_harness.simulation.accountant import Accountant, PrivacyLoss, noise_for

NOISE = Noise(rows_thousandths=200_000, sums_thousandths=25_000, counts_thousandths=3_000)


@pytest.mark.parametrize("bits", [64, 256])
@pytest.mark.parametrize("minimum", [2, 256, 1000])
def test_a_round_costs_what_the_accountant_says_with_half_of_the_minimum(bits, minimum):
    honest = minimum // 2
    accountant = Accountant(open_rows=2000, code_bits=bits, max_rows=0, noise=NOISE, honest_devices=honest)
    counted = round_loss(NOISE, bits, minimum, is_training=True)
    assert counted == pytest.approx(accountant.round_loss().rho, rel=1e-6)
    counted = round_loss(NOISE, bits, minimum, is_training=False)
    assert counted == pytest.approx(accountant.refresh_loss(2000, honest).rho, rel=1e-6)


def test_so_many_honest_devices_signed_the_survivors_however_large_the_roster_is():
    """A fifth colludes. Who did not sign may be there for show: tests/adversary/test_every_strategy.py."""
    for minimum in (2, 3, 24, 256, 1000):
        fewest = min(quorum(n) - n // 5 for n in range(minimum, 8193))
        assert minimum // 2 <= fewest <= minimum // 2 + 1


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.1, 1.0, 3.0, 20.0])
def test_epsilon_is_never_below_the_accountants(rho):
    assert PrivacyLoss(rho).epsilon(DELTA) <= epsilon(rho)


def test_nothing_is_lost_at_first():
    assert epsilon(0.0) == 0.0


@pytest.mark.parametrize("field", ["rows_thousandths", "sums_thousandths", "counts_thousandths"])
def test_noise_that_is_too_small_to_be_counted_promises_nothing(field):
    small = Noise()
    small.CopyFrom(NOISE)
    setattr(small, field, 1_299)
    is_training = field != "counts_thousandths"
    assert round_loss(small, 64, 256, is_training=is_training) == inf
    assert round_loss(small, 64, 256, is_training=not is_training) < inf
    setattr(small, field, 1_300)
    assert round_loss(small, 64, 256, is_training=is_training) < inf
    assert epsilon(inf) == inf


def test_noise_planned_for_ten_rounds_lasts_for_eight_by_the_bound_of_the_device():
    """What the closed form costs, said in docs/privacy-dp.md."""
    noise = noise_for(8.0, DELTA, rounds=10, code_bits=64, devices=256 // 2)
    loss = round_loss(noise, 64, 256, is_training=True)
    assert max(rounds for rounds in range(20) if epsilon(rounds * loss) <= 8.0) == 8
