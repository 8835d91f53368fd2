"""Claim: nobody can tell which rating a user gave.

The attacker is asked about every rating of a user, and told that the item was rated. With objective paper the rating
is in the upload: `clear_uploads` reads it. With the catalogue objective the target is flat, the rating enters
neither code nor gradient, and cannot leak by construction except as far as it goes with what does leak. So the attack
there takes the item's usual levels and what similarity of code and item says of the level, both learnt from the
colluders. Guessing: the likeliest level of the item among the colluders' ratings. O(ratings x levels).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lightfr_harness.audits.capture import Capture, Floats, Ints, Signs, Truth
from lightfr_harness.audits.finding import Finding, Measurement, for_information, of_the_paper
from lightfr_harness.audits.privacy.clear_uploads import Decoded, item_prior
from lightfr_harness.audits.privacy.scoring import PAPER_CLAIM, judged, share_by_user

CLAIMS = {0: "ratings recovered exactly", 1: "ratings recovered within one star"}
UNIT = "share of ratings"
# On the paper's own uploads an audit that recovers less has become blind.
SEEING = 0.99
BUCKETS = 8


def usual_steps(capture: Capture) -> Ints:
    """The likeliest step of each item, from the colluders alone."""
    return _likeliest(item_prior(capture.knowledge.level_counts(len(capture.item_counts))))


def _likeliest(chances: Floats) -> Ints:
    """The step of the highest chance in each row."""
    return np.asarray(chances.argmax(axis=1), np.int64)


class EvidenceReader:
    """Objective paper: the levels that the uploads say, and where they leave a choice the item's usual one."""

    def __init__(self, decoded: Decoded, level_counts: Floats) -> None:
        self._decoded = decoded
        self._prior = item_prior(level_counts)

    def recover(self, user: int, items: Ints) -> Ints:
        if user not in self._decoded.users:
            return _likeliest(self._prior[items])
        evidence = self._decoded.users[user]
        likelihood = np.ones_like(self._prior)
        likelihood[evidence.items] = evidence.oriented(self._decoded.mirrored[user]) + 1e-9
        return _likeliest(self._prior[items] * likelihood[items])


class SimilarityReader:
    """Catalogue objective: what similarity of code and item says of the level, learnt from the colluders."""

    def __init__(self, capture: Capture, decoded: Decoded | None) -> None:
        self._codes = last_codes(capture, decoded)
        self._mean = mean_code(capture)
        self._items = capture.rounds[-1].before.astype(np.float64)
        self._log_prior = np.log(item_prior(capture.knowledge.level_counts(len(capture.item_counts))))
        self._log_chance = self._learn(capture)

    def recover(self, user: int, items: Ints) -> Ints:
        return _likeliest(self._log_prior[items] + self._log_chance[self._bucket(user, items)])

    def _learn(self, capture: Capture) -> Floats:
        """log P(bucket | level), with the whole's share of the bucket as five more ratings."""
        counts = np.zeros((BUCKETS, len(capture.knowledge.levels)))
        for user in capture.knowledge.colluders:
            buckets = self._bucket(user, capture.knowledge.items[user])
            np.add.at(counts, (buckets, capture.knowledge.steps[user]), 1)
        overall = (counts.sum(axis=1, keepdims=True) + 1) / (counts.sum() + BUCKETS)
        return np.asarray(np.log((counts + 5 * overall) / (counts.sum(axis=0) + 5)))

    def _bucket(self, user: int, items: Ints) -> Ints:
        share = 0.5 + self._items[items] @ self._codes.get(user, self._mean) / (2 * self._items.shape[1])
        return np.asarray(np.minimum((share * BUCKETS).astype(np.int64), BUCKETS - 1))


def last_codes(capture: Capture, decoded: Decoded | None) -> dict[int, Signs]:
    """The last code that was read of each device; empty under secagg, where no claim names a device."""
    return {} if decoded is None else {user: code for codes in decoded.codes for user, code in codes.items()}


def mean_code(capture: Capture) -> Signs:
    """Signs of the mean user of the last round."""
    return np.where(capture.rounds[-1].total.user_sum >= 0, 1, -1).astype(np.int8)


def audit(capture: Capture, truth: Truth, decoded: Decoded | None, *, private: bool) -> list[Finding]:
    """Exactly, and within one star."""
    if not capture.rounds:
        return []
    reader: EvidenceReader | SimilarityReader = SimilarityReader(capture, decoded)
    if decoded is not None and decoded.level_counts is not None:
        reader = EvidenceReader(decoded, decoded.level_counts)
    usual = usual_steps(capture)
    errors, guessed = [], []
    for user in truth.scored:
        items, steps = truth.items[user], truth.steps[user]
        errors.append(np.abs(reader.recover(user, items) - steps))
        guessed.append(np.abs(usual[items] - steps))
    note = (
        "The rating enters no upload: it cannot leak by construction." if isinstance(reader, SimilarityReader) else ""
    )
    return [_finding(capture.mode, within, errors, guessed, note, private=private) for within in CLAIMS]


def _finding(mode: str, within: int, errors: list[Ints], guessed: list[Ints], note: str, *, private: bool) -> Finding:
    hits, guesses = ([int(np.count_nonzero(user <= within)) for user in column] for column in (errors, guessed))
    sizes = [len(user) for user in errors]
    what = share_by_user(hits, guesses, sizes, note)
    if mode == "paper" and within == 0:
        return _of_the_papers_claim(within, what, mode)
    return judged(CLAIMS[within], what, UNIT, mode, private=private)


def _of_the_papers_claim(within: int, what: Measurement, mode: str) -> Finding:
    """The attack refutes the claim. If it fails, that says something of the attack: nothing of ours is broken."""
    if what.measured >= SEEING:
        return of_the_paper(CLAIMS[within], PAPER_CLAIM, what, UNIT, holds=False, mode=mode)
    failed = f"The attack should read {SEEING:.0%} here and did not: its other figures may be too low."
    return for_information(CLAIMS[within], PAPER_CLAIM, replace(what, note=failed), UNIT, mode)
