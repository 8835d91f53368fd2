"""Shamir's secret sharing over GF(2^256 + 297): any `threshold` shares give the secret, fewer say nothing about it.

A secret is 32 bytes read as a little-endian number; a share is the value of the polynomial at the holder's x, 33 bytes,
little-endian.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from lightfr.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# The smallest prime above 2^256, so that every 32 bytes are a secret.
PRIME = 2**256 + 297
SECRET_BYTES = 32
SHARE_BYTES = 33
_PRIME_BITS = 257


def split(secret: bytes, holders: Sequence[int], threshold: int, random: Callable[[int], bytes]) -> list[bytes]:
    """Return one share for each holder's x (distinct, from 1 on), in that order."""
    coefficients = [int.from_bytes(secret, "little"), *(_random_element(random) for _ in range(threshold - 1))]
    coefficients.reverse()
    return [_value_at(coefficients, x).to_bytes(SHARE_BYTES, "little") for x in holders]


def join(shares: Mapping[int, bytes]) -> bytes:
    """Return the secret of the shares, x to share, which must be as many as the threshold or more.

    Raises InvalidInputError when they are no shares of one secret, as far as that can be seen.
    """
    # Lagrange's formula at 0. The numbers of holders are small, so their products need no reduction on the way.
    divisors = [x * prod(other - x for other in shares if other != x) for x in shares]
    parts = map(int.__mul__, inverses(divisors), (int.from_bytes(share, "little") for share in shares.values()))
    total = prod(shares) * sum(parts)
    secret = total % PRIME
    if secret >> (8 * SECRET_BYTES):
        raise InvalidInputError(f"{len(shares)} shares do not belong to one secret")
    return secret.to_bytes(SECRET_BYTES, "little")


def inverses(numbers: Sequence[int]) -> list[int]:
    """Return the inverses of many numbers at the price of one inversion: Montgomery's trick."""
    products = [1]
    for number in numbers:
        products.append(products[-1] * number % PRIME)
    inverses, rest = [], pow(products.pop(), -1, PRIME)
    for number, product in zip(reversed(numbers), reversed(products), strict=True):
        inverses.append(rest * product % PRIME)
        rest = rest * number % PRIME
    return inverses[::-1]


def is_share(share: bytes) -> bool:
    """Tell whether these bytes are a number of the field."""
    return len(share) == SHARE_BYTES and int.from_bytes(share, "little") < PRIME


def _random_element(random: Callable[[int], bytes]) -> int:
    """Draw 33 bytes, keep 257 bits, and draw again unless below the prime, so that all elements are as likely."""
    while True:
        element = int.from_bytes(random(SHARE_BYTES), "little") & ((1 << _PRIME_BITS) - 1)
        if element < PRIME:
            return element


def _value_at(coefficients: Sequence[int], x: int) -> int:
    """Horner's rule; the highest coefficient comes first. One reduction is enough, for x is small."""
    value = 0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value % PRIME
