"""Claim: a sum over a cohort hides the devices in it. How many devices does that take?

One sum at a time, over cohorts of growing size. Codes: `sums`, exact below as many devices as bits. Rows: with the
claimed codes, every row of the sum is a regression on what each claimed device would have added, with ridge for
rounding and for noise: O(claims f^2) a row. A device's code counts as read at 90 % of its bits; of the rows it uploaded
the attacker names as many as there are, for the claim that suits the device best. Guessing: the colluders' codes; the
most popular open rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lightfr.training.constants import rated_target
from lightfr_harness.audits.capture import Floats, Ints, RoundView, Signs
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy.scoring import READ, best_agreement, judged, share_by_user, share_of_trials
from lightfr_harness.audits.privacy.user_code_recovery import as_many_guesses, codes_from_sum

CODES_CLAIM = "user codes read from one sum"
ROWS_CLAIM = "uploaded rows named from one sum"
# The variance of rounding a handful of rows to ternary ones, against a prior of one in ten for each claimed device.
RIDGE = 5.0
PRIOR = 0.1


@dataclass(frozen=True)
class CohortTrial:
    """One sum to attack, and apart from the view what it is scored by."""

    view: RoundView
    guesses: Signs
    bystanders: Signs
    codes: dict[int, Signs]
    rows: dict[int, Ints]


def row_scores(view: RoundView, codes: Signs) -> Floats:
    """For every claimed code and row, how much of what that device would add is in the sum. Claims x rows."""
    f = view.model.code_bits
    claimed, items = codes.astype(np.float64), view.before.astype(np.float64)
    scores = np.zeros((len(codes), len(items)))
    noise = view.total.n_devices * (view.model.noise.rows_thousandths / 1000) ** 2
    ridge = RIDGE / 4 + noise / PRIOR
    for item in np.flatnonzero(np.abs(view.total.rows).sum(axis=1)):
        parts = ((rated_target(f) - claimed @ items[item])[:, None] * claimed + items[item]) / f
        kernel = parts.T @ parts + ridge * np.eye(f)
        scores[:, item] = parts @ np.linalg.solve(kernel, view.total.rows[item].astype(np.float64))
    return scores


def audit(trials: list[CohortTrial], item_counts: Ints, mode: str, *, private: bool) -> list[Finding]:
    """Codes and rows of all trials of one cohort size."""
    hits, guessed, named, popular, sizes = [], [], [], [], []
    for trial in trials:
        true = np.array(list(trial.codes.values()), np.int8)
        claimed = codes_from_sum(trial.view.total)
        hits.append(best_agreement(claimed, true) >= READ)
        guessed.append(best_agreement(as_many_guesses(claimed, trial.guesses, trial.bystanders), true) >= READ)
        scores = row_scores(trial.view, claimed)
        best = (true.astype(np.int64) @ claimed.astype(np.int64).T).argmax(axis=1) if len(claimed) else None
        ranked = np.where(trial.view.open_rows, item_counts, -1).astype(np.float64)
        for place, rows in enumerate(trial.rows.values()):
            mine = ranked if best is None else scores[best[place]]
            named.append(_right(mine, rows))
            popular.append(_right(ranked, rows))
            sizes.append(len(rows))
    codes = share_of_trials(np.concatenate(hits), np.concatenate(guessed))
    rows_found = share_by_user(named, popular, sizes)
    return [
        judged(CODES_CLAIM, codes, "share of codes", mode, private=private),
        judged(ROWS_CLAIM, rows_found, "share of rows", mode, private=private),
    ]


def _right(scores: Floats, rows: Ints) -> int:
    return int(np.isin(rows, np.argsort(-scores, kind="stable")[: len(rows)]).sum())
