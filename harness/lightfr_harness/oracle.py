"""Slow, plain versions of the kernel's equations, to be read beside the paper and docs/protocol.md.

Codes here are arrays of signs, -1 or +1. Nothing is clever, and nothing calls the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Signs = npt.NDArray[np.int8]
Integers = npt.NDArray[np.int64]


def pack(signs: Signs) -> bytes:
    """Signs to bits: bit k of the code is bit (k mod 8) of byte (k div 8), +1 is 1."""
    return np.packbits(signs > 0, bitorder="little").tobytes()


def unpack(code: bytes) -> Signs:
    """Bits to signs."""
    return np.unpackbits(np.frombuffer(code, np.uint8), bitorder="little").astype(np.int8) * 2 - 1


def distances(items: Signs, query: Signs) -> Integers:
    """Hamming distance of every row to the query."""
    return (items != query).sum(axis=1)


def topk(items: Signs, query: Signs, k: int, excluded: set[int]) -> list[tuple[int, int]]:
    """The k nearest rows as (item_index, distance), ties to the lower index."""
    pairs = sorted((int(d), i) for i, d in enumerate(distances(items, query)) if i not in excluded)
    return [(i, d) for d, i in pairs[:k]]


@dataclass
class FitTerms:
    """What the user fit is given: see lfr_fit_terms in csrc/lfr.h. Weights default to 1."""

    rows: Signs
    targets: npt.NDArray[np.int32]
    row_factor: int
    target_factor: int
    gram: Integers | None = None
    gram_factor: int = 0
    extra: Integers | None = None
    balance: int = 0
    weights: npt.NDArray[np.uint16] | None = None


def bit_gradient(terms: FitTerms, code: Signs, k: int) -> int:
    """g_k as written in lfr.h: the linear term less the pull of all other bits."""
    weights = np.ones(len(terms.rows), np.int64) if terms.weights is None else terms.weights.astype(np.int64)
    rows = terms.rows.astype(np.int64)
    others = code.astype(np.int64).copy()
    others[k] = 0
    residual = terms.target_factor * terms.targets.astype(np.int64) - terms.row_factor * (rows @ others)
    g = int((weights * residual * rows[:, k]).sum()) - terms.balance * int(others.sum())
    if terms.gram is not None:
        g -= terms.gram_factor * int(terms.gram[k] @ others)
    if terms.extra is not None:
        g += int(terms.extra[k])
    return g


def fit_sweeps(terms: FitTerms, start: Signs, max_sweeps: int) -> Signs:
    """Discrete coordinate descent: bits in order, later bits see earlier flips, zero keeps the old bit."""
    code = start.copy()
    for _ in range(max_sweeps):
        before = code.copy()
        for k in range(len(code)):
            g = bit_gradient(terms, code, k)
            if g != 0:
                code[k] = 1 if g > 0 else -1
        if (code == before).all():
            break
    return code


def fit_loss(terms: FitTerms, code: Signs) -> int:
    """b.offdiag(quadratic).b / 2 - b.linear, from the definition."""
    f = len(code)
    weights = np.ones(len(terms.rows), np.int64) if terms.weights is None else terms.weights.astype(np.int64)
    rows, b = terms.rows.astype(np.int64), code.astype(np.int64)
    quadratic = terms.row_factor * (rows.T * weights) @ rows + terms.balance
    if terms.gram is not None:
        quadratic = quadratic + terms.gram_factor * terms.gram
    linear = terms.target_factor * (weights * terms.targets.astype(np.int64)) @ rows
    if terms.extra is not None:
        linear = linear + terms.extra
    quadratic = quadratic * (1 - np.eye(f, dtype=np.int64))
    return int(b @ quadratic @ b) // 2 - int(b @ linear)


def row_gradients(rows: Signs, code: Signs, targets: npt.NDArray[np.int32], scale: int) -> Integers:
    """(t_i - scale s_i) b_k + scale d_ik."""
    wide, b = rows.astype(np.int64), code.astype(np.int64)
    similarity = wide @ b
    return (targets - scale * similarity)[:, None] * b + scale * wide


def ternary(gradients: Integers, full: int, random: npt.NDArray[np.uint16]) -> npt.NDArray[np.int8]:
    """sign(g) where u * full < |g| * 65536, else 0."""
    kept = random.astype(np.int64) * full < np.abs(gradients) * 65536
    return (np.sign(gradients) * kept).astype(np.int8)


def aggregate(memory: Integers, sums: Integers, codes: Signs, shift: int) -> tuple[Integers, Signs]:
    """The server rule, with floor division in the place of the arithmetic shift."""
    after = np.clip(memory - memory // 2**shift + sums, -(2**31), 2**31 - 1)
    return after, np.where(after == 0, codes, np.sign(after)).astype(np.int8)
