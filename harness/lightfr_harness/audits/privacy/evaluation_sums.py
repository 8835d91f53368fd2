"""Sums of evaluation rounds as the coordinator sees them, and what an attacker asks about a device behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lightfr.evaluation import GAINS, SHOWN, evaluation_without_noise, ranks
from lightfr.interactions import MIDDLE, Interactions
from lightfr.rankings import GROUPS, Rankings, group_of
from lightfr.secagg.noise import EVALUATION_VARIANCE
from lightfr.training import PublishedModel
from lightfr_harness.audits.capture import ONE_NOISELESS_IN, CapturingRun, Floats, Ints
from lightfr_harness.server.rules.evaluation import variance_of
from lightfr_harness.simulation.choosing import rankings_of
from lightfr_harness.simulation.fleet import SimulatedDevice

DIGEST_BYTES = 32
# A device fills one part of the block `hits`, by its group and by whether its newest opinion is a dislike.
PARTS = 2 * len(GROUPS)
# Items among which an attacker is to name the newest.
KNOWN = 10


@dataclass(frozen=True)
class EvaluationView:
    """One evaluation as the coordinator sees it."""

    model: PublishedModel
    rankings: Rankings
    roster_digest: bytes
    devices: tuple[int, ...]
    hits: Ints
    variance: float
    """Of the noise of those who do not collude."""


@dataclass(frozen=True, repr=False)
class Evaluated:
    """A view, and apart from it what each device added."""

    view: EvaluationView
    added: Mapping[int, Ints]

    def add_up(self, rng: np.random.Generator) -> Ints:
        """A sum with other noise: Gaussian and rounded, as good as that of many devices."""
        total = np.sum(list(self.added.values()), axis=0)
        noise = np.rint(rng.normal(0, self.view.variance**0.5, len(total)))
        return np.asarray(total + noise.astype(np.int64))


@dataclass(frozen=True, repr=False)
class Question:
    """What an attacker asks about a device: for each answer what the device would add, and the answer's log odds.

    `truth` is the place of the right answer. For scoring only.
    """

    answers: Floats
    odds: Floats
    truth: int


def observe_evaluation(run: CapturingRun, cohort: Ints, rng: np.random.Generator) -> Evaluated:
    """Let a cohort evaluate the current model, without masks; a fifth of the devices add no noise."""
    model, rankings, n = run.published(), rankings_of(run.server), len(cohort)
    honest = n - n // ONE_NOISELESS_IN
    noise = run.server.noise
    variance = EVALUATION_VARIANCE * honest / n if noise is None else variance_of(noise, honest)
    digest, users = rng.bytes(DIGEST_BYTES), tuple(cohort.tolist())
    view = EvaluationView(model, rankings, digest, users, np.zeros(0, np.int64), variance)
    seen = Evaluated(view, {user: device_hits(view, run.fleet.devices[user], rng) for user in users})
    return replace(seen, view=replace(view, hits=seen.add_up(rng)))


def device_hits(view: EvaluationView, device: SimulatedDevice, rng: np.random.Generator) -> Ints:
    """What a device adds to this evaluation, without noise."""
    asked = view.model, view.rankings, device.interactions, device.code, view.roster_digest, len(view.devices)
    return np.array(evaluation_without_noise(*asked, rng.bytes)["hits"], np.int64)


def expected_hits(view: EvaluationView, device: SimulatedDevice, opinions: Interactions) -> Floats:
    """What the device would add if these were its opinions, on average over its draw."""
    held_out, _ = opinions.newest() or (0, 0)
    asked = view.model, view.rankings, opinions.without(held_out), held_out, device.code, view.roster_digest
    # Zeros for what is random: nobody can expect how chance ranks.
    places = np.array(ranks(*asked, bytes))
    hits = np.zeros((PARTS, 1 + 2 * len(places)))
    part = hits[part_of(opinions)]
    part[0], part[1::2] = 1, places <= SHOWN
    part[2::2] = np.array([*GAINS, 0])[np.minimum(places, SHOWN + 1) - 1] / 65536
    return hits.ravel()


def part_of(opinions: Interactions) -> int:
    """The part that a device with these opinions fills."""
    _, level = opinions.newest() or (0, 0)
    return 2 * group_of(len(opinions) - 1) + (level < MIDDLE)


def ask_dislike(view: EvaluationView, device: SimulatedDevice, usual: float) -> Question:
    """Is the newest opinion a dislike? All else is known; `usual` is the share of dislikes."""
    opinions = device.interactions
    as_it_is = expected_hits(view, device, opinions).reshape(len(GROUPS), 2, -1)
    answers = np.stack([as_it_is, as_it_is[:, ::-1]]).reshape(2, -1)
    is_dislike = part_of(opinions) % 2
    liked_first = answers[::-1] if is_dislike else answers
    return Question(liked_first, np.log([1 - usual, usual]), is_dislike)


def ask_newest(view: EvaluationView, device: SimulatedDevice, rng: np.random.Generator) -> Question:
    """Which of ten items is the newest? All else is known, the order of the others too."""
    items, levels = (column.tolist() for column in device.interactions.arrays())
    known = [*rng.choice(items[:-1], KNOWN - 1, replace=False).tolist(), items[-1]]
    level = dict(zip(items, levels, strict=True))
    orders = [[item for item in items if item != newest] + [newest] for newest in known]
    answers = [expected_hits(view, device, Interactions((item, level[item]) for item in order)) for order in orders]
    return Question(np.array(answers), np.zeros(KNOWN), KNOWN - 1)


def ask_part(device: SimulatedDevice, means: Floats, shares: Floats) -> Question:
    """How many opinions has the user, by group, and is the newest a dislike? Nothing is known.

    `means` is what devices add on average to their part, `shares` how many have which.
    """
    answers = np.zeros((PARTS, PARTS, len(means)))
    answers[np.arange(PARTS), np.arange(PARTS)] = means
    return Question(answers.reshape(PARTS, -1), np.log(np.maximum(shares, 1e-3)), part_of(device.interactions))
