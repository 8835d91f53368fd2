"""Paillier's encryption (1999), in which ciphertexts can be added: enough of it to run FedMF, not to protect anybody.

The generator is g = n + 1, so a number m becomes (1 + m n) r^n modulo n^2. The arithmetic takes time that depends on
secrets, as Python's integers do. gmpy2 makes it several times faster where it is installed, with the same results.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd

from lightfr.errors import InvalidInputError, OutOfRangeError

try:
    from gmpy2 import powmod

    ARITHMETIC = "gmpy2"
except ImportError:
    powmod, ARITHMETIC = pow, "Python"

BITS = 1024
ROUNDS = 40  # of Miller and Rabin: a composite passes with a chance of 4^-40 at most
# A whole number from 0 to below the argument, and one of so many bits.
Below = Callable[[int], int]
Bits = Callable[[int], int]


class NumberTooLargeError(InvalidInputError):
    """A number, or a sum of numbers, that the key has no room for. The number itself is left out: it is private."""

    def __init__(self, key_bits: int) -> None:
        self.key_bits = key_bits
        super().__init__(
            f"A number is beyond a third of a key of {key_bits} bits. Take a longer key or smaller numbers."
        )


class NotACiphertextError(InvalidInputError):
    """A number that no encryption with this key can give."""

    def __init__(self) -> None:
        super().__init__("This is no ciphertext of this key.")


def power(base: int, exponent: int, modulus: int) -> int:
    return int(powmod(base, exponent, modulus))


@dataclass(frozen=True)
class PublicKey:
    """Encrypts and adds. Numbers reach from -n/3 to n/3; what lies between wraps around and is refused."""

    n: int

    @cached_property
    def square(self) -> int:
        return self.n * self.n

    @property
    def largest(self) -> int:
        return self.n // 3

    @property
    def ciphertext_bytes(self) -> int:
        return (self.square.bit_length() + 7) // 8

    def encrypt(self, number: int, below: Below = secrets.randbelow) -> int:
        if abs(number) > self.largest:
            raise NumberTooLargeError(self.n.bit_length())
        r = 0
        while gcd(r, self.n) != 1:
            r = 1 + below(self.n - 1)
        return (1 + number * self.n) * power(r, self.n, self.square) % self.square

    def add(self, left: int, right: int) -> int:
        return left * right % self.square

    def require_ciphertext(self, ciphertext: int) -> None:
        if not 0 < ciphertext < self.square or gcd(ciphertext, self.n) != 1:
            raise NotACiphertextError


@dataclass(frozen=True)
class PrivateKey:
    """Two primes; decrypts modulo each of them and joins the halves, which is faster than modulo n^2."""

    p: int = field(repr=False)
    q: int = field(repr=False)

    @cached_property
    def public(self) -> PublicKey:
        return PublicKey(self.p * self.q)

    @cached_property
    def _inverses(self) -> tuple[int, int, int]:
        """What undoes g modulo p and modulo q, and the inverse of q modulo p."""
        of_p, of_q = (pow(_log(1 + self.public.n, prime), -1, prime) for prime in (self.p, self.q))
        return of_p, of_q, pow(self.q, -1, self.p)

    def decrypt(self, ciphertext: int) -> int:
        self.public.require_ciphertext(ciphertext)
        p_inverse, q_inverse, joint = self._inverses
        in_p = _log(ciphertext, self.p) * p_inverse % self.p
        in_q = _log(ciphertext, self.q) * q_inverse % self.q
        number = in_q + (in_p - in_q) * joint % self.p * self.q
        n, largest = self.public.n, self.public.largest
        if largest < number < n - largest:
            raise NumberTooLargeError(n.bit_length())
        return number if number <= largest else number - n


def _log(ciphertext: int, prime: int) -> int:
    """L(c^(prime - 1) modulo prime^2), with L(x) = (x - 1) / prime."""
    return (power(ciphertext, prime - 1, prime * prime) - 1) // prime


def generate(bits: int = BITS, draw: Bits = secrets.randbits) -> PrivateKey:
    """A key whose n has exactly so many bits: an even number of at least 16."""
    if bits < 16 or bits % 2:
        raise OutOfRangeError("the length of a key (an even number)", bits, 16, float("inf"))
    p = q = _prime(bits // 2, draw)
    while q == p:
        q = _prime(bits // 2, draw)
    return PrivateKey(p, q)


def _prime(bits: int, draw: Bits) -> int:
    while True:
        # The two highest bits are set, so that the product of two primes has the full length.
        candidate = draw(bits) | 3 << bits - 2 | 1
        if is_prime(candidate, draw):
            return candidate


def is_prime(candidate: int, draw: Bits) -> bool:
    """By the test of Miller and Rabin; `candidate` is odd and above 3."""
    odd, twos = candidate - 1, 0
    while not odd % 2:
        odd, twos = odd // 2, twos + 1
    for _ in range(ROUNDS):
        x = power(2 + draw(candidate.bit_length()) % (candidate - 3), odd, candidate)
        squares = (power(x, 1 << step, candidate) for step in range(twos))
        if x != 1 and candidate - 1 not in squares:
            return False
    return True
