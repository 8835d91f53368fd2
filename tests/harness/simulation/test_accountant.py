"""The loss of a round is that of the numbers a device can really send."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr import UserCode
from lightfr.errors import OutOfRangeError
from lightfr.interactions import Interactions
from lightfr.secagg.contribution import gate_vector, vector_without_noise
from lightfr.training import make_update
from lightfr.v1 import model_pb2
from lightfr_harness.simulation.accountant import (
    Accountant,
    PrivacyLoss,
    discrete_gaussian,
    noise_for,
    summed_discrete_gaussians,
)
from lightfr_harness.simulation.fleet import stream
from tests.helpers import make_model, random_signs

NOISE = model_pb2.Noise(rows_thousandths=40_000, sums_thousandths=5000, counts_thousandths=2000)


def test_a_round_is_its_rows_and_its_user_sum():
    """The rows of a device are clipped to a length of 8 f, and 64 rows of them are not zero."""
    rows = summed_discrete_gaussians(2000 * 64, 64 * 512, 512, 40, 500)
    sums = summed_discrete_gaussians(64, 64, 8, 5, 500)
    accountant = Accountant(2000, 64, 64, NOISE, 500)
    assert accountant.round_loss() == rows + sums
    assert accountant.loss(10).rho == pytest.approx(10 * (rows + sums).rho)


def test_a_gate_refresh_is_64_items_that_count_1():
    refresh = Accountant(2000, 64, 64, NOISE, 500).refresh_loss(3000, 300)
    assert refresh == summed_discrete_gaussians(3000, 64, 8, 2, 300)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 90), st.sampled_from([8, 16, 64]), st.integers(0, 2**32 - 1))
def test_no_vector_of_a_device_is_longer_than_the_accountant_says(n_rated, code_bits, seed):
    """Sensitivities by the SDK's own vectors, also of the user who rates more than may be uploaded."""
    signs = random_signs(90, code_bits, seed)
    mode, exact = model_pb2.PRIVACY_MODE_SECAGG_DP, model_pb2.UPLOAD_KIND_EXACT
    model = make_model(signs, max_rows=64, privacy_mode=mode, upload_kind=exact, noise=NOISE)
    code, rated = UserCode(stream("code", seed)(code_bits // 8)), Interactions((i, 0) for i in range(n_rated))
    vector = vector_without_noise(model, make_update(model, rated, code, stream("rows", seed)), 500)
    length = {b.name: int((np.array(vector[b.name], np.int64) ** 2).sum()) for b in vector.blocks}
    assert length == {"rows": length["rows"], "user_sum": code_bits}
    assert length["rows"] <= (8 * code_bits) ** 2
    if n_rated == 90:
        # Rounding toward zero takes less than 1 of each of the 64 rows' numbers.
        assert length["rows"] ** 0.5 > 8 * code_bits - (64 * code_bits) ** 0.5 - 1
    counts = np.array(gate_vector(model, rated, 100_000, no_noise)["counts"])
    assert (counts**2).sum() == min(n_rated, 64)


def no_noise(n):
    """Random bytes in the middle of the range, for which the noise is zero."""
    return b"\0\x80" * (n // 2)


@pytest.mark.parametrize(("epsilon", "rounds", "devices"), [(8, 10, 943), (3, 10, 8000), (1, 50, 300)])
@pytest.mark.parametrize(("counting", "evaluations"), [(0, 0), (400, 4)])
def test_noise_for_an_epsilon_gives_that_epsilon_and_hardly_less(epsilon, rounds, devices, counting, evaluations):
    sizes = {"counting_devices": counting, "evaluations": evaluations}
    noise = noise_for(epsilon, 1e-5, rounds=rounds, code_bits=64, devices=devices, **sizes)
    accountant = Accountant(1500, 64, 64, noise, devices)
    loss = accountant.loss(rounds) + accountant.refresh_loss(376, devices).times(evaluations)
    if counting:
        loss += accountant.refresh_loss(1682, counting)
    assert 0.98 * epsilon < loss.epsilon(1e-5) <= epsilon


def test_noise_is_never_so_small_that_a_sum_of_discrete_gaussians_is_far_from_one():
    noise = noise_for(1000, 1e-5, rounds=1, code_bits=8, devices=8192)
    assert min(noise.rows_thousandths, noise.sums_thousandths, noise.counts_thousandths) == 1300


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
