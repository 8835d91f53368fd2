"""Secrets from revealed shares, some of which may be false: Reed-Solomon codes over the field of the shares.

The shares of a secret are values of one polynomial of degree threshold - 1. Of n values up to (n - threshold) div 2 may
be wrong: the polynomial is still found (Gao 2003), and so is who revealed something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from secrets import randbelow

from lightfr.errors import InvalidInputError
from lightfr.secagg import shamir

Polynomial = list[int]  # lowest power first, without leading zeros

_PRIME = shamir.PRIME


def secret_of(shares: Mapping[int, bytes], threshold: int) -> tuple[bytes, frozenset[int]]:
    """The secret of at least `threshold` shares (x to share), and the x of the shares that are false.

    Raises InvalidInputError when too many are false to tell which.
    """
    values = {x: int.from_bytes(share, "little") for x, share in shares.items()}
    # Drawn when the shares are there, so that no false one can have been made for it.
    secret, agree = _joined(values, threshold, z=randbelow(_PRIME))
    if agree and secret >> (8 * shamir.SECRET_BYTES) == 0:
        return secret.to_bytes(shamir.SECRET_BYTES, "little"), frozenset()
    return _corrected(values, threshold)


def _joined(values: Mapping[int, int], threshold: int, z: int) -> tuple[int, bool]:
    """The value at 0 of the polynomial through all n points (x to y), and whether its degree is below the threshold.

    It is exactly when the sum of y r(x) / prod(x - other x) is zero for every polynomial r of a degree below
    n - threshold. r = (x - z)^(n - threshold - 1) stands for them all: where one of the sums is not zero, this one is
    for fewer than n of the numbers z.
    """
    divisors = [x * prod(x - other for other in values if other != x) for x in values]
    parts = [y * inverse % _PRIME for y, inverse in zip(values.values(), shamir.inverses(divisors), strict=True)]
    at_zero = prod(values) * sum(parts) * (-1) ** (len(values) - 1) % _PRIME
    degree = len(values) - threshold - 1
    if degree < 0:
        return at_zero, True
    checked = sum(x * part * pow(x - z, degree, _PRIME) for x, part in zip(values, parts, strict=True))
    return at_zero, checked % _PRIME == 0


def _corrected(values: Mapping[int, int], threshold: int) -> tuple[bytes, frozenset[int]]:
    """Gao's algorithm: the extended Euclidean algorithm on the product of (x - x_i) and the interpolation."""
    product, through = [1], _interpolated(values)
    for x in values:
        product = _times(product, [-x % _PRIME, 1])
    found, locator = _half_euclid(product, through, (len(values) + threshold) // 2)
    quotient, rest = _divided(found, locator)
    wrong = frozenset(x for x, value in values.items() if _value_at(quotient, x) != value)
    secret = quotient[0] if quotient else 0
    if rest or len(quotient) > threshold or 2 * len(wrong) > len(values) - threshold or secret >> 256:
        raise InvalidInputError(f"too many of {len(values)} shares are false to put the secret together")
    return secret.to_bytes(shamir.SECRET_BYTES, "little"), wrong


def _interpolated(values: Mapping[int, int]) -> Polynomial:
    """The polynomial through all points, by Newton's divided differences."""
    result, basis = [0], [1]
    for x, value in values.items():
        step = (value - _value_at(result, x)) * pow(_value_at(basis, x), -1, _PRIME) % _PRIME
        result = _plus(result, [step * c % _PRIME for c in basis])
        basis = _times(basis, [-x % _PRIME, 1])
    return result


def _half_euclid(a: Polynomial, b: Polynomial, stop_below: int) -> tuple[Polynomial, Polynomial]:
    """(g, v) with g = u a + v b, as soon as the degree of g is below `stop_below`."""
    v_a: Polynomial = []
    v_b: Polynomial = [1]
    while len(b) - 1 >= stop_below:
        quotient, rest = _divided(a, b)
        a, b = b, rest
        v_a, v_b = v_b, _plus(v_a, [-c % _PRIME for c in _times(quotient, v_b)])
    return b, v_b


def _value_at(polynomial: Polynomial, x: int) -> int:
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * x + coefficient) % _PRIME
    return value


def _plus(a: Polynomial, b: Polynomial) -> Polynomial:
    shorter, longer = sorted((a, b), key=len)
    return _trimmed([(c + (shorter[i] if i < len(shorter) else 0)) % _PRIME for i, c in enumerate(longer)])


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    result = [0] * (len(a) + len(b) - 1) if a and b else []
    for i, c in enumerate(a):
        for j, d in enumerate(b):
            result[i + j] = (result[i + j] + c * d) % _PRIME
    return _trimmed(result)


def _divided(a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Quotient and rest."""
    rest, quotient, inverse = a.copy(), [0] * max(len(a) - len(b) + 1, 0), pow(b[-1], -1, _PRIME)
    for i in reversed(range(len(quotient))):
        quotient[i] = rest[i + len(b) - 1] * inverse % _PRIME
        for j, c in enumerate(b):
            rest[i + j] = (rest[i + j] - quotient[i] * c) % _PRIME
    return _trimmed(quotient), _trimmed(rest)


def _trimmed(polynomial: Polynomial) -> Polynomial:
    while polynomial and polynomial[-1] == 0:
        polynomial.pop()
    return polynomial
