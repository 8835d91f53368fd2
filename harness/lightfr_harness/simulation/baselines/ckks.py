"""FedMF with a modern scheme: what item factors cost under CKKS (Cheon, Kim, Kim, Song, 2017), for comparison.

One CKKS ciphertext holds thousands of numbers. tenseal does the work; it is optional, and nothing else needs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lightfr_harness.errors import import_package

DEGREE = 8192
MODULUS_BITS = (60, 40, 60)
SCALE_BITS = 40
NUMBERS = DEGREE // 2  # that one ciphertext holds
STREAM = 71


@dataclass(frozen=True)
class CkksCost:
    """Of one ciphertext, which holds `numbers` numbers. Seconds are CPU time."""

    numbers: int
    bytes_a_number: float
    encrypt_seconds: float
    decrypt_seconds: float
    largest_error: float


def ckks_cost(seed: int, clock: Callable[[], float] = time.process_time) -> CkksCost:
    """Encrypt, encode, decode and decrypt one ciphertext full of item factors."""
    tenseal = import_package("tenseal", "tenseal", "Measuring CKKS")
    context = tenseal.context(
        tenseal.SCHEME_TYPE.CKKS, poly_modulus_degree=DEGREE, coeff_mod_bit_sizes=list(MODULUS_BITS)
    )
    context.global_scale = 2.0**SCALE_BITS
    factors = np.random.default_rng([seed, STREAM]).normal(0, 0.1, NUMBERS)
    start = clock()
    ciphertext = tenseal.ckks_vector(context, factors.tolist())
    encrypted = clock()
    message = ciphertext.serialize()
    received = tenseal.ckks_vector_from(context, message)
    decoded = clock()
    numbers = np.array(received.decrypt())
    return CkksCost(
        numbers=NUMBERS,
        bytes_a_number=len(message) / NUMBERS,
        encrypt_seconds=encrypted - start,
        decrypt_seconds=clock() - decoded,
        largest_error=float(np.abs(numbers - factors).max()),
    )
