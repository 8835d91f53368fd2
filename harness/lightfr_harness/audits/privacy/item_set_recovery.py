"""Claim: nobody can tell which items a user rated.

In the clear, item_indices says it: a device's rows over all rounds. Under secagg an upload is dense and masked, so all
that names a device is its taking part: the attack compares each row's energy in rounds with and without it, adds
popularity and the similarity of row and mean user, and weighs the three by a logistic fit on the colluders, whose sets
it knows. O(rounds x rows x f) once, O(rows) a user. The attacker is told how many items the user rated and names as
many; the score is the share it gets right. Guessing: the most popular ones.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from lightfr_harness.audits.capture import Capture, Floats, Ints, Truth
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy.clear_uploads import Decoded
from lightfr_harness.audits.privacy.scoring import judged, share_by_user

CLAIM = "rated items named"
UNIT = "share of items"
NEWTON_STEPS = 8


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
        rows = [view.total.rows.astype(np.float64) for view in capture.rounds]
        self._energy = np.array([(total**2).sum(axis=1) for total in rows])
        self._present = np.array([np.isin(np.arange(capture.n_users), view.devices) for view in capture.rounds])
        last = capture.rounds[-1]
        likeness = last.before.astype(np.float64) @ last.total.user_sum / max(last.total.weight, 1)
        self._common = np.stack([np.log1p(capture.item_counts), likeness / last.model.code_bits], axis=1)
        self._weights = self._learn(capture)

    def score(self, user: int) -> Floats:
        return self._features(user) @ self._weights

    def _features(self, user: int) -> Floats:
        return np.column_stack([np.ones(len(self._common)), self._common, self._contrast(user)])

    def _contrast(self, user: int) -> Floats:
        """Mean energy with less mean energy without, in the row's own standard deviations."""
        present = self._present[:, user]
        if present.all() or not present.any():
            return np.zeros(self._energy.shape[1])
        difference = self._energy[present].mean(axis=0) - self._energy[~present].mean(axis=0)
        return np.asarray(difference / (self._energy.std(axis=0) + 1e-9))

    def _learn(self, capture: Capture) -> Floats:
        known = capture.knowledge
        features = np.concatenate([self._features(user) for user in known.colluders])
        rated = [np.isin(np.arange(len(self._common)), known.items[user]) for user in known.colluders]
        return logistic_fit(features, np.concatenate(rated).astype(np.float64))


def logistic_fit(features: Floats, labels: Floats) -> Floats:
    """Weights of a logistic regression, by Newton's method with a small ridge."""
    weights = np.zeros(features.shape[1])
    for _ in range(NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        curvature = (features * (chance * (1 - chance))[:, None]).T @ features + np.eye(len(weights))
        weights = weights + np.linalg.solve(curvature, features.T @ (labels - chance) - weights)
    return weights


def named(scores: Floats, count: int) -> Ints:
    """The `count` items of highest score, ties to the more popular, which is the lower index."""
    return np.argsort(-scores, kind="stable")[:count]


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
