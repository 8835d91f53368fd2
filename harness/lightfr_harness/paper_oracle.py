"""The paper's printed equations, in exact fractions, one function each: to be read beside the paper, never fast.

Key: b user code and d item codes (signs), r ratings in [0, 1], f code length, lam the balance weight lambda.
"""

from __future__ import annotations

from fractions import Fraction

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
