"""Claim: two sums whose cohorts differ by one device do not tell what that device added.

The attacker chooses the cohorts and asks twice. **Rounds**: v differs by w b and by noise; R by the device's rows, by
everybody's rounding drawn anew and by noise. Two claims of the code: the signs of the difference of v, and the code
that the rows' difference points along (they are c_i b with c_i mostly positive: alternating, weighted by each row's own
noise, O(rows f) a step). The rows are named by how they differ along the better claim, and by popularity; trials with
devices of its own teach the attacker what both are worth (a logistic fit). Tried on the same matrix, and on the next
one, where everybody else has moved a little. **Gate refreshes**: the counts differ
by one for every item that the device rated, and by noise; again a likelihood ratio on top of popularity.

Guessing: the signs of the sum and of the colluders' mean, two claims as well; for rows and items the most popular ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lightfr_harness.audits.capture import Capture, CohortSum, Floats, Ints, Signs
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy.scoring import (
    READ,
    best_agreement,
    judged,
    logistic_fit,
    named,
    share_by_user,
    share_of_trials,
)
from lightfr_harness.audits.privacy.user_code_recovery import guessed_codes

ITEMS_CLAIM = "rated items named from two gate refreshes one device apart"
STEPS = 10
# One trial in so many is about a device of the attacker's own.
OWN = 4


@dataclass(frozen=True)
class DifferenceTrial:
    """Two sums that differ by one device, and the truth about it."""

    without: CohortSum
    with_one: CohortSum
    code: Signs
    rows: Ints


@dataclass(frozen=True)
class GateTrial:
    """Counts of two gate refreshes that differ by one device, and the truth about it."""

    without: Ints
    with_one: Ints
    items: Ints


def codes_of_difference(trial: DifferenceTrial) -> Signs:
    """Two claims: by v, and by the rows."""
    rows = (trial.with_one.rows - trial.without.rows).astype(np.float64)
    rows = rows / ((rows**2).mean(axis=1, keepdims=True) + 0.05)
    by_sum = np.where(trial.with_one.user_sum >= trial.without.user_sum, 1.0, -1.0)
    by_rows = np.where(rows.sum(axis=0) >= 0, 1.0, -1.0)
    for _ in range(STEPS):
        by_rows = np.where(np.maximum(rows @ by_rows, 0) @ rows >= 0, 1.0, -1.0)
    return np.array([by_sum, by_rows], np.int8)


def row_features(trial: DifferenceTrial, usual: Floats) -> Floats:
    """Of every row: one, how usual it is, and how it differs along the better claim, in its own variances."""
    claimed = codes_of_difference(trial)
    better = claimed[(claimed.astype(np.int64) @ trial.code).argmax()]
    rows = (trial.with_one.rows - trial.without.rows).astype(np.float64)
    return np.stack([np.ones(len(rows)), _log_odds(usual), rows @ better / ((rows**2).mean(axis=1) + 0.05)], axis=1)


def item_odds(trial: GateTrial, usual: Floats) -> Floats:
    """Log-odds of every item; how much the counts vary is read off their difference, or little where they are equal."""
    difference = (trial.with_one - trial.without).astype(np.float64)
    return _log_odds(usual) + (difference - 0.5) / max(float((difference**2).mean()), 1e-3)


def _log_odds(share: Floats) -> Floats:
    clipped = np.clip(share, 1e-4, 1 - 1e-4)
    return np.asarray(np.log(clipped / (1 - clipped)))


def audit_rounds(trials: list[DifferenceTrial], capture: Capture, setting: str, *, private: bool) -> list[Finding]:
    """Codes and rows."""
    usual = np.where(capture.rounds[-1].open_rows, capture.item_counts / capture.n_users, 0.0)
    hits, guesses, sizes = [], [], []
    right: list[int] = []
    popular: list[int] = []
    own, asked = trials[: len(trials) // OWN], trials[len(trials) // OWN :]
    features = np.concatenate([row_features(trial, usual) for trial in own])
    labels = np.concatenate([np.isin(np.arange(len(usual)), trial.rows) for trial in own])
    weights = logistic_fit(features, labels.astype(np.float64))
    for trial in asked:
        mean = np.where(trial.without.user_sum >= 0, 1, -1).astype(np.int8)
        hits.append(best_agreement(codes_of_difference(trial), trial.code[None])[0] >= READ)
        guesses.append(best_agreement(np.array([mean, guessed_codes(capture)[-1]]), trial.code[None])[0] >= READ)
        for column, odds in ((right, row_features(trial, usual) @ weights), (popular, usual)):
            column.append(int(np.isin(trial.rows, named(odds, len(trial.rows))).sum()))
        sizes.append(len(trial.rows))
    codes, rows = share_of_trials(np.array(hits), np.array(guesses)), share_by_user(right, popular, sizes)
    claims = (f"{what} from two sums one device apart, {setting}" for what in ("user codes", "uploaded rows"))
    return [
        judged(claim, what, unit, capture.mode, private=private)
        for claim, what, unit in zip(claims, (codes, rows), ("share of codes", "share of rows"), strict=True)
    ]


def audit_gate(trials: list[GateTrial], capture: Capture, *, private: bool) -> Finding:
    """Items."""
    usual = capture.item_counts / capture.n_users
    right: list[int] = []
    popular: list[int] = []
    sizes = []
    for trial in trials:
        for column, odds in ((right, item_odds(trial, usual)), (popular, usual)):
            column.append(int(np.isin(trial.items, named(odds, len(trial.items))).sum()))
        sizes.append(len(trial.items))
    what = share_by_user(right, popular, sizes)
    return judged(ITEMS_CLAIM, what, "share of items", capture.mode, private=private)
