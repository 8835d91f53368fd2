"""Claim: who took part in which round, beside the sums, does not single a device out.

The attacker knows the names of every round's devices. Over many rounds it regresses v and every row of R on taking
part, with a ridge: what a device adds on average when it is there. The estimate of v is w b; those of the rows, added
up with the weight of their own noise, point along b too. Colluders, whose codes the attacker knows, say how much each
of the two and the mean user are worth (a logistic fit over bits). O(rounds^3) once, O(users x rounds x rows x f).

Every device gets a claim by name. Guessing: the signs of the mean user.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lightfr_harness.audits.capture import Capture, Floats, Signs, Truth
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy.scoring import READ, judged, logistic_fit, share_of_trials

CLAIM = "user codes told apart by who took part in which round"
# The ridge against the mean of the diagonal.
RIDGE = 0.1


def regression(capture: Capture) -> Floats:
    """Users x rounds: with these weights the rounds' sums add up to what each user adds; zeros if that is unknown."""
    present = capture.participation().astype(np.float64)
    present -= present.mean(axis=0)
    kernel = present @ present.T
    scale = max(float(np.diag(kernel).mean()), 1e-9)
    weights = np.linalg.solve(kernel + RIDGE * scale * np.eye(len(kernel)), present).T
    weights -= weights.mean(axis=1, keepdims=True)
    there = (weights * capture.participation().T).sum(axis=1, keepdims=True)
    return np.where(there > 1e-9, weights / np.maximum(there, 1e-9), 0.0)


def row_sums(capture: Capture) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """R of all rounds, open rows only (rounds x rows x f), and how much each row varies in itself."""
    open_rows = capture.rounds[-1].open_rows
    rows = np.array([view.total.rows[open_rows] for view in capture.rounds], np.float32)
    return rows, rows.var(axis=0).mean(axis=1) + np.float32(0.05)


def codes_by_name(capture: Capture) -> Signs:
    """A claim for every user."""
    weights, (rows, variance) = regression(capture), row_sums(capture)
    sums = np.array([view.total.user_sum for view in capture.rounds], np.float64)
    added_up = np.einsum("trf,r->tf", rows, 1 / variance, optimize=True)
    mean = np.broadcast_to(_scaled(sums.mean(axis=0)), (capture.n_users, sums.shape[1]))
    features = np.stack([mean, _scaled(weights @ sums), _scaled(weights @ added_up)], axis=-1)
    codes = capture.knowledge.last_codes()
    labels = np.array(list(codes.values())).ravel() > 0
    fitted = logistic_fit(features[np.array(list(codes), np.int64)].reshape(-1, 3), labels.astype(np.float64))
    return np.where(features @ fitted >= 0, 1, -1).astype(np.int8)


def _scaled(values: Floats) -> Floats:
    return np.asarray(values / max(float(np.sqrt((values**2).mean())), 1e-9))


def audit(capture: Capture, truth: Truth, *, private: bool) -> Finding:
    """Score every user's last code."""
    claimed, true = codes_by_name(capture), truth.last_codes()
    mean = np.where(sum(view.total.user_sum for view in capture.rounds) >= 0, 1, -1)
    agreement = np.array([np.mean(claimed[user] == true[user]) for user in truth.scored])
    guesses = np.array([np.mean(mean == true[user]) >= READ for user in truth.scored])
    note = f"{len(capture.rounds)} rounds; mean share of right bits {agreement.mean() if len(agreement) else 0.5:.3f};"
    what = share_of_trials(agreement >= READ, guesses, note)
    return judged(CLAIM, what, "share of codes", capture.mode, private=private)
