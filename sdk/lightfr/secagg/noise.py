"""Discrete Gaussian noise: integers x with probability proportional to exp(-x^2 / (2 sigma^2)).

The distribution is that of Canonne, Kamath and Steinke ("The Discrete Gaussian for Differential Privacy", 2020). It is
drawn by inversion of its cumulative table (as in Peikert, "An Efficient and Parallel Gaussian Sampler for Lattices",
2010): 128 random bits a number are compared with a table of 128-bit integers. What is drawn is within 2^-100 of it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from lightfr.errors import OutOfRangeError
from lightfr.training.model import LEAST_NOISE, MOST_NOISE

if TYPE_CHECKING:
    from collections.abc import Callable

# Numbers end at so many standard deviations: less than 2^-102 lies beyond.
_REACH = 12
# Digits of the table's calculation; 2^128 has 39, and each step of it loses less than one unit in the last.
_DIGITS = 80
_DRAW_BYTES = 16
# Numbers drawn at a time, which keeps their random bits small in memory.
_AT_A_TIME = 4096


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
