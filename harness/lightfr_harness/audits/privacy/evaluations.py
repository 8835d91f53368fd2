"""Claim: what cohorts add up in evaluations does not tell what one user thinks, nor how much.

A device sets its bits in one of eight parts of the sum, by its user's number of opinions and by whether the newest is a
dislike; the bits say how well each candidate ranked the newest item. The coordinator knows who is in a cohort and which
items were drawn. It asks three questions: is the newest opinion a dislike, and which of ten items is the newest, both
knowing everything else of the user, the code too; and which part is the user's, knowing nothing.

Every answer means other numbers. What the others of the cohort and the noise add is taken as Gaussian: the attacker's
own devices say how much numbers of one part vary together, from user to user and with the items that are drawn, and the
sum itself how many devices have which part. The likelihoods of the answers and their usual odds decide; trials with
devices of its own teach the attacker how much each is worth. O(rounds (PARTS width)^3), width the numbers of
one part.

Each question is asked of single evaluations, of all evaluations of a campaign that the user is in, and of two
evaluations whose cohorts differ by the one device. Guessing: the same on sums that the device is not in, or the
likeliest answer without any sum, whichever is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from lightfr_harness.audits.capture import Capture, CapturingRun, Floats, Ints
from lightfr_harness.audits.finding import Finding, Measurement, wilson
from lightfr_harness.audits.privacy.evaluation_sums import (
    DIGEST_BYTES,
    KNOWN,
    PARTS,
    Evaluated,
    EvaluationView,
    Question,
    ask_dislike,
    ask_newest,
    ask_part,
    device_hits,
    observe_evaluation,
    part_of,
)
from lightfr_harness.audits.privacy.scoring import judged

QUESTIONS = (
    "dislikes told, knowing all else,",
    "newest items named among ten, knowing all else,",
    "numbers of opinions and dislikes told",
)
ONE, ALL, APART = "from one evaluation", "from all evaluations", "from two evaluations one device apart"
# Draws of items that the attacker's devices are tried on.
DRAWS = 8
# How far the likelihoods are believed, and what an expected hit adds to the odds of an answer: a newest item, which has
# taught nothing, is ranked worse than those before it.
BELIEFS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
BIASES = (-0.2, -0.1, -0.05, -0.025, 0.0, 0.025, 0.05)
# Pairs of evaluations, and one device in so many that is asked about; one trial in four is about an own device.
PAIRS, ONE_ASKED_IN, OWN = 10, 4, 4


@dataclass(frozen=True, repr=False)
class Others:
    """What the attacker knows of a cohort's other devices: the shares of the parts, and what they fill them with."""

    shares: Floats
    means: Floats
    moments: Floats
    """Second moments of what a device adds."""
    redrawn: Floats
    """How it varies with the items that are drawn, from device to device differently."""
    common: Floats
    """How it varies with them for all devices together."""


@dataclass(frozen=True, repr=False)
class Trial:
    """A question about one device; the log-likelihoods of its answers by the sums, and by sums without the device."""

    user: int
    question: Question
    fits: Floats
    fits_without: Floats

    def plus(self, other: Trial) -> Trial:
        """The same with what another evaluation says."""
        return replace(self, fits=self.fits + other.fits, fits_without=self.fits_without + other.fits_without)

    def without(self) -> Trial:
        """The same where the device is not there."""
        return replace(self, fits=self.fits_without)

    def right(self, belief: float, bias: float) -> float:
        """The chance that the likeliest answer is the right one; equally likely ones are drawn among."""
        odds = self._odds(belief, bias)
        best = odds >= odds.max() - 1e-9
        return float(best[self.question.truth] / best.sum())

    def log_likelihood(self, belief: float, bias: float) -> float:
        """Of the right answer."""
        odds = self._odds(belief, bias)
        return float(odds[self.question.truth] - np.logaddexp.reduce(odds))

    def _odds(self, belief: float, bias: float) -> Floats:
        return np.asarray(self.question.odds + belief * self.fits + bias * self.question.answers.sum(axis=1))


def learn_others(run: CapturingRun, view: EvaluationView, own: Sequence[int], rng: np.random.Generator) -> Others:
    """Try own devices on several draws of items: what they fill their parts with."""
    devices = [run.fleet.devices[user] for user in own if len(run.fleet.devices[user].interactions) > 1]
    parts = np.array([part_of(device.interactions) for device in devices])
    draws = [replace(view, roster_digest=rng.bytes(DIGEST_BYTES)) for _ in range(DRAWS)]
    hits = np.array([[device_hits(drawn, device, rng) for device in devices] for drawn in draws], np.float64)
    filled = hits.reshape(DRAWS, len(devices), PARTS, -1)[:, np.arange(len(devices)), parts]
    moments = np.einsum("kdw,kdv->wv", filled, filled) / (DRAWS * len(devices))
    by_draw = np.mean([np.cov(each.T) for each in filled.swapaxes(0, 1)], axis=0)
    common = _no_less_than_zero(np.cov(filled.mean(axis=1).T) - by_draw / len(devices))
    counts = np.maximum(view.hits.reshape(PARTS, -1)[:, 0], 0)
    shares = counts / max(counts.sum(), 1)
    return Others(shares, filled.mean(axis=(0, 1)), moments, _no_less_than_zero(by_draw - common), common)


def _no_less_than_zero(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def usual_sum(others: Others, n: int) -> tuple[Floats, Floats]:
    """Mean and covariance, without noise, of what n devices add to one evaluation."""
    p, mean = others.shares, np.kron(others.shares, others.means)
    covariance = n * np.kron(np.diag(p), others.moments) + n**2 * np.kron(np.outer(p, p), others.common)
    return np.asarray(n * mean, np.float64), np.asarray(covariance - n * np.outer(mean, mean), np.float64)


def usual_difference(others: Others, n: int) -> Floats:
    """Covariance of what n devices add to one evaluation and not to the other: their parts stay, their ranks do not."""
    p = others.shares
    return np.asarray(2 * n * np.kron(np.diag(p), others.redrawn) + 2 * n**2 * np.kron(np.outer(p, p), others.common))


def log_likelihoods(question: Question, seen: Floats, precision: Floats) -> Floats:
    """Of every answer, when `seen` is what it adds and Gaussian noise."""
    return np.asarray(
        question.answers @ precision @ seen - ((question.answers @ precision) * question.answers).sum(1) / 2
    )


def ask(
    run: CapturingRun, view: EvaluationView, others: Others, user: int, usual: float, seed: int
) -> list[Question | None]:
    """The three questions about a user; None where it has too few opinions to be asked."""
    device = run.fleet.devices[user]
    n = len(device.interactions)
    return [
        ask_dislike(view, device, usual) if n > 1 else None,
        ask_newest(view, device, np.random.default_rng([seed, 59, user])) if n >= KNOWN else None,
        ask_part(device, others.means, others.shares) if n > 1 else None,
    ]


class EvaluationReader:
    """Asks about devices. `own` are the attacker's; `usual` is the share of dislikes among their newest opinions."""

    def __init__(self, run: CapturingRun, capture: Capture, seed: int) -> None:
        self.run, self.own, self._seed = run, capture.knowledge.colluders, seed
        self._rng = np.random.default_rng([seed, 47])
        told = [part_of(run.fleet.devices[user].interactions) % 2 for user in self.own]
        self._usual = float(np.clip(np.mean(told), 0.01, 0.99))

    def read_one(self, seen: Evaluated) -> list[list[Trial]]:
        """By question, a trial for each device of an evaluation."""
        view = seen.view
        others = learn_others(self.run, view, self.own, self._rng)
        mean, covariance = usual_sum(others, len(view.devices) - 1)
        precision = np.asarray(np.linalg.inv(covariance + view.variance * np.eye(len(mean))), np.float64)
        sums = [(user, view.hits - mean, seen.added[user]) for user in view.devices]
        return self._trials(view, others, sums, precision)

    def read_pair(self, without: Evaluated, with_one: Evaluated, targets: Iterable[int]) -> list[list[Trial]]:
        """The same for targets that only the second evaluation has: their part is taken out of the first.

        Each target is asked of sums with noise of their own, so that the trials do not share their luck.
        """
        view = with_one.view
        others = learn_others(self.run, view, self.own, self._rng)
        noise = (without.view.variance + view.variance) * np.eye(len(view.hits))
        usual = usual_difference(others, len(view.devices) - 1)
        precision = np.asarray(np.linalg.inv(usual + noise), np.float64)
        first = {user: without.add_up(self._rng) - without.added[user] for user in targets}
        differences = [(user, with_one.add_up(self._rng) - first[user], with_one.added[user]) for user in first]
        return self._trials(view, others, differences, precision)

    def _trials(
        self, view: EvaluationView, others: Others, seen: list[tuple[int, Floats, Ints]], precision: Floats
    ) -> list[list[Trial]]:
        """`seen` has users, the numbers to read, and what the user added to them."""
        trials: list[list[Trial]] = [[] for _ in QUESTIONS]
        for user, numbers, added in seen:
            for kind, question in zip(trials, ask(self.run, view, others, user, self._usual, self._seed), strict=True):
                if question is not None:
                    fits = [log_likelihoods(question, each, precision) for each in (numbers, numbers - added)]
                    kind.append(Trial(user, question, *fits))
        return trials


def audit(
    run: CapturingRun, evaluations: list[Evaluated], capture: Capture, size: int, seed: int, *, private: bool
) -> list[Finding]:
    """All questions, in each setting; none where no device of the attacker has the opinions to learn from."""
    if all(len(run.fleet.devices[user].interactions) < 2 for user in capture.knowledge.colluders):
        return []
    reader, own = EvaluationReader(run, capture, seed), set(capture.knowledge.colluders)
    by_evaluation = [reader.read_one(seen) for seen in evaluations]
    by_setting = {
        ONE: [[trial for trials in by_evaluation for trial in trials[kind]] for kind in range(len(QUESTIONS))],
        APART: _pairs(reader, size, seed),
    }
    by_setting[ALL] = [_added_up(trials) for trials in by_setting[ONE]]
    findings = []
    for setting, kinds in by_setting.items():
        for question, trials in zip(QUESTIONS, kinds, strict=True):
            is_own = [place % OWN == 0 if setting == APART else trial.user in own for place, trial in enumerate(trials)]
            mine = [trial for trial, mine in zip(trials, is_own, strict=True) if mine]
            asked = [trial for trial, mine in zip(trials, is_own, strict=True) if not mine]
            if asked:
                what = _measure(mine, asked)
                findings.append(judged(f"{question} {setting}", what, "share of users", capture.mode, private=private))
    return findings


def _pairs(reader: EvaluationReader, size: int, seed: int) -> list[list[Trial]]:
    """A cohort evaluates twice, the first time less one device; the items are drawn anew."""
    found: list[list[Trial]] = [[] for _ in QUESTIONS]
    for index in range(PAIRS):
        rng = np.random.default_rng([seed, 53, index])
        cohort = np.sort(rng.choice(len(reader.run.fleet), size, replace=False))
        first, second = (observe_evaluation(reader.run, cohort, rng) for _ in range(2))
        targets = rng.permutation(cohort)[: max(1, size // ONE_ASKED_IN)].tolist()
        for kind, trials in zip(found, reader.read_pair(first, second, targets), strict=True):
            kind += trials
    return found


def _added_up(trials: list[Trial]) -> list[Trial]:
    """One trial for each user: answers keep their order from evaluation to evaluation."""
    by_user: dict[int, Trial] = {}
    for trial in trials:
        by_user[trial.user] = by_user[trial.user].plus(trial) if trial.user in by_user else trial
    return list(by_user.values())


def _measure(own: list[Trial], asked: list[Trial]) -> Measurement:
    n, right = len(asked), _right(own, asked, BELIEFS)
    elsewhere = _right([trial.without() for trial in own], [trial.without() for trial in asked], BELIEFS)
    guessed = max(elsewhere, _right(own, asked, BELIEFS[:1]))
    return Measurement(guessed / n, right / n, wilson(right, n), f"n = {n}.")


def _right(own: list[Trial], asked: list[Trial], beliefs: Sequence[float]) -> float:
    """How many answers are right, with the weights that are best for own devices."""
    weights = max(product(beliefs, BIASES), key=lambda weights: sum(trial.log_likelihood(*weights) for trial in own))
    return sum(trial.right(*weights) for trial in asked)
