"""Scores what the servers of other methods learnt, beside guessing, and writes it down.

These are nobody's promises to us: the figures are for information, and Table 1 of the paper, which has a tick or a
cross for the privacy of each method, is confirmed or refuted. A tick holds when no attack is more than 2 points above
guessing, as in our own modes.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lightfr import __version__
from lightfr.errors import InvalidInputError
from lightfr_harness.audits.capture import Ints, choose_colluders
from lightfr_harness.audits.finding import Finding, Measurement, counted, for_information, of_the_paper
from lightfr_harness.audits.privacy import item_set_recovery, rating_recovery, user_code_recovery
from lightfr_harness.audits.privacy.clear_uploads import item_prior
from lightfr_harness.audits.privacy.method_attacks import Read
from lightfr_harness.audits.privacy.methods import LIST, WATCHED, Subject, Watch, watch
from lightfr_harness.audits.privacy.plan import MOST_CLEAR_ROUNDS
from lightfr_harness.audits.privacy.scoring import MARGIN, named, share_by_user, share_of_trials
from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index
from lightfr_harness.records import FindingFields, MethodsPrivacyRecord, PrivacyRecord
from lightfr_harness.simulation.baselines.item_factors import histories
from lightfr_harness.simulation.baselines.method import FRACTION, STEPS, Floats
from lightfr_harness.simulation.baselines.privrec import DELTA, PrivRec, epsilon
from lightfr_harness.simulation.baselines.tables import best_unrated
from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.train import load_split

ITEMS, RATINGS = item_set_recovery.CLAIM, rating_recovery.CLAIMS[0]
OVER_ROUNDS = "rated items named by what comes up in every round"
VECTORS, LISTS = "user vectors read", "recommended items named"
CODES = user_code_recovery.CLAIM
EPSILON = "epsilon"
TABLE_1 = "privacy, by Table 1"
SOURCE = "none: the method is as its authors have it"
# A vector counts as read when the cosine between it and the true one is at least this.
ALIKE = 0.99


@dataclass(frozen=True)
class MethodOptions:
    """What is asked for; at most ten rounds are watched, as in our own clear modes."""

    methods: tuple[str, ...] = tuple(WATCHED)
    data: Path | None = None
    format: str = "ml-100k"
    synthetic: str = "small"
    rounds: int = MOST_CLEAR_ROUNDS
    seed: int = 0
    data_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = [method for method in self.methods if method not in WATCHED]
        if unknown:
            raise InvalidInputError(
                f"--method: unknown method {', '.join(unknown)!r}, choose among: {', '.join(WATCHED)}"
            )
        if self.rounds < 1:
            raise InvalidInputError(f"--rounds is {self.rounds}, expected at least 1")


def run(
    options: MethodOptions,
    beside: PrivacyRecord | None = None,
    progress: Callable[[str, float], None] = lambda what, share: None,
) -> MethodsPrivacyRecord:
    """Watch and attack every method that is asked for; `beside` has the figures of LightFR's own modes."""
    train = load_split(
        TrainOptions(
            data=options.data,
            format=options.format,
            data_options=options.data_options,
            synthetic=options.synthetic,
            seed=options.seed,
        )
    ).train
    options = replace(options, rounds=min(options.rounds, MOST_CLEAR_ROUNDS))
    findings: list[Finding] = []
    for index, name in enumerate(options.methods):
        progress(name, index / len(options.methods))
        findings += audit(WATCHED[name](train), train, options.rounds, options.seed)
    progress("done", 1.0)
    return MethodsPrivacyRecord(
        options={**asdict(options), "data": str(options.data) if options.data else None},
        findings=[finding.record() for finding in findings],
        beside=lightfr_findings(beside) if beside else [],
        beside_options=beside.options if beside else None,
        machine=platform.machine(),
        lightfr=__version__,
    )


def audit(subject: Subject, train: Ratings, rounds: int, seed: int) -> list[Finding]:
    """One method: all claims for each thing that its server may have beside the messages."""
    truth = histories(train)
    seen = watch(subject, train, [items for items, _ in truth], rounds, seed)
    scores = Scores(seen, truth, train.item_counts(), choose_colluders(train.n_users, seed))
    findings: list[Finding] = []
    for having in subject.attacks:
        mode = f"{subject.title}, {having}" if having else subject.title
        findings += scores.findings(having, mode, subject.tick)
    if isinstance(subject.method, PrivRec):
        findings.append(_epsilon(subject.method, subject.title))
    return findings


class Scores:
    """One watched run against the truth: users of the last round who do not collude."""

    def __init__(
        self, seen: Watch, truth: list[tuple[Index, Floats]], counts: Ints, colluders: tuple[int, ...]
    ) -> None:
        self._seen, self._truth, self._popularity = seen, truth, counts.astype(np.float64)
        self._users = sorted(set(seen.own) - set(colluders))
        self._levels = np.unique(np.concatenate([ratings for _, ratings in truth]))
        self._usual = self._usual_ratings(colluders)
        own = [seen.own[user] for user in colluders if user in seen.own]
        vectors = [each.vector for each in own if each.vector is not None]
        self._mean_vector = np.mean(vectors, axis=0) if vectors else None
        listed = Counter(item for each in own for item in each.best.tolist())
        self._usual_list = named(self._with(listed), LIST)

    def findings(self, having: str, mode: str, tick: bool | None) -> list[Finding]:
        reads = self._seen.reads[having]
        found = [
            (ITEMS, self._items(lambda user: dict.fromkeys(reads[user].items.tolist(), 1)), "share of items"),
            (OVER_ROUNDS, self._items(lambda user: self._seen.uploads[user]), "share of items"),
            (RATINGS, self._ratings(reads), "share of ratings"),
            (LISTS, self._lists(reads), "share of items"),
        ]
        if any(self._seen.own[user].vector is not None for user in self._users):
            found.insert(3, (VECTORS, self._vectors(reads), "share of users"))
        findings = [for_information(claim, SOURCE, what, unit, mode) for claim, what, unit in found]
        if tick is not None:
            findings.append(table_1(max(what.measured - what.predicted for _, what, _ in found), mode, tick=tick))
        return findings

    def _with(self, votes: dict[int, int]) -> Floats:
        """Popularity, below any vote."""
        scores: Floats = self._popularity / (self._popularity.max() + 1)
        for item, count in votes.items():
            scores[item] += count
        return scores

    def _items(self, votes: Callable[[int], dict[int, int]]) -> Measurement:
        """The attacker is told how many items the user rated, names as many, and takes popular ones where in doubt."""
        hits, guesses, sizes = [], [], []
        for user in self._users:
            items = self._truth[user][0]
            claimed, guessed = named(self._with(votes(user)), len(items)), named(self._popularity, len(items))
            hits.append(int(np.isin(items, claimed).sum()))
            guesses.append(int(np.isin(items, guessed).sum()))
            sizes.append(len(items))
        return share_by_user(hits, guesses, sizes)

    def _usual_ratings(self, colluders: tuple[int, ...]) -> Floats:
        """Of each item, the likeliest among the colluders' ratings."""
        counts = np.zeros((len(self._popularity), len(self._levels)))
        for user in colluders:
            items, ratings = self._truth[user]
            np.add.at(counts, (items, np.searchsorted(self._levels, ratings)), 1)
        return np.asarray(self._levels[item_prior(counts).argmax(axis=1)])

    def _ratings(self, reads: dict[int, Read]) -> Measurement:
        hits, guesses, sizes = [], [], []
        for user in self._users:
            items, ratings = self._truth[user]
            claimed = self._usual.copy()
            if (read := reads[user]).ratings is not None:
                claimed[read.items] = read.ratings
            hits.append(int(np.isclose(claimed[items], ratings).sum()))
            guesses.append(int(np.isclose(self._usual[items], ratings).sum()))
            sizes.append(len(items))
        return share_by_user(hits, guesses, sizes)

    def _vectors(self, reads: dict[int, Read]) -> Measurement:
        read = [reads[user].vector for user in self._users]
        claimed = [self._mean_vector if vector is None else vector for vector in read]
        true = [self._seen.own[user].vector for user in self._users]
        hits = [are_alike(one, other) for one, other in zip(claimed, true, strict=True)]
        guesses = [are_alike(self._mean_vector, vector) for vector in true]
        return share_of_trials(np.array(hits, np.bool_), np.array(guesses, np.bool_))

    def _lists(self, reads: dict[int, Read]) -> Measurement:
        hits, guesses, sizes = [], [], []
        for user in self._users:
            best, read, claimed = self._seen.own[user].best, reads[user], self._usual_list
            if read.scores is not None:
                claimed = best_unrated(read.scores, read.items, len(best)).astype(np.int64)
            hits.append(int(np.isin(best, claimed).sum()))
            guesses.append(int(np.isin(best, self._usual_list).sum()))
            sizes.append(len(best))
        return share_by_user(hits, guesses, sizes)


def table_1(excess: float, mode: str, *, tick: bool) -> Finding:
    """What the largest distance of an attack from guessing says of the paper's tick or cross."""
    source = f"LightFR (TOIS 2023), Table 1: {'a tick' if tick else 'a cross'} for privacy"
    holds = tick == (excess <= MARGIN)
    return of_the_paper(TABLE_1, source, counted(0, excess), "share above guessing", holds=holds, mode=mode)


def are_alike(one: Floats | None, other: Floats | None) -> bool:
    """Whether two vectors point the same way."""
    if one is None or other is None:
        return False
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return bool(lengths and one @ other >= ALIKE * lengths)


def _epsilon(method: PrivRec, mode: str) -> Finding:
    noise = method.options.noise
    hidden = epsilon(noise, STEPS, FRACTION)
    note = (
        f"Of the published tables of {STEPS} rounds at delta {DELTA:g}; {hidden:.1f} if nobody knows who took part. "
        "The server adds the noise, so it says nothing of what the server itself sees."
    )
    stated = epsilon(noise, STEPS)
    return for_information(EPSILON, SOURCE, counted(stated, stated, note), EPSILON, mode)


def lightfr_findings(record: PrivacyRecord) -> list[FindingFields]:
    """Of a record of LightFR's own modes, the figures that the table has of other methods too.

    The paper's tick is for what it published, which are the modes called paper.
    """
    whole_runs = [run for run in record.runs if not run["gate_only"]]
    modes = {run["mode"] for run in whole_runs}
    found = [each for each in record.findings if each["claim"] in (ITEMS, RATINGS, CODES) and each["mode"] in modes]
    for mode in (mode for mode in sorted(modes) if mode.startswith("paper")):
        excess = max((each["measured"] or 0) - each["predicted"] for each in found if each["mode"] == mode)
        found.append(table_1(excess, mode, tick=True).record())
    for run_ in whole_runs:
        if loss := run_["privacy_loss"]:
            note = f"Of everything that leaves a device in {loss['rounds']} rounds, at delta {loss['delta']:g}."
            stated = counted(loss["epsilon"], loss["epsilon"], note)
            found.append(for_information(EPSILON, "docs/privacy-dp.md", stated, EPSILON, run_["mode"]).record())
    return found
