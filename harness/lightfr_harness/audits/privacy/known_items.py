"""Claim: who knows ten items of a user, and when it took part, learns no more of it from the sums.

From the ten items alone follows a code for every published matrix: the device's own fit, of ten items. When the user is
there, the rows of its other items gain along that code, whichever way it drifts from round to round; the attack
regresses the rows along it on taking part (`participation`), 50 rounds. Popularity, similarity to the code and that
gain are weighed by a logistic fit on the colluders, whose items it knows. The items that are likely then join the ten
in a second fit, which is the claim. O(users x rounds) fits, O(users x rounds x rows x f).

Guessing: the same without the sums.
"""

from __future__ import annotations

import numpy as np

from lightfr import UserCode
from lightfr.interactions import LEVELS, Interactions
from lightfr.training import fit_for_round
from lightfr_harness.audits.capture import Capture, Floats, Ints, Signs, Truth
from lightfr_harness.audits.finding import Finding
from lightfr_harness.audits.privacy.participation import regression, row_sums
from lightfr_harness.audits.privacy.scoring import (
    READ,
    judged,
    logistic_fit,
    named,
    share_by_user,
    share_of_trials,
)
from lightfr_harness.server.rules.bits import unpack_signs

CODES_CLAIM = "user codes read, knowing ten items and when the user took part"
ITEMS_CLAIM = "other items named, knowing ten items and when the user took part"
ROUNDS = 50
KNOWN = 10
USERS = 1_000
# An item joins the second fit from this chance on.
LIKELY = 0.5


class KnownItemsReader:
    """Reads users of whom some items are known: `known` has them by user, the colluders' among them."""

    def __init__(self, capture: Capture, known: dict[int, Ints]) -> None:
        self._capture, self._known, self._users = capture, known, list(known)
        self._open = np.flatnonzero(capture.rounds[-1].open_rows)
        present = capture.participation()
        # The last round that each user is in: what is asked is its code of that round.
        self._last = {user: int(np.flatnonzero(present[:, user])[-1]) for user in self._users}
        self._paths = np.array([self._path(user) for user in self._users])
        self._popularity = np.log((capture.item_counts[self._open] + 1) / (capture.n_users + 1))
        self._gains = self._gain()

    def read(self, *, with_sums: bool) -> tuple[dict[int, Floats], dict[int, Signs]]:
        """By user the log-odds of every item, and a code."""
        odds = self._odds(with_sums=with_sums)
        scores, codes = {}, {}
        for place, user in enumerate(self._users):
            scores[user] = np.full(len(self._capture.item_counts), -np.inf)
            scores[user][self._open] = odds[place]
            likely = self._open[1 / (1 + np.exp(-odds[place])) > LIKELY]
            last = self._last[user]
            codes[user] = self._fit(last, np.union1d(self._known[user], likely), self._paths[place, last])
        return scores, codes

    def _path(self, user: int) -> Signs:
        """The code of the known items in every round."""
        code, path = np.ones(self._capture.rounds[0].model.code_bits, np.int8), []
        for index in range(len(self._capture.rounds)):
            code = self._fit(index, self._known[user], code)
            path.append(code)
        return np.array(path)

    def _fit(self, index: int, items: Ints, code: Signs) -> Signs:
        ratings = Interactions([(item, LEVELS) for item in items.tolist()])
        start = UserCode(np.packbits(code > 0, bitorder="little").tobytes())
        fitted = fit_for_round(self._capture.rounds[index].published, ratings, start)
        return unpack_signs(fitted.reveal(), code.shape)

    def _gain(self) -> Floats:
        """How much more of each row points along the user's path when it is there, in the row's variances."""
        rows, variance = row_sums(self._capture)
        weighted = self._paths * regression(self._capture)[self._users][:, :, None]
        flat = np.moveaxis(rows, 2, 1).reshape(-1, rows.shape[1])
        gains = weighted.reshape(len(self._users), -1).astype(np.float32) @ flat
        return np.asarray(gains / variance, np.float64)

    def _odds(self, *, with_sums: bool) -> Floats:
        """Log-odds of every open item: users x open rows."""
        last = [self._last[user] for user in self._users]
        codes = self._paths[np.arange(len(last)), last].astype(np.float64)
        alike = codes @ self._capture.rounds[-1].before[self._open].T / codes.shape[1]
        popular = np.broadcast_to(self._popularity, alike.shape)
        columns = [np.ones_like(alike), popular, alike, alike**2, alike * popular]
        features = np.stack([*columns, self._gains] if with_sums else columns, axis=-1)
        rated = self._capture.knowledge.items
        asked = [place for place, user in enumerate(self._users) if user in rated]
        if not asked:
            return np.asarray(popular)
        labels = np.array([np.isin(self._open, rated[self._users[place]]) for place in asked])
        # The items that are known beforehand teach nothing about those that are not.
        unknown = np.array([~np.isin(self._open, self._known[self._users[place]]) for place in asked])
        weights = logistic_fit(features[asked][unknown], labels[unknown].astype(np.float64))
        return np.asarray(features @ weights)


def choose_known(capture: Capture, truth: Truth, seed: int) -> dict[int, Ints]:
    """Ten open items of the colluders and of at most USERS others; of those who rated more than ten and took part."""
    rng = np.random.default_rng([seed, 37])
    present = {device for view in capture.rounds for device in view.devices}
    open_rows = capture.rounds[-1].open_rows
    others = rng.permutation(truth.scored)[:USERS].tolist()
    known = {}
    for user in sorted([*capture.knowledge.colluders, *others]):
        items = truth.items[user][open_rows[truth.items[user]]]
        if user in present and len(items) > KNOWN:
            known[user] = np.sort(rng.choice(items, KNOWN, replace=False))
    return known


def audit(capture: Capture, truth: Truth, seed: int, *, private: bool) -> list[Finding]:
    """Codes, and the items beside the ten."""
    capture, truth = capture.last(ROUNDS), truth.last(ROUNDS)
    known, true = choose_known(capture, truth, seed), truth.last_codes()
    asked = [user for user in truth.scored if user in known]
    if not asked:
        return []
    reader = KnownItemsReader(capture, known)
    hits: dict[bool, list[bool]] = {}
    right: dict[bool, list[int]] = {}
    sizes = [len(truth.items[user]) - KNOWN for user in asked]
    for with_sums in (True, False):
        scores, codes = reader.read(with_sums=with_sums)
        hits[with_sums] = [bool(np.mean(codes[user] == true[user]) >= READ) for user in asked]
        right[with_sums] = []
        for user, size in zip(asked, sizes, strict=True):
            scores[user][known[user]] = -np.inf
            others = np.setdiff1d(truth.items[user], known[user])
            right[with_sums].append(int(np.isin(others, named(scores[user], size)).sum()))
    of_codes = share_of_trials(np.array(hits[True]), np.array(hits[False]), f"{len(capture.rounds)} rounds;")
    of_items = share_by_user(right[True], right[False], sizes)
    return [
        judged(CODES_CLAIM, of_codes, "share of codes", capture.mode, private=private),
        judged(ITEMS_CLAIM, of_items, "share of items", capture.mode, private=private),
    ]
