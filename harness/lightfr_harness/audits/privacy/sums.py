"""Reading user codes from the rows R of sums over a cohort, without knowing whose they are.

A device adds to each row that it uploads a part along its code b. Two ideas, the first for sums without noise:
- **Lone rows.** A row whose elements all stay within -1 .. 1 mostly comes from one device, and then its nonzero
  elements are bits of b. Rows that agree are joined. Bits that they leave open take the signs that make b' M^-1 b
  least, M being the second moments of all rows: what is likeliest among users with such moments.
- **Separation.** Quiet rows, of one round or of several, are those that few devices upload. Each is given to the claim
  that it points along most, and each claim becomes the signs of its rows' sum, until nothing moves: k-means with as
  many claims as devices, O(rows x claims x f) a step. Noise blurs the rows, and several rounds sharpen them again.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lightfr_harness.audits.capture import CohortSum, Floats, Ints, Signs

# Two lone rows are joined when they agree in nearly all of enough shared bits.
FEWEST_SHARED, SHARE_AGREEING = 10, 0.95
# Separation: the quietest share of the rows, steps at most, and the share of equal bits from which claims are one.
QUIET_SHARE = 0.3
STEPS = 30
SAME_CLAIM = 0.94


def codes_from_lone_rows(total: CohortSum) -> tuple[Signs, list[list[int]]]:
    """Anonymous codes, surest first and at most one per device, and the rows that each was read from."""
    groups = _join(total.rows.astype(np.int64), _lone_rows(total.rows))
    groups = sorted(groups, key=lambda group: -int(np.count_nonzero(group[0])))[: total.n_devices]
    if not groups:
        return np.zeros((0, total.rows.shape[1]), np.int8), []
    rows = total.rows.astype(np.float64)
    metric = np.asarray(np.linalg.pinv(rows.T @ rows, rcond=1e-9), np.float64)
    codes = [_complete(np.sign(votes), metric, total.user_sum) for votes, _ in groups]
    return np.array(codes, np.int8), [rows for _, rows in groups]


def _lone_rows(rows: npt.NDArray[np.int32]) -> list[int]:
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
    """Keep the known bits; set the others by coordinate descent on x' M^-1 x, from the mean user's signs."""
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


def codes_by_separation(totals: list[CohortSum]) -> Signs:
    """Anonymous codes from the quiet rows of several sums, those with most behind them first, one per device."""
    rows = np.concatenate([total.rows for total in totals]).astype(np.float32)
    energy = (rows**2).sum(axis=1)
    rows, energy = rows[energy > 0], energy[energy > 0]
    if not len(rows):
        return np.zeros((0, rows.shape[1]), np.int8)
    rows = rows[energy <= np.quantile(energy, QUIET_SHARE)]
    mean = np.where(sum(total.user_sum for total in totals) >= 0, 1, -1).astype(np.float32)
    fullest = np.argsort(-np.count_nonzero(rows, axis=1), kind="stable")
    claims = np.where(rows == 0, mean, np.sign(rows))[fullest[: 2 * totals[-1].n_devices]]
    for _ in range(STEPS):
        behind = np.zeros_like(claims)
        np.add.at(behind, (rows @ claims.T).argmax(axis=1), rows)
        moved = np.where(behind == 0, mean, np.sign(behind))
        if (moved == claims).all():
            break
        claims = moved
    return _different(claims[np.argsort(-np.abs(behind).sum(axis=1), kind="stable")], totals[-1].n_devices)


def _different(claims: npt.NDArray[np.float32], most: int) -> Signs:
    """The first claims that are not nearly equal to an earlier one."""
    alike = (2 * SAME_CLAIM - 1) * claims.shape[1]
    kept, count = np.zeros((most, claims.shape[1]), np.float32), 0
    for claim in claims:
        if count < most and (kept[:count] @ claim).max(initial=-np.inf) < alike:
            kept[count] = claim
            count += 1
    return kept[:count].astype(np.int8)
