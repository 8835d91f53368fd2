"""Claim: nobody can tell a device's user code from what it uploads.

Attack on clear uploads: `clear_uploads`; with the catalogue objective the field user_code says it, and the rows alone
are tried beside it. Attack on the last round's sum: `sums`, lone rows and then separation. Those claims are anonymous,
so a device's code counts as read when any claim is right in 90 % of its bits; there is at most one claim per device.
Guessing: the codes that the colluding devices fitted themselves and the signs of their mean; against a sum, the same
claims tried on devices outside the cohort, whose codes are not in it but resemble those that are.
"""

from __future__ import annotations

import numpy as np

from lightfr.v1 import model_pb2
from lightfr_harness.audits.capture import Capture, CohortSum, Floats, RoundView, Signs, Truth
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy import clear_uploads, sums
from lightfr_harness.audits.privacy.clear_uploads import Decoded
from lightfr_harness.audits.privacy.scoring import READ, best_agreement, judged, share_of_trials

CLAIM = "user codes read from uploads"
EXACT_CLAIM = "user codes read from uploads to the last bit"
ROWS_CLAIM = "user codes read from the rows alone"
UNIT = "share of codes"


def codes_from_sum(total: CohortSum) -> Signs:
    """Anonymous codes, at most one per device: those of lone rows first, which noise leaves none of."""
    lone, _ = sums.codes_from_lone_rows(total)
    return np.concatenate([lone, sums.codes_by_separation([total])])[: total.n_devices]


def codes_from_rows_alone(view: RoundView) -> dict[int, Signs]:
    """By device, from catalogue uploads whose field user_code is not looked at."""
    return {device: clear_uploads.code_from_rows_alone(view, upload) for device, upload in view.read()}


def guessed_codes(capture: Capture) -> Signs:
    """Without the capture: the colluders' own codes of the last round, and their mean."""
    own = np.array(list(capture.knowledge.codes[-1].values()), np.int8).reshape(-1, capture.rounds[-1].model.code_bits)
    mean = np.where(own.sum(axis=0, dtype=np.int64) >= 0, 1, -1).astype(np.int8)
    return np.concatenate([own, mean[None]])


def audit(capture: Capture, truth: Truth, decoded: Decoded | None, *, private: bool) -> list[Finding]:
    """Score the last round, in which the item codes are most mature."""
    if not capture.rounds:
        return []
    view, codes = capture.rounds[-1], truth.codes[-1]
    scored = set(truth.scored)
    users = [user for user in codes if user in scored]
    true = np.array([codes[user] for user in users], np.int8).reshape(-1, view.model.code_bits)
    if decoded is None:
        claimed = codes_from_sum(view.total)
        guesses = best_agreement(claimed, truth.bystanders[-1])
        return _findings(best_agreement(claimed, true), guesses, capture.mode, private=private)
    guesses = best_agreement(guessed_codes(capture), true)
    findings = _findings(_linked(decoded.codes[-1], codes, users), guesses, capture.mode, private=private)
    if view.model.objective == model_pb2.OBJECTIVE_CATALOGUE:
        hits = _linked(codes_from_rows_alone(view), codes, users)
        findings.append(_finding(ROWS_CLAIM, READ, hits, guesses, capture.mode, private=private))
    return findings


def _linked(claimed: dict[int, Signs], codes: dict[int, Signs], users: list[int]) -> Floats:
    """Share of right bits where each claim names its device; a device without a claim counts as chance."""
    return np.array([np.mean(claimed[user] == codes[user]) if user in claimed else 0.5 for user in users])


def _findings(agreement: Floats, guesses: Floats, mode: str, *, private: bool) -> list[Finding]:
    """By 90 % of the bits, and by all of them, which luck hardly reaches."""
    settings = ((CLAIM, READ), (EXACT_CLAIM, 1.0))
    return [_finding(claim, bar, agreement, guesses, mode, private=private) for claim, bar in settings]


def _finding(claim: str, bar: float, agreement: Floats, guesses: Floats, mode: str, *, private: bool) -> Finding:
    note = f"Mean share of right bits {agreement.mean() if len(agreement) else 0.5:.3f};"
    return judged(claim, share_of_trials(agreement >= bar, guesses >= bar, note), UNIT, mode, private=private)
