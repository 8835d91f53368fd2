"""Claim: a sum over a cohort hides the devices in it. How many devices does that take?

One sum at a time, over cohorts of growing size. Codes: `sums`. Rows: with the claimed codes, every row of the sum is a
regression on what each claimed device would have added, with ridge for rounding and for noise: O(claims f^2) a row. A
device's code counts as read at 90 % of its bits. Of the rows that it uploaded the attacker names as many as there are:
by the claim that reads its code, and where none does, the most popular ones. Guessing: the same claims, for codes and
for rows, tried on devices outside the cohort.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lightfr.secagg.noise import row_variance, ternary_threshold
from lightfr.training.constants import rated_target
from lightfr_harness.audits.capture import Capture, Floats, Ints, RoundView, Signs
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy.scoring import (
    READ,
    Hits,
    best_agreement,
    judged,
    named,
    share_by_user,
    share_of_trials,
)
from lightfr_harness.audits.privacy.user_code_recovery import codes_from_sum

CODES_CLAIM = "user codes read from one sum"
ROWS_CLAIM = "uploaded rows named from one sum"
# The variance of rounding a handful of rows to ternary ones, against a prior of one in ten for each claimed device.
RIDGE = 5.0
PRIOR = 0.1


@dataclass(frozen=True, repr=False)
class Behind:
    """Devices: their codes, and the rows that they upload."""

    codes: Signs
    rows: list[Ints]


@dataclass(frozen=True)
class CohortTrial:
    """One sum to attack, and apart from the view what it is scored by."""

    view: RoundView
    members: Behind
    bystanders: Behind


def row_scores(view: RoundView, codes: Signs, usual: Floats) -> Floats:
    """For every claimed code and row, how likely that device added it; `usual` is how many do. Claims x rows."""
    f, n = view.model.code_bits, view.total.n_devices
    claimed, items = codes.astype(np.float64), view.before.astype(np.float64)
    scores = np.broadcast_to(usual, (len(codes), len(items))).copy()
    ternary = 2 * ternary_threshold(n, row_variance(view.model.code_bits)) / 65536
    noise = n * ((view.model.noise.rows_thousandths / 1000) ** 2 if view.model.HasField("noise") else ternary)
    ridge = RIDGE / 4 + noise / PRIOR
    for item in np.flatnonzero(np.abs(view.total.rows).sum(axis=1)):
        parts = ((rated_target(f) - claimed @ items[item])[:, None] * claimed + items[item]) / f
        kernel = parts.T @ parts + ridge * np.eye(f)
        unusual = view.total.rows[item] - usual[item] * parts.sum(axis=0)
        scores[:, item] += parts @ np.linalg.solve(kernel, unusual)
    return scores


def audit(trials: list[CohortTrial], capture: Capture, mode: str, *, private: bool) -> list[Finding]:
    """Codes and rows of all trials of one cohort size."""
    usual = capture.item_counts / capture.n_users
    read: dict[str, list[Hits]] = {"members": [], "bystanders": []}
    right: dict[str, list[tuple[int, int]]] = {"members": [], "bystanders": []}
    for trial in trials:
        claimed = codes_from_sum(trial.view.total)
        scores = row_scores(trial.view, claimed, usual)
        for side, behind in (("members", trial.members), ("bystanders", trial.bystanders)):
            read[side].append(best_agreement(claimed, behind.codes) >= READ)
            right[side] += _rows_named(behind, claimed, scores, usual)
    codes = share_of_trials(np.concatenate(read["members"]), np.concatenate(read["bystanders"]))
    hits, sizes = zip(*right["members"], strict=True)
    lucky, of = zip(*right["bystanders"], strict=True)
    rows = replace(share_by_user(hits, hits, sizes), predicted=sum(lucky) / max(sum(of), 1))
    return [
        judged(CODES_CLAIM, codes, "share of codes", mode, private=private),
        judged(ROWS_CLAIM, rows, "share of rows", mode, private=private),
    ]


def _rows_named(behind: Behind, claimed: Signs, scores: Floats, usual: Floats) -> list[tuple[int, int]]:
    """For each device how many of its rows are named, and how many it has."""
    read, counts = best_agreement(claimed, behind.codes) >= READ, []
    for is_read, code, rows in zip(read, behind.codes, behind.rows, strict=True):
        mine = scores[(claimed.astype(np.int64) @ code).argmax()] if is_read else usual
        counts.append((int(np.isin(rows, named(mine, len(rows))).sum()), len(rows)))
    return counts
