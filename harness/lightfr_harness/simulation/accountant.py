"""What a user who takes part in rounds of secagg+dp gives away, at most.

Losses are counted as zero-concentrated differential privacy (zCDP) of discrete Gaussian noise, and told as (epsilon,
delta).

CKS: Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", 2020 (arXiv 2004.00010).
KLS: Kairouz, Liu, Steinke, "The Distributed Discrete Gaussian Mechanism for Federated Learning with Secure
Aggregation", 2021 (arXiv 2102.06387).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lightfr.errors import OutOfRangeError
from lightfr.training.constants import CLIPPED_LENGTH, COUNTED_ITEMS
from lightfr.v1 import model_pb2

_STEPS = 200  # of bisections: more than the bits of a float
_GATE_SHARE = 0.1
_SUMS_FACTOR = 8
_LEAST_THOUSANDTHS = 1300


@dataclass(frozen=True)
class PrivacyLoss:
    """rho-zCDP: what neighbouring data can be told apart by, at most. Losses of several releases add up.

    rho is a number from 0 (nothing is told) to infinity (no promise).
    """

    rho: float

    def __post_init__(self) -> None:
        if not self.rho >= 0:
            raise OutOfRangeError("rho", self.rho, 0, math.inf)

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        return PrivacyLoss(self.rho + other.rho)

    def times(self, releases: int) -> PrivacyLoss:
        """The loss of so many releases, each of which may depend on those before."""
        if releases < 0:
            raise OutOfRangeError("releases", releases, 0, math.inf)
        return PrivacyLoss(self.rho * releases if releases else 0.0)

    def delta(self, epsilon: float) -> float:
        """The smallest delta for an epsilon (>= 0) by CKS, Corollary 13: every alpha bounds it, the best is sought."""
        if not epsilon >= 0:
            raise OutOfRangeError("epsilon", epsilon, 0, math.inf)
        if self.rho == 0 or epsilon == math.inf:
            return 0.0
        if self.rho == math.inf:
            return 1.0
        low, high = 1.0, (epsilon + 1) / (2 * self.rho) + 2  # the derivative is negative at low, positive at high
        for _ in range(_STEPS):
            alpha = (low + high) / 2
            if alpha <= 1 or (2 * alpha - 1) * self.rho - epsilon + math.log1p(-1 / alpha) < 0:
                low = alpha
            else:
                high = alpha
        exponent = (high - 1) * (high * self.rho - epsilon) + high * math.log1p(-1 / high) - math.log(high - 1)
        return math.exp(min(0.0, exponent))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon for a delta (0 to 1, both excluded), by the same bound."""
        if not 0 < delta < 1:
            raise OutOfRangeError("delta", delta, 0, 1)
        if self.rho in (0, math.inf):
            return self.rho
        # Bun and Steinke, "Concentrated Differential Privacy" (2016), Proposition 1.3: a bound that is never below.
        low, high = 0.0, self.rho + 2 * math.sqrt(self.rho * -math.log(delta))
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


def discrete_gaussian(l2_sensitivity: float, deviation: float) -> PrivacyLoss:
    """Noise of this deviation in each of any number of integers, by CKS, Theorem 4 and its form for many numbers."""
    return PrivacyLoss((l2_sensitivity / deviation) ** 2 / 2)


def summed_discrete_gaussians(
    numbers: int, l1_sensitivity: float, l2_sensitivity: float, deviation: float, devices: int
) -> PrivacyLoss:
    """Each of `devices` adds noise of this deviation to each of `numbers` integers, by KLS, Proposition 14.

    A sum of discrete Gaussians is almost one. tau bounds how far it is from it in one number.
    """
    tau = 10 * math.fsum(math.exp(-2 * (math.pi * deviation) ** 2 * k / (k + 1)) for k in range(1, devices))
    l1, l2 = (s / (math.sqrt(devices) * deviation) for s in (l1_sensitivity, l2_sensitivity))
    squared = min(l2**2 + 2 * l1 * tau + tau**2 * numbers, (l2 + math.sqrt(numbers) * tau) ** 2)
    return PrivacyLoss(squared / 2)


@dataclass(frozen=True)
class Accountant:
    """The rounds of one training.

    Neighbouring are two runs in which one user's numbers are as they are, or all zero: the whole user, in all rounds.
    `honest_devices` is the least number of survivors of a round that add the noise they should, this user's among them.

    Nothing is gained from the cohort's being sampled: whoever runs the server knows who is in it.
    """

    open_rows: int
    code_bits: int
    max_rows: int
    noise: model_pb2.Noise
    honest_devices: int

    def __post_init__(self) -> None:
        if self.honest_devices < 1:
            raise OutOfRangeError("honest_devices", self.honest_devices, 1, math.inf)

    def round_loss(self) -> PrivacyLoss:
        """Of one round that the user takes part in: clipped rows, and a code of f signs."""
        f, length = self.code_bits, CLIPPED_LENGTH * self.code_bits
        not_zero = f * min(self.max_rows or self.open_rows, self.open_rows)
        rows = summed_discrete_gaussians(
            f * self.open_rows,
            math.sqrt(not_zero) * length,
            length,
            self.noise.rows_thousandths / 1000,
            self.honest_devices,
        )
        return rows + summed_discrete_gaussians(
            f, f, math.sqrt(f), self.noise.sums_thousandths / 1000, self.honest_devices
        )

    def refresh_loss(self, n_items: int, honest_devices: int) -> PrivacyLoss:
        """Of one gate refresh that the user takes part in: at most so many items count 1.

        An evaluation round of so many numbers costs as much at most, since at most 63 of them are 1.
        """
        return summed_discrete_gaussians(
            n_items, COUNTED_ITEMS, math.sqrt(COUNTED_ITEMS), self.noise.counts_thousandths / 1000, honest_devices
        )

    def loss(self, rounds: int) -> PrivacyLoss:
        """Of so many rounds that the user takes part in, whatever each is made to depend on."""
        return self.round_loss().times(rounds)


def noise_for(
    epsilon: float,
    delta: float,
    *,
    rounds: int,
    code_bits: int,
    devices: int,
    counting_devices: int = 0,
    evaluations: int = 0,
) -> model_pb2.Noise:
    """The noise with which a user who takes part in so many rounds loses at most epsilon.

    `devices` is the least number of honest survivors of a round. With `counting_devices`, those of a gate refresh, the
    user takes part in one refresh too, and in so many `evaluations`; together they get at most a tenth of the loss. The
    user sum gets eight times the noise of the rows, in the same unit, for it hurts less there.
    """
    rho = _rho_of(epsilon, delta)
    # What counting costs, were the deviation 1.
    counted = (COUNTED_ITEMS / counting_devices if counting_devices else 0) + evaluations * COUNTED_ITEMS / devices
    counts = _at_least(math.sqrt((counted or COUNTED_ITEMS / devices) / (2 * _GATE_SHARE * rho)))
    for_rounds = rho - counted / (2 * (counts / 1000) ** 2)
    squared = (CLIPPED_LENGTH * code_bits) ** 2 + code_bits * (code_bits / _SUMS_FACTOR) ** 2
    rows = math.sqrt(squared * max(1, rounds) / (2 * for_rounds * devices))
    return model_pb2.Noise(
        rows_thousandths=_at_least(rows),
        sums_thousandths=_at_least(_SUMS_FACTOR * rows / code_bits),
        counts_thousandths=counts,
    )


def _at_least(deviation: float) -> int:
    """In thousandths, rounded up, and so much that a sum of discrete Gaussians is one but for a negligible part."""
    return max(_LEAST_THOUSANDTHS, math.ceil(1000 * deviation))


def _rho_of(epsilon: float, delta: float) -> float:
    low, high = 0.0, epsilon
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if PrivacyLoss(middle).delta(epsilon) <= delta else (low, middle)
    return low
