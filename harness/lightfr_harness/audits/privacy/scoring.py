"""How attacks are scored: what they say against the truth, beside what guessing says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lightfr_harness.audits.capture import Floats, Ints, Signs
from lightfr_harness.audits.finding import Finding, Measurement, at_most, bootstrap_ratio, for_information, wilson

Hits = npt.NDArray[np.bool_]

# A code counts as read when this share of its bits is right.
READ = 0.9
NEWTON_STEPS = 8
# How far above guessing a private mode may be, as a share.
MARGIN = 0.02
OUR_CLAIM = "secure aggregation and the gate, docs/protocol.md"
PAPER_CLAIM = "LightFR (TOIS 2023): the server cannot infer ratings"
CLEAR_CLAIM = "none: clear uploads are for audits"


def best_agreement(claims: Signs, codes: Signs) -> Floats:
    """For each true code the share of right bits in the claim that suits it best; one half is chance."""
    if not len(claims) or not len(codes):
        return np.full(len(codes), 0.5)
    products = codes.astype(np.float32) @ claims.astype(np.float32).T
    agreement: Floats = (0.5 + products.max(axis=1) / (2 * codes.shape[1])).astype(np.float64)
    return agreement


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


def share_of_trials(hits: Hits, guesses: Hits, note: str = "") -> Measurement:
    """Independent trials: successes of the attack and of guessing, with Wilson's interval."""
    measured, predicted = (float(np.mean(column)) if len(column) else 0.0 for column in (hits, guesses))
    return Measurement(predicted, measured, wilson(float(np.sum(hits)), len(hits)), f"{note} n = {len(hits)}.".strip())


def share_by_user(
    hits: Sequence[float], guesses: Sequence[float], sizes: Sequence[float], note: str = ""
) -> Measurement:
    """Sums by user over sizes by user; the interval resamples users."""
    total = max(float(np.sum(sizes)), 1.0)
    note = f"{note} {int(np.sum(sizes))} of {len(sizes)} users.".strip()
    return Measurement(
        np.sum(guesses) / total,
        np.sum(hits) / total,
        bootstrap_ratio(np.array(hits, np.float64), np.array(sizes, np.float64)),
        note,
    )


def judged(claim: str, what: Measurement, unit: str, mode: str, *, private: bool) -> Finding:
    """A mode that is to be private must stay within 2 points of guessing; the others are only told."""
    if private:
        return at_most(claim, OUR_CLAIM, what, unit, round(what.predicted + MARGIN, 9), mode)
    return for_information(claim, source_of(mode), what, unit, mode)


def source_of(mode: str) -> str:
    """Whose claim a mode tries."""
    if mode.startswith("paper"):
        return PAPER_CLAIM
    return OUR_CLAIM if mode.startswith("secagg") else CLEAR_CLAIM
