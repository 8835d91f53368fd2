"""Claim: nobody can read user codes from the published item codes.

A row that one device alone moves becomes that device's code or its opposite, for every device to download. The attack
claims every row of every published matrix, and its opposite: O(rounds x rows x users x f) to score, nothing to
compute. A code counts as read when a row is right in 90 % of its bits. Guessing: the colluders' own codes and their
mean.
"""

from __future__ import annotations

import numpy as np

from lightfr_harness.audits.capture import Capture, RoundView, Signs, Truth
from lightfr_harness.audits.finding import Finding, at_most, for_information
from lightfr_harness.audits.privacy.scoring import OUR_CLAIM, READ, best_agreement, share_of_trials, source_of
from lightfr_harness.audits.privacy.user_code_recovery import guessed_codes

CLAIM = "user codes read from published item codes"
UNIT = "share of codes"
LIMIT = 0.005


def claims(view: RoundView) -> Signs:
    """Every row after the round, and its opposite."""
    rows = np.unique(view.after, axis=0)
    return np.concatenate([rows, -rows])


def audit(capture: Capture, truth: Truth, *, promised: bool) -> Finding:
    """A user's code counts as read when it is read in any round; where the gate is a promise, the limit is 0.5 %."""
    scored = set(truth.scored)
    read: dict[int, bool] = {}
    guessed: dict[int, bool] = {}
    for index, (view, codes) in enumerate(zip(capture.rounds, truth.codes, strict=True)):
        users = [user for user in codes if user in scored]
        true = np.array([codes[user] for user in users], np.int8).reshape(-1, view.model.code_bits)
        for found, said in ((read, claims(view)), (guessed, guessed_codes(capture, index))):
            hits = best_agreement(said, true) >= READ
            found.update({user: found.get(user, False) or bool(hit) for user, hit in zip(users, hits, strict=True)})
    what = share_of_trials(np.array(list(read.values())), np.array(list(guessed.values())))
    if promised:
        return at_most(CLAIM, OUR_CLAIM, what, UNIT, LIMIT, capture.mode)
    return for_information(CLAIM, source_of(capture.mode), what, UNIT, capture.mode)
