"""Reading user codes from sums over a cohort: W = sum w_u b b', v = sum w_u b, and the rows R.

Four ideas, strongest first; the last is for sums with noise, which leaves nothing of the others:
- **Subspace.** With fewer devices than bits, every b lies in the range of W, and hardly any other sign vector does. Up
  to 16 dimensions all candidates are enumerated, O(2^r f); beyond, candidates are found as fixed points of x <- sign(P
  x), P projecting onto the range. A found b has weight 1 / (b' W^+ b), an integer of 32 .. 64, which both proves it
  and lets it be taken away from W; the rest is then easier.
- **Lone rows.** A row whose elements all stay within -1 .. 1 mostly comes from one device, and then its nonzero
  elements are bits of b. Rows that agree are joined.
- **Completion.** Bits that lone rows leave open take the signs that make b' W^-1 b least: what is likeliest among
  users whose second moments are W.
- **Spectrum.** The signs of the eigenvectors of W's largest eigenvalues: one device's b b' stands out of noise of
  deviation s while sqrt(f) > s.

Not tried: lattice reduction of the range of W, which may reach up to as many devices as bits whatever the codes; rows
that two or three devices share; and taking the colluders' own uploads out of the sum first.
"""

from __future__ import annotations

import numpy as np

from lightfr.training.constants import LEAST_CATALOGUE_RATINGS
from lightfr_harness.audits.capture import LARGEST_WEIGHT, CohortSum, Floats, Ints, Signs

MOST_ENUMERATED = 16
RANDOM_STARTS = 2_000
SEARCH_STEPS = 40
# Two lone rows are joined when they agree in nearly all of enough shared bits.
FEWEST_SHARED, SHARE_AGREEING = 10, 0.95


def codes_from_products(total: CohortSum, seed: int = 0) -> Signs:
    """Codes proven by their integer weight; none when the cohort has as many devices as bits, or more."""
    products = total.products.astype(np.float64)
    found: list[Floats] = []
    while (candidates := _candidates(products, total, seed)) is not None:
        proven = 0
        for candidate in candidates:
            weight = _weight_within(products, candidate)
            if weight is not None:
                products = products - weight * np.outer(candidate, candidate)
                found.append(candidate)
                proven += 1
        if not proven:
            break
    return _turned_by_sum(found, total)


def _candidates(products: Floats, total: CohortSum, seed: int) -> Floats | None:
    """Sign vectors in the range of W, or None when W is used up or has full rank."""
    values, vectors = np.linalg.eigh(products)
    basis = vectors[:, values > 0.5]
    rank = basis.shape[1]
    if rank in (0, len(products)):
        return None
    return _enumerate(basis) if rank <= MOST_ENUMERATED else _search(basis, total, seed)


def _enumerate(basis: Floats) -> Floats:
    """All sign vectors of a small subspace: r independent coordinates fix the others."""
    rank = basis.shape[1]
    chosen = _independent_rows(basis)
    rest = basis @ np.linalg.inv(basis[chosen])
    patterns = (np.arange(2 ** (rank - 1))[:, None] >> np.arange(rank) & 1) * 2.0 - 1
    vectors = patterns @ rest.T
    signs: Floats = np.sign(vectors[(np.abs(np.abs(vectors) - 1) < 1e-6).all(axis=1)])
    return signs


def _independent_rows(basis: Floats) -> list[int]:
    """Greedy: the row farthest from the span of those chosen before."""
    left, chosen = basis.copy(), []
    for _ in range(basis.shape[1]):
        chosen.append(int((left**2).sum(axis=1).argmax()))
        unit = left[chosen[-1]] / np.linalg.norm(left[chosen[-1]])
        left = left - np.outer(left @ unit, unit)
    return chosen


def _search(basis: Floats, total: CohortSum, seed: int) -> Floats:
    """Fixed points of x <- sign(P x), from the rows of the sum and from random vectors of the subspace."""
    noise = np.random.default_rng([seed, 5]).normal(size=(RANDOM_STARTS, basis.shape[1])) @ basis.T
    rows = total.rows[np.abs(total.rows).sum(axis=1) > 0].astype(np.float64)
    states = np.concatenate([rows, noise])
    for _ in range(SEARCH_STEPS):
        states = np.where((states @ basis) @ basis.T >= 0, 1.0, -1.0)
    inside = ((states @ basis) ** 2).sum(axis=1) > len(basis) - 1e-6
    states = states[inside]
    return np.unique(states * states[:, :1], axis=0) if len(states) else states


def _weight_within(products: Floats, code: Floats) -> float | None:
    """The integer weight with which b b' is a part of W, or None. Inside the range it is 1 / (b' W^+ b)."""
    solution, *_ = np.linalg.lstsq(products, code, rcond=1e-9)
    if np.abs(products @ solution - code).max() > 1e-4:
        return None
    weight = 1 / float(code @ solution)
    nearest = float(round(weight))
    plausible = LEAST_CATALOGUE_RATINGS <= nearest <= LARGEST_WEIGHT
    return nearest if plausible and abs(weight - nearest) < 1e-3 else None


def _turned_by_sum(found: list[Floats], total: CohortSum) -> Signs:
    """W does not know the sign of b; v = sum w b does."""
    codes = np.array(found, np.float64).reshape(-1, len(total.user_sum))
    if not len(codes):
        return codes.astype(np.int8)
    parts, *_ = np.linalg.lstsq(codes.T, total.user_sum.astype(np.float64), rcond=None)
    return (codes * np.where(parts >= 0, 1, -1)[:, None]).astype(np.int8)


def codes_from_spectrum(total: CohortSum) -> Signs:
    """At most one code per device and per bit, from noisy sums; v chooses between b and -b."""
    _, vectors = np.linalg.eigh(total.products.astype(np.float64))
    leading = vectors[:, ::-1].T[: total.n_devices]
    towards = np.where(leading @ total.user_sum >= 0, 1, -1)
    return np.where(leading * towards[:, None] >= 0, 1, -1).astype(np.int8)


def codes_from_lone_rows(total: CohortSum) -> tuple[Signs, list[list[int]]]:
    """Anonymous codes, surest first and at most one per device, and the rows that each was read from."""
    groups = _join(total.rows, _lone_rows(total.rows))
    groups = sorted(groups, key=lambda group: -int(np.count_nonzero(group[0])))[: total.n_devices]
    if not groups:
        return np.zeros((0, total.rows.shape[1]), np.int8), []
    metric = np.linalg.pinv(total.products.astype(np.float64), rcond=1e-9)
    codes = [_complete(np.sign(votes), metric, total.user_sum) for votes, _ in groups]
    return np.array(codes, np.int8), [rows for _, rows in groups]


def _lone_rows(rows: Ints) -> list[int]:
    """Rows that look like one device's, those with most nonzero elements first."""
    nonzero = np.count_nonzero(rows, axis=1)
    lone = (np.abs(rows).max(axis=1) == 1) & (nonzero >= FEWEST_SHARED)
    return sorted(np.flatnonzero(lone).tolist(), key=lambda row: -int(nonzero[row]))


def _join(rows: Ints, lone: list[int]) -> list[tuple[Ints, list[int]]]:
    groups: list[tuple[Ints, list[int]]] = []
    for row in lone:
        home = _best_group(groups, rows[row])
        if home is None:
            groups.append((rows[row].copy(), [row]))
        else:
            groups[home] = (groups[home][0] + rows[row], [*groups[home][1], row])
    return groups


def _best_group(groups: list[tuple[Ints, list[int]]], row: Ints) -> int | None:
    if not groups:
        return None
    votes = np.sign(np.array([votes for votes, _ in groups]))
    shared = np.count_nonzero(votes * row, axis=1)
    agreeing = np.count_nonzero(votes * row > 0, axis=1) / np.maximum(shared, 1)
    score = np.where((shared >= FEWEST_SHARED) & (agreeing >= SHARE_AGREEING), shared, 0)
    return int(score.argmax()) if score.max() else None


def _complete(known: Ints, metric: Floats, user_sum: Ints) -> Signs:
    """Keep the known bits; set the others by coordinate descent on x' W^-1 x, from the mean user's signs."""
    code = np.where(known != 0, known, np.where(user_sum >= 0, 1, -1)).astype(np.float64)
    unknown = np.flatnonzero(known == 0)
    for _ in range(10):
        before = code.copy()
        for k in unknown:
            pull = metric[k] @ code - metric[k, k] * code[k]
            code[k] = code[k] if pull == 0 else -np.sign(pull)
        if (code == before).all():
            break
    return code.astype(np.int8)
