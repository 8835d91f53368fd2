"""Claim: nobody can read user codes from the published item codes.

The attacker has downloaded every matrix, and nothing else. A row that one device alone moves becomes that device's code
or its opposite, so the attack claims every row of a matrix, and its opposite; and since what a round changed in the
rows is a coarse picture of its sum, it separates those changes as it separates rows (`sums`). A code counts as read
when a claim is right in 90 % of its bits. O(rounds x rows x users x f).

Guessing: the same claims tried on bystanders, devices outside the round's cohort, whose codes are not in the matrix but
suit it as well as the others do.
"""

from __future__ import annotations

import numpy as np

from lightfr_harness.audits.capture import Capture, CohortSum, RoundView, Signs, Truth
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy.scoring import READ, best_agreement, judged, share_of_trials
from lightfr_harness.audits.privacy.sums import codes_by_separation

CLAIM = "user codes read from published item codes"
UNIT = "share of codes, by device and round"


def claims(views: tuple[RoundView, ...]) -> Signs:
    """What the matrices up to and including the last round's say of it: its rows, their opposites, and the changes."""
    rows = np.unique(views[-1].after, axis=0)
    changes = [(view.after - view.before) // 2 for view in views]
    sums = [CohortSum(change, rows.sum(axis=0), 0, views[-1].total.n_devices) for change in changes]
    return np.concatenate([rows, -rows, codes_by_separation(sums)])


def audit(capture: Capture, truth: Truth, *, promised: bool) -> Finding:
    """Every device of the last rounds, in each of them; `promised` where there is a gate."""
    scored = set(truth.scored)
    read, by_luck = [], []
    rounds = len(truth.bystanders)
    views, codes_of = capture.rounds[-rounds:], truth.codes[-rounds:]
    for index, (codes, bystanders) in enumerate(zip(codes_of, truth.bystanders, strict=True)):
        said = claims(views[: index + 1])
        true = np.array([code for user, code in codes.items() if user in scored], np.int8)
        read.append(best_agreement(said, true.reshape(-1, said.shape[1])) >= READ)
        by_luck.append(best_agreement(said, bystanders) >= READ)
    what = share_of_trials(np.concatenate(read), np.concatenate(by_luck))
    return judged(CLAIM, what, UNIT, capture.mode, private=promised)
