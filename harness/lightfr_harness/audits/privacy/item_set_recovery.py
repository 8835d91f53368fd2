"""Claim: nobody can tell which items a user rated.

In the clear, item_indices says it: a device's rows over all rounds. Under secagg an upload is dense and masked, so all
that names a device is its taking part. The attack regresses each row on it (`participation`), along the row's own mean,
since what raters of an item add to its row is much alike. A device that rated more items than it uploads in a round
adds to each row less often, which the attacker allows for: it is told how many items the user rated, and names as many.
Popularity, that number and the gain are weighed by a logistic fit on the colluders, whose sets it knows. O(rounds x
rows x f) once, O(rounds x rows) a user. The score is the share that it gets right. Guessing: the most popular ones.
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
        rows = np.array([view.total.rows for view in capture.rounds], np.float32)
        mean = rows.mean(axis=0)
        along = np.einsum("trf,rf->tr", rows, mean / (np.linalg.norm(mean, axis=1, keepdims=True) + 1e-9))
        self._regression = regression(capture)
        # In each row's own standard deviations.
        self._along = along / (along.std(axis=0) + 1e-9)
        self._most_rows = capture.rounds[-1].model.max_rows
        share = (capture.item_counts + 0.5) / (capture.n_users + 1)
        self._popularity = np.log(share / (1 - share))
        self._weights = self._learn(capture)

    def score(self, user: int, rated: int) -> Floats:
        """By item, for a user who rated so many."""
        return self._features(user, rated) @ self._weights

    def _features(self, user: int, rated: int) -> Floats:
        uploaded = min(1.0, self._most_rows / max(rated, 1)) if self._most_rows else 1.0
        gain = uploaded * (self._regression[user] @ self._along)
        constant = np.ones_like(gain)
        return np.column_stack([constant, np.log1p(rated) * constant, self._popularity, gain])

    def _learn(self, capture: Capture) -> Floats:
        known = capture.knowledge.items
        features = np.concatenate([self._features(user, len(items)) for user, items in known.items()])
        labels = [np.isin(np.arange(len(self._popularity)), items) for items in known.values()]
        return logistic_fit(features, np.concatenate(labels).astype(np.float64))


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
            scores = reader.score(user, len(items))
        else:
            scores = popularity.copy()
            scores[list(seen.get(user, ()))] += popularity.max() + 1
        hits.append(int(np.isin(items, named(scores, len(items))).sum()))
        guesses.append(int(np.isin(items, named(popularity, len(items))).sum()))
        sizes.append(len(items))
    return [judged(CLAIM, share_by_user(hits, guesses, sizes), UNIT, capture.mode, private=private)]
