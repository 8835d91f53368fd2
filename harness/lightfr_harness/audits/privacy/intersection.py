"""Claim: sums over several cohorts do not single a device out.

Two sums whose cohorts differ by one device differ by that device: v by w b exactly, R by its rows and by everybody's
rounding drawn anew. The attack takes the signs of the difference of v, and for the rows the change along that code:
O(f) and O(rows f). Tried on the same matrix (a round run twice), on the next matrix (everybody else has moved a
little), and on the campaign as it is, where cohorts are random: there each device's code is the mean of v over rounds
with it less that without it. What prevents the first two: a device answers for a matrix once, cohorts are drawn at
random and are large, and a campaign has few rounds. Guessing: the signs of the sum, which is the mean user; for rows
the most popular ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lightfr_harness.audits.capture import Capture, CohortSum, Floats, Ints, RoundView, Signs, Truth
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy.scoring import READ, judged, share_by_user, share_of_trials

UNIT = "share of codes"
CAMPAIGN_CLAIM = "user codes told apart by who took part in which round"


@dataclass(frozen=True)
class DifferenceTrial:
    """Two sums that differ by one device, and the truth about it."""

    without: RoundView
    with_one: RoundView
    code: Signs
    rows: Ints


def code_of_difference(without: CohortSum, with_one: CohortSum) -> Signs:
    """The signs of v' - v."""
    return np.where(with_one.user_sum - without.user_sum >= 0, 1, -1).astype(np.int8)


def rows_of_difference(without: CohortSum, with_one: CohortSum, code: Signs) -> Floats:
    """How much each row changed along the code."""
    return (with_one.rows - without.rows).astype(np.float64) @ code


def codes_of_campaign(capture: Capture) -> dict[int, Signs]:
    """Each device's code from its taking part: the contrast of v / w between rounds with and without it."""
    means = np.array([view.total.user_sum / max(view.total.weight, 1) for view in capture.rounds])
    present = np.array([np.isin(np.arange(capture.n_users), view.devices) for view in capture.rounds])
    codes = {}
    for user in np.flatnonzero(present.any(axis=0) & ~present.all(axis=0)).tolist():
        contrast = means[present[:, user]].mean(axis=0) - means[~present[:, user]].mean(axis=0)
        codes[user] = np.where(contrast >= 0, 1, -1).astype(np.int8)
    return codes


def audit_differences(trials: list[DifferenceTrial], setting: str, item_counts: Ints, mode: str) -> list[Finding]:
    """For information: the protocol does not allow these cohorts."""
    hits, guesses = [], []
    named: list[int] = []
    popular: list[int] = []
    sizes: list[int] = []
    for trial in trials:
        code = code_of_difference(trial.without.total, trial.with_one.total)
        mean = np.where(trial.without.total.user_sum >= 0, 1, -1)
        hits.append(np.mean(code == trial.code) >= READ)
        guesses.append(np.mean(mean == trial.code) >= READ)
        ranked = np.where(trial.with_one.open_rows, item_counts, -1).astype(np.float64)
        scores = rows_of_difference(trial.without.total, trial.with_one.total, code)
        for column, order in ((named, scores), (popular, ranked)):
            column.append(int(np.isin(trial.rows, np.argsort(-order, kind="stable")[: len(trial.rows)]).sum()))
        sizes.append(len(trial.rows))
    codes = share_of_trials(np.array(hits), np.array(guesses))
    rows = share_by_user(named, popular, sizes)
    return [
        judged(f"user codes from two sums one device apart, {setting}", codes, UNIT, mode, private=False),
        judged(f"uploaded rows from two sums one device apart, {setting}", rows, "share of rows", mode, private=False),
    ]


def audit_campaign(capture: Capture, truth: Truth, *, private: bool) -> list[Finding]:
    """The rounds as they were."""
    claimed, true = codes_of_campaign(capture), truth.last_codes()
    users = [user for user in truth.scored if user in claimed]
    if not users:
        return []
    agreement: Floats = np.array([np.mean(claimed[user] == true[user]) for user in users])
    mean = np.where(capture.rounds[-1].total.user_sum >= 0, 1, -1)
    guesses = np.array([np.mean(mean == true[user]) >= READ for user in users])
    what = share_of_trials(agreement >= READ, guesses, f"Mean share of right bits {agreement.mean():.3f};")
    return [judged(CAMPAIGN_CLAIM, what, UNIT, capture.mode, private=private)]
