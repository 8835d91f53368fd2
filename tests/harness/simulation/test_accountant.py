"""The loss of a round is that of the numbers a device can really send."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightfr import UserCode
from lightfr.errors import OutOfRangeError
from lightfr.interactions import Interactions
from lightfr.secagg.contribution import vector_without_noise
from lightfr.training import make_update
from lightfr.v1 import model_pb2
from lightfr_harness.simulation.accountant import (
    Accountant,
    PrivacyLoss,
    discrete_gaussian,
    summed_discrete_gaussians,
)
from lightfr_harness.simulation.fleet import stream
from tests.helpers import make_model, random_signs

NOISE = model_pb2.Noise(rows_thousandths=4000, sums_thousandths=30_000)


def test_a_round_is_its_rows_and_its_sums():
    rows = summed_discrete_gaussians(2000 * 64, 64 * 64, 64, 4, 500)
    sums = summed_discrete_gaussians(2080, 2080, np.sqrt(2080), 30, 500)
    accountant = Accountant(2000, 64, 64, NOISE, 500)
    assert accountant.round_loss() == rows + sums
    assert accountant.loss(10).rho == pytest.approx(10 * (rows + sums).rho)


def test_no_vector_of_a_device_is_longer_than_the_accountant_says():
    """Sensitivities by the SDK's own vectors, at the ends too: the user who rates more than may be uploaded."""
    model = make_model(random_signs(90, 16, 0), max_rows=40, privacy_mode=model_pb2.PRIVACY_MODE_SECAGG_DP, noise=NOISE)
    code = UserCode(stream("code")(2))
    update = make_update(model, Interactions((i, 0) for i in range(90)), code, bytes)  # zeros round every element up
    vector = vector_without_noise(model, update, 500)
    length = {b.name: int((np.array(vector[b.name]) ** 2).sum()) for b in vector.blocks}
    assert length["rows"] <= 40 * 16
    assert length["products"] + length["user_sum"] == 16 * 15 // 2 + 16
    assert length["rows"] > 0.9 * 40 * 16
    assert Accountant(90, 16, 40, NOISE, 500).round_loss().rho == pytest.approx(
        (40 * 16 / 16 + 136 / 900) / (2 * 500), rel=1e-6
    )


def test_fewer_open_rows_than_may_be_uploaded_bound_the_loss():
    assert Accountant(10, 64, 64, NOISE, 500).round_loss().rho < Accountant(64, 64, 64, NOISE, 500).round_loss().rho


def test_a_round_without_honest_devices_has_no_noise():
    with pytest.raises(OutOfRangeError, match="honest_devices is 0"):
        Accountant(10, 64, 64, NOISE, 0)


# The loss itself, against published values and against integration.


RHOS = st.floats(1e-4, 50)


@pytest.mark.parametrize(
    ("rho", "delta", "epsilon"),
    [
        # dp-accounting (google/differential-privacy), rdp_privacy_accountant_test, test_compute_epsilon_delta_gaussian:
        # "noise multiplier is chosen to obtain exactly (1, 1e-6)-DP".
        (1 / (2 * 4.530877117**2), 1e-6, 1.0),
        # A Rust accountant's test of its zCDP path, "never below the CKS reference value".
        (0.005, 1e-6, 0.4299414688369493),
    ],
)
def test_published_conversions_are_met(rho, delta, epsilon):
    assert PrivacyLoss(rho).epsilon(delta) == pytest.approx(epsilon, rel=1e-7)
    assert PrivacyLoss(rho).delta(epsilon) == pytest.approx(delta, rel=1e-6)


def gaussian_delta(sigma, epsilon):
    """Exact for sensitivity 1: Balle and Wang, "Improving the Gaussian Mechanism" (2018), Theorem 8."""

    def below(x):
        return math.erfc(-x / math.sqrt(2)) / 2

    return below(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * below(-0.5 / sigma - epsilon * sigma)


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.7, 6.0), (1.0, 4.0), (3.0, 1.0), (10.0, 0.2)])
def test_delta_is_above_the_exact_one_of_a_gaussian_and_near_it(sigma, epsilon):
    bound, exact = discrete_gaussian(1, sigma).delta(epsilon), gaussian_delta(sigma, epsilon)
    assert exact <= bound <= 6 * exact


@given(RHOS, st.floats(1e-12, 0.1))
def test_epsilon_and_delta_belong_together_and_beat_the_older_bound(rho, delta):
    loss = PrivacyLoss(rho)
    epsilon = loss.epsilon(delta)
    assert loss.delta(epsilon) <= delta * (1 + 1e-9)
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


@given(RHOS, st.floats(0.01, 60), st.floats(1.001, 500))
def test_no_other_order_gives_a_smaller_delta(rho, epsilon, alpha):
    """The bound of CKS at a fixed order, in logarithms."""
    log_delta = (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)
    found = PrivacyLoss(rho).delta(epsilon)
    assert found == 0 or math.log(found) <= log_delta + 1e-6


def pmf(sigma, most):
    weights = np.exp(-(np.arange(-most, most + 1.0) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def renyi(p, shift, alpha):
    """Divergence of p from p moved by `shift`, of order alpha; what lies below 1e-200 does not count in the sum."""
    moved, kept = p[shift:], p[:-shift]
    sure = (moved > 1e-200) & (kept > 1e-200)
    return math.log(np.exp(alpha * np.log(moved[sure]) + (1 - alpha) * np.log(kept[sure])).sum()) / (alpha - 1)


@pytest.mark.parametrize("alpha", [1.5, 2, 4])
@pytest.mark.parametrize(("sigma", "devices"), [(0.5, 2), (0.5, 5), (0.7, 3), (1.0, 2), (1.0, 8), (2.0, 4)])
def test_the_divergence_of_a_sum_of_discrete_gaussians_is_within_its_bound(sigma, devices, alpha):
    """By convolution, for one number of sensitivity 1."""
    single = total = pmf(sigma, 40)
    for _ in range(devices - 1):
        total = np.convolve(total, single)
    loss = summed_discrete_gaussians(1, 1, 1, sigma, devices)
    assert renyi(total, 1, alpha) <= alpha * loss.rho * (1 + 1e-9)
    if sigma >= 1:
        assert loss.rho == pytest.approx(discrete_gaussian(1, sigma * math.sqrt(devices)).rho, rel=0.01)


def test_one_device_alone_adds_a_discrete_gaussian():
    assert summed_discrete_gaussians(9, 3, 2, 1.3, 1) == discrete_gaussian(2, 1.3)


def test_tau_of_small_noise_counts_for_every_number():
    """tau by hand for two devices of deviation 1: 10 e^(-pi^2); numbers without sensitivity lose something too."""
    tau = 10 * math.exp(-(math.pi**2))
    assert summed_discrete_gaussians(100, 0, 0, 1.0, 2).rho == pytest.approx(100 * tau**2 / 2)


def test_losses_add_up():
    assert PrivacyLoss(0.25) + PrivacyLoss(0.5) == PrivacyLoss(0.75)
    assert PrivacyLoss(0.25).times(3) == PrivacyLoss(0.75)
    assert PrivacyLoss(math.inf).times(0) == PrivacyLoss(0)


def test_no_noise_is_no_promise_and_no_release_is_no_loss():
    assert PrivacyLoss(math.inf).epsilon(1e-5) == math.inf
    assert PrivacyLoss(math.inf).delta(3) == 1
    assert PrivacyLoss(0).epsilon(1e-5) == PrivacyLoss(0).delta(0) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: PrivacyLoss(-1),
        lambda: PrivacyLoss(math.nan),
        lambda: PrivacyLoss(1).epsilon(0),
        lambda: PrivacyLoss(1).epsilon(1),
        lambda: PrivacyLoss(1).delta(-0.1),
        lambda: PrivacyLoss(1).times(-1),
    ],
)
def test_numbers_outside_their_domain_are_refused(wrong):
    with pytest.raises(OutOfRangeError):
        wrong()
