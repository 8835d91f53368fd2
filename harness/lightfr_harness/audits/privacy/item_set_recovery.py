"""Claim: nobody can tell which items a user rated.

In the clear, item_indices says it: a device's rows over all rounds. Under secagg an upload is dense and masked, so all
that names a device is its taking part. The attack regresses each row on it (`participation`): how much energy the row
has more, and how much more of it points along the mean user, when the device is there. It adds popularity and the
similarity of row and mean user, and weighs the four by a logistic fit on the colluders, whose sets it knows. O(rounds x
rows x f) once, O(rounds x rows) a user. The attacker is told how many items the user rated and names as many; the score
is the share it gets right. Guessing: the most popular ones.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from lightfr_harness.audits.capture import Capture, Floats, Truth
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy.clear_uploads import Decoded
from lightfr_harness.audits.privacy.participation import regression
from lightfr_harness.audits.privacy.scoring import judged, logistic_fit, named, share_by_user

CLAIM = "rated items named"
UNIT = "share of items"


def seen_items(capture: Capture) -> dict[int, set[int]]:
    """Rows that each device uploaded in the clear."""
    seen: dict[int, set[int]] = defaultdict(set)
    for view in capture.rounds:
        for device, upload in view.read():
            seen[device].update(upload.item_indices.tolist())
    return seen


class SumReader:
    """Scores items for a user from the sums of the rounds that it took part in, and of those that it did not."""

    def __init__(self, capture: Capture) -> None:
        last, rows = capture.rounds[-1], np.array([view.total.rows for view in capture.rounds], np.float32)
        self._regression = regression(capture)
        self._energy = (rows**2).sum(axis=2)
        self._along = rows @ np.where(sum(view.total.user_sum for view in capture.rounds) >= 0, 1, -1)
        likeness = last.before.astype(np.float64) @ last.total.user_sum / max(last.total.weight, 1)
        self._common = np.stack([np.log1p(capture.item_counts), likeness / last.model.code_bits], axis=1)
        self._weights = self._learn(capture)

    def score(self, user: int) -> Floats:
        return self._features(user) @ self._weights

    def _features(self, user: int) -> Floats:
        """Each contrast is in the row's own standard deviations."""
        contrasts = [
            (self._regression[user] @ column) / (column.std(axis=0) + 1e-9) for column in (self._energy, self._along)
        ]
        return np.column_stack([np.ones(len(self._common)), self._common, *contrasts])

    def _learn(self, capture: Capture) -> Floats:
        known = capture.knowledge
        features = np.concatenate([self._features(user) for user in known.colluders])
        rated = [np.isin(np.arange(len(self._common)), known.items[user]) for user in known.colluders]
        return logistic_fit(features, np.concatenate(rated).astype(np.float64))


def audit(capture: Capture, truth: Truth, decoded: Decoded | None, *, private: bool) -> list[Finding]:
    """One finding: the share of rated items named."""
    if not capture.rounds:
        return []
    popularity = capture.item_counts.astype(np.float64)
    seen, reader = (seen_items(capture), None) if decoded else ({}, SumReader(capture))
    hits, guesses, sizes = [], [], []
    for user in truth.scored:
        items = truth.items[user]
        if reader:
            scores = reader.score(user)
        else:
            scores = popularity.copy()
            scores[list(seen.get(user, ()))] += popularity.max() + 1
        hits.append(int(np.isin(items, named(scores, len(items))).sum()))
        guesses.append(int(np.isin(items, named(popularity, len(items))).sum()))
        sizes.append(len(items))
    return [judged(CLAIM, share_by_user(hits, guesses, sizes), UNIT, capture.mode, private=private)]
