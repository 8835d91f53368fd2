"""Claim: nobody can tell whether a certain user rated a certain item, not even knowing the user's code.

A likelihood ratio: if the user's row is in the sum R_i, then E R_i has the part g = ((t - s) b + d_i) / f more than
without. What the others add is taken out first, as the part of R_i along the mean user and along d_i; what remains is
noise of that row's own variance, so the log-likelihood ratio is (R_i . g - |g|^2 / 2) / variance, summed over the
rounds that the user took part in. O(f) a pair and round. In the clear the row is there or not. From the published
matrices alone the change of a row along b takes the place of R_i.

Pairs: for each rating (user, item) one other user who did not rate that item, so popularity gives nothing away.
Guessing: similarity of code and row before each round, since who knows a code knows the taste. The threshold is chosen
on one half of the users, and TPR - FPR measured on the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lightfr.interactions import LEVELS
from lightfr.training.constants import rated_target
from lightfr.v1 import model_pb2
from lightfr_harness.audits.capture import Capture, Floats, RoundView, Signs, Truth
from lightfr_harness.audits.finding import RESAMPLES, Finding, Interval, Measurement, for_information
from lightfr_harness.audits.privacy.clear_uploads import Decoded
from lightfr_harness.audits.privacy.item_set_recovery import seen_items
from lightfr_harness.audits.privacy.scoring import source_of

SUM_CLAIM = "a rating's membership told from uploads, knowing the code"
MATRIX_CLAIM = "a rating's membership told from published matrices, knowing the code"
UNIT = "advantage, TPR - FPR"
USERS, RATINGS_PER_USER = 200, 10


@dataclass(frozen=True)
class Pairs:
    """Questions, and, for scoring, their answers. Group is the user whose rating a pair is about or stands beside."""

    users: list[int]
    items: list[int]
    answers: npt.NDArray[np.bool_]
    groups: list[int]


def from_sum(view: RoundView, code: Signs, item: int) -> float:
    """Log-likelihood ratio of one round's sum."""
    b, d = code.astype(np.float64), view.before[item].astype(np.float64)
    row = view.total.rows[item].astype(np.float64)
    if view.model.objective == model_pb2.OBJECTIVE_PAPER:
        row = row / (LEVELS * len(b))
    expected = ((rated_target(len(b)) - b @ d) * b + d) / len(b)
    others = np.stack([view.total.user_sum / max(view.total.weight, 1), d])
    basis = np.linalg.qr(others.T + 1e-9)[0]
    row, expected = (vector - basis @ (basis.T @ vector) for vector in (row, expected))
    variance = max(float((row**2).mean()), 0.05)
    return float((row @ expected - expected @ expected / 2) / variance)


def from_matrices(view: RoundView, code: Signs, item: int) -> float:
    """How the published row moved, along the code; a row that already agrees says a little too."""
    moved = view.after[item].astype(np.float64) - view.before[item]
    return float(moved @ code + 0.25 * (view.after[item].astype(np.float64) @ code)) / len(code)


def from_similarity(view: RoundView, code: Signs, item: int) -> float:
    """Guessing: who knows a code knows the taste, and recommends from the matrix as it was before the round."""
    return float(view.before[item].astype(np.float64) @ code) / len(code)


def scores_of(
    capture: Capture,
    codes: tuple[dict[int, Signs], ...],
    pairs: Pairs,
    read: Callable[[RoundView, Signs, int], float],
) -> Floats:
    """The attack on each pair; `codes` is what the attacker knows of the asked users by assumption."""
    rounds = list(zip(capture.rounds, codes, strict=True))
    return np.array(
        [
            sum(read(view, known[user], item) for view, known in rounds if user in known)
            for user, item in zip(pairs.users, pairs.items, strict=True)
        ]
    )


def choose_pairs(truth: Truth, capture: Capture, seed: int) -> Pairs:
    """Ratings of items that the gate lets through, and beside each the same item with somebody who did not rate it."""
    rng = np.random.default_rng([seed, 13])
    open_rows = capture.rounds[-1].open_rows
    sets = {user: set(truth.items[user].tolist()) for user in truth.scored}
    asked: list[tuple[int, int, bool, int]] = []
    for user in rng.permutation(truth.scored)[:USERS].tolist():
        items = truth.items[user][open_rows[truth.items[user]]]
        for item in rng.permutation(items)[:RATINGS_PER_USER].tolist():
            others = [other for other in rng.permutation(truth.scored)[:50].tolist() if item not in sets[other]]
            if others:
                asked += [(user, item, True, user), (others[0], item, False, user)]
    users, items_, answers, groups = zip(*asked, strict=True) if asked else ((), (), (), ())
    return Pairs(list(users), list(items_), np.array(answers, np.bool_), list(groups))


def advantage(scores: Floats, pairs: Pairs, seed: int) -> Measurement:
    """TPR - FPR on half of the users at the threshold that was best on the other half; bootstrap over users."""
    groups = np.array(pairs.groups)
    members = np.unique(groups)
    training = np.isin(groups, np.random.default_rng([seed, 17]).permutation(members)[: len(members) // 2])
    threshold = _best_threshold(scores[training], pairs.answers[training])
    said, answers, tested = scores[~training] > threshold, pairs.answers[~training], groups[~training]
    if not len(said):
        return Measurement(0.0, 0.0, (0.0, 0.0), "Too few users.")
    value = np.where(answers, 1.0, -1.0) * said
    interval = _interval(value, tested, seed)
    note = f"{len(said)} pairs of {len(np.unique(tested))} users."
    return Measurement(0.0, 2 * float(value.mean()), interval, note)


def _best_threshold(scores: Floats, answers: npt.NDArray[np.bool_]) -> float:
    if not len(scores):
        return 0.0
    order = np.argsort(-scores, kind="stable")
    gain = np.cumsum(np.where(answers[order], 1, -1))
    # Equal scores stand or fall together: only where the next one is lower may the line be drawn.
    ends = np.append(scores[order][1:] < scores[order][:-1], True)
    best = int(np.where(ends, gain, -len(gain)).argmax())
    below = scores[order][best + 1] if best + 1 < len(order) else scores[order][best] - 1
    return float((scores[order][best] + below) / 2)


def _interval(value: Floats, groups: Floats, seed: int) -> Interval:
    members, place = np.unique(groups, return_inverse=True)
    sums, sizes = np.bincount(place, value), np.bincount(place).astype(np.float64)
    rng = np.random.default_rng([seed, 19])
    draws = rng.multinomial(len(members), np.full(len(members), 1 / len(members)), RESAMPLES)
    low, high = np.quantile(2 * (draws @ sums) / (draws @ sizes), [0.025, 0.975])
    return float(low), float(high)


def audit(capture: Capture, truth: Truth, decoded: Decoded | None, seed: int) -> list[Finding]:
    """From uploads or their sum, and from the published matrices. Nothing but noise bounds this: for information."""
    if not capture.rounds:
        return []
    pairs = choose_pairs(truth, capture, seed)
    if decoded:
        seen = seen_items(capture)
        from_uploads = np.array([float(i in seen.get(u, ())) for u, i in zip(pairs.users, pairs.items, strict=True)])
    else:
        from_uploads = scores_of(capture, truth.codes, pairs, from_sum)
    public = scores_of(capture, truth.codes, pairs, from_matrices)
    guessed = advantage(scores_of(capture, truth.codes, pairs, from_similarity), pairs, seed).measured

    def measured(scores: Floats) -> Measurement:
        return replace(advantage(scores, pairs, seed), predicted=guessed)

    return [
        for_information(claim, source_of(capture.mode), measured(scores), UNIT, capture.mode)
        for claim, scores in ((SUM_CLAIM, from_uploads), (MATRIX_CLAIM, public))
    ]
