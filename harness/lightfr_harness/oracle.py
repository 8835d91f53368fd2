"""Slow, plain versions of the kernel's equations, to be read beside docs/protocol.md; then the paper's as printed.

Codes of the first part are arrays of signs, -1 or +1. The second part, from `sign` on, is in exact fractions, one
function for each equation of the paper. Nothing is clever, and nothing calls the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

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
    found: Integers = (items != query).sum(axis=1)
    return found


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


# The paper's equations. Key: b user code and d item codes (signs), r ratings in [0, 1], f code length, lam the balance
# weight lambda.

Code = list[int]


def sign(value: Fraction, old: int) -> int:
    """Take the sign; zero keeps the old bit."""
    return old if value == 0 else (1 if value > 0 else -1)


def rest(a: Code, b: Code, k: int) -> int:
    """a_rest . b_rest: the inner product without bit k."""
    return sum(x * y for j, (x, y) in enumerate(zip(a, b, strict=True)) if j != k)


def user_bit(b: Code, rated: list[tuple[Code, Fraction]], lam: Fraction, k: int) -> Fraction:
    """b*_k = sum_i (1/f)(r_i - 1/2 - (1/2f) d_i,rest . b_rest) d_ik - 2 lambda sum_{k' != k} b_k'."""
    f = len(b)
    data = sum(
        (Fraction(1, f) * (r - Fraction(1, 2) - Fraction(rest(d, b, k), 2 * f)) * d[k] for d, r in rated), Fraction(0)
    )
    return data - 2 * lam * sum(x for j, x in enumerate(b) if j != k)


def user_update(b: Code, rated: list[tuple[Code, Fraction]], lam: Fraction, max_sweeps: int) -> Code:
    """Discrete coordinate descent: bits in turn, later ones see earlier flips, until nothing changes."""
    b = list(b)
    for _ in range(max_sweeps):
        before = list(b)
        for k in range(len(b)):
            b[k] = sign(user_bit(b, rated, lam, k), b[k])
        if b == before:
            break
    return b


def item_gradient(b: Code, d: Code, r: Fraction) -> list[Fraction]:
    """delta_ik = (r_i - 1/2 - (1/2f) b_rest . d_i,rest) b_k."""
    f = len(b)
    return [(r - Fraction(1, 2) - Fraction(rest(b, d, k), 2 * f)) * b[k] for k in range(f)]


def aggregate_gradients(d: Code, gradients: list[list[Fraction]], lam: Fraction) -> Code:
    """Agg_grad for one row: sign((1/f) sum_u delta^u - 2 lambda D'), D' being the sum of the row's other bits."""
    f = len(d)
    return [
        sign(Fraction(1, f) * sum((g[k] for g in gradients), Fraction(0)) - 2 * lam * (sum(d) - d[k]), d[k])
        for k in range(f)
    ]


def aggregate_rows(d: Code, rows: list[Code]) -> Code:
    """Agg_para for one row: sign(sum_u d^u)."""
    return [sign(Fraction(sum(row[k] for row in rows)), d[k]) for k in range(len(d))]
