"""Noise that a device adds to its numbers before it masks them: ternary, and discrete Gaussian.

Ternary noise is -1, 0 or +1. Its variance is a share of what the cohort's sum shall have, so that the sum hides one
device however large the cohort is, and no more is lost in a large one.

Discrete Gaussian noise is an integer x with probability proportional to exp(-x^2 / (2 sigma^2)). The distribution is
that of Canonne, Kamath and Steinke ("The Discrete Gaussian for Differential Privacy", 2020). It is drawn by inversion
of its cumulative table (as in Peikert, "An Efficient and Parallel Gaussian Sampler for Lattices", 2010): 128 random
bits a number are compared with a table of 128-bit integers. What is drawn is within 2^-100 of it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from math import isqrt
from typing import TYPE_CHECKING

from lightfr import _kernel
from lightfr.errors import OutOfRangeError, PrivacyError
from lightfr.training.model import LEAST_NOISE, MOST_NOISE

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightfr.v1.model_pb2 import Noise

# Variance of the ternary noise in a sum over all devices; a fifth less without a fifth of them, who may collude.
# docs/accuracy.md and the privacy audit have the figures behind it.
COUNT_VARIANCE = 8
# Of each number of a row, at least.
_ROW_VARIANCE = 12
# Of each number of an evaluation: its numbers say nearly the same of a device, one for each candidate.
EVALUATION_VARIANCE = 128
# With few devices each adds all that ternary noise has: -1, 0 and +1 are equally likely.
_MOST_TERNARY = 21_845
# The sum of ternary noise reaches at most the root of so many variances, eleven standard deviations, but for a chance
# below 2^-51.
_TERNARY_REACH = 128

# Of the sum over a cohort, at least, in mode SECAGG_DP: 4 * 256 / 48, 48 being the usual weight.
_LEAST_SUM_VARIANCE = 455

# Numbers end at so many standard deviations: less than 2^-102 lies beyond.
_REACH = 12
# Digits of the table's calculation; 2^128 has 39, and each step of it loses less than one unit in the last.
_DIGITS = 80
_DRAW_BYTES = 16
# Numbers drawn at a time, which keeps their random bits small in memory.
_AT_A_TIME = 4096
_TERNARY_AT_A_TIME = 32768


def row_variance(code_bits: int) -> int:
    """Return the variance of the ternary noise in each number of a summed row: a longer row says more, and has more."""
    return max(_ROW_VARIANCE, code_bits // 8)


def add_ternary_noise(
    target: memoryview[int], devices: int, variance: int, random_bytes: Callable[[int], bytes]
) -> None:
    """Add the ternary noise of one of so many devices to each number (16 bits) in place.

    `variance` is that of the sum. `random_bytes` must be cryptographic, except in simulations; docs/secagg.md says what
    becomes of its bytes.
    """
    threshold = ternary_threshold(devices, variance)
    for first in range(0, len(target), _TERNARY_AT_A_TIME):
        piece = target[first : first + _TERNARY_AT_A_TIME]
        _kernel.ternary_noise(piece, len(piece), threshold, random_bytes(2 * len(piece)))


def ternary_threshold(devices: int, variance: int) -> int:
    """Return how many of 65536 draws give +1, and as many -1, on one of so many devices."""
    return min(_MOST_TERNARY, 32768 * variance // devices)


def ternary_room(devices: int, variance: int) -> int:
    """Return what the ternary noise of so many devices comes to at most."""
    return min(devices, isqrt(_TERNARY_REACH * variance))


def user_sum_thousandths(devices: int) -> int:
    """Return the deviation of the discrete Gaussian that each of so many devices adds to `user_sum` in mode SECAGG.

    The deviation of the sum is 4 n, a twelfth of the usual weight: the catalogue term does not notice it.
    """
    return isqrt(16_000_000 * devices)


def weight_thousandths(devices: int) -> int:
    """Return that of `weight`: the deviation of the sum is n, where one device weighs 32 to 64."""
    return isqrt(1_000_000 * devices)


def require_enough(noise: Noise, code_bits: int, devices: int, count_variance: int = COUNT_VARIANCE) -> None:
    """Raise PrivacyError unless so many devices have at least the noise of mode SECAGG in rows and counts.

    And in the user sum what 256 devices have there: otherwise a server could turn the noise down by asking for
    mode SECAGG_DP.
    """
    least = (
        (noise.rows_thousandths, row_variance(code_bits) * code_bits * code_bits),
        (noise.sums_thousandths, _LEAST_SUM_VARIANCE),
        (noise.counts_thousandths, count_variance),
    )
    if any(devices * thousandths**2 < 1_000_000 * variance for thousandths, variance in least):
        raise PrivacyError(
            f"the noise that the server asks of {devices} devices is less than mode secagg has, so nothing was sent: "
            "the server needs more noise, or larger cohorts"
        )


def add_noise(target: array[int] | memoryview[int], thousandths: int, random_bytes: Callable[[int], bytes]) -> None:
    """Add noise of a standard deviation, given in thousandths (500 to 1,000,000), to each number in place.

    `random_bytes` must be cryptographic, except in simulations; docs/secagg.md says what becomes of its bytes.
    """
    if not LEAST_NOISE <= thousandths <= MOST_NOISE:
        raise OutOfRangeError("noise in thousandths", thousandths, LEAST_NOISE, MOST_NOISE)
    numbers, table = memoryview(target), _table(thousandths)
    most = len(table) // 2
    for first in range(0, len(numbers), _AT_A_TIME):
        piece = numbers[first : first + _AT_A_TIME]
        words = array("Q", random_bytes(_DRAW_BYTES * len(piece)))
        draws = zip(piece, words[0::2], words[1::2], strict=True)
        noisy = [number + bisect_right(table, high << 64 | low) - most for number, low, high in draws]
        numbers[first : first + len(piece)] = array(numbers.format, noisy)


@lru_cache(maxsize=4)
def _table(thousandths: int) -> list[int]:
    """Return floor(2^128 P(X <= x)) for x from -R to R - 1, R being the largest number that is drawn.

    A number is -R and one more for each entry that is not above the random bits.
    """
    from decimal import Decimal, localcontext  # only noisy rounds need it

    most = -(-_REACH * thousandths // 1000)
    with localcontext() as context:
        context.prec = _DIGITS
        # exp(-x^2 c), each from the one before: the ratio of neighbours is exp(-(2x + 1) c).
        c = Decimal(500_000) / (thousandths * thousandths)
        ratio, step, weights = (-c).exp(), (-2 * c).exp(), [Decimal(1)]
        for _ in range(most):
            weights.append(weights[-1] * ratio)
            ratio *= step
        cumulative = list(accumulate([*weights[:0:-1], *weights]))
        return [int(value * 2**128 / cumulative[-1]) for value in cumulative[:-1]]
