"""Claim: the sums of several rounds do not let codes be told apart, whoever they belong to.

The attacker knows the sums of the last ten rounds and nothing of who is in them: `sums`, separation. Claims are
anonymous, at most one per device of a cohort; a device of the last round counts as read when any claim is right in
90 % of its bits. Guessing: as many codes, of the colluding devices and of devices outside the cohort; or the same
claims on devices outside the last round's cohort, where those are hit less often.
"""

from __future__ import annotations

import numpy as np

from lightfr_harness.audits.capture import LAST_ROUNDS, Capture, Truth
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy.scoring import READ, best_agreement, judged, share_of_trials
from lightfr_harness.audits.privacy.sums import codes_by_separation
from lightfr_harness.audits.privacy.user_code_recovery import guessed_codes

CLAIM = "user codes told apart in the rows of ten rounds"


def audit(capture: Capture, truth: Truth, *, private: bool) -> Finding:
    """Score the devices of the last round."""
    scored = set(truth.scored)
    true = np.array([code for user, code in truth.codes[-1].items() if user in scored], np.int8)
    claimed = codes_by_separation([view.total for view in capture.rounds[-LAST_ROUNDS:]])
    guesses = np.concatenate([guessed_codes(capture), truth.bystanders[-1]])[: max(len(claimed), 1)]
    agreement = best_agreement(claimed, true)
    guessed, lucky = best_agreement(guesses, true) >= READ, best_agreement(claimed, truth.bystanders[-1]) >= READ
    lower = lucky if len(lucky) and len(guessed) and lucky.mean() < guessed.mean() else guessed
    what = share_of_trials(
        agreement >= READ, lower, f"Mean share of right bits {agreement.mean() if len(agreement) else 0.5:.3f};"
    )
    return judged(CLAIM, what, "share of codes", capture.mode, private=private)
