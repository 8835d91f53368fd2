"""Sums of evaluations: a planted leak is found, and what is asked about a device is what it would add."""

from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest

from lightfr.interactions import LEVELS, MIDDLE, Interactions
from lightfr_harness.audits.privacy import evaluations
from lightfr_harness.audits.privacy.evaluation_sums import (
    KNOWN,
    ask_dislike,
    ask_newest,
    device_hits,
    expected_hits,
    observe_evaluation,
    part_of,
)
from lightfr_harness.audits.privacy.run import _training_and_evaluations


@pytest.fixture(scope="module")
def seen(secagg):
    return observe_evaluation(secagg[0], np.arange(30), np.random.default_rng(0))


def without_noise(seen):
    """A planted leak: the devices leave their noise out."""
    hits = np.sum(list(seen.added.values()), axis=0)
    return replace(seen, view=replace(seen.view, hits=hits, variance=1e-3))


def test_a_sum_has_what_its_devices_added_and_the_noise_of_four_fifths(seen):
    noise = without_noise(seen).view.hits - seen.view.hits
    assert np.var(noise) == pytest.approx(seen.view.variance, rel=0.2)
    assert seen.view.variance == pytest.approx(128 * 4 / 5)


def test_what_is_expected_of_a_device_is_the_mean_of_what_it_adds(secagg, seen):
    """But for the candidate that ranks by chance."""
    device, rng = secagg[0].fleet.devices[3], np.random.default_rng(1)
    mean = np.mean([device_hits(seen.view, device, rng) for _ in range(400)], axis=0)
    expected = expected_hits(seen.view, device, device.interactions)
    is_chance = np.arange(len(mean)) % (len(mean) // 8) >= len(mean) // 8 - 2
    assert np.abs(mean - expected)[~is_chance].max() < 0.1


def test_the_right_answer_is_what_the_device_adds(secagg, seen):
    device = secagg[0].fleet.devices[4]
    expected = expected_hits(seen.view, device, device.interactions)
    dislike = ask_dislike(seen.view, device, 0.2)
    newest = ask_newest(seen.view, device, np.random.default_rng(2))
    is_chance = np.arange(len(expected)) % (len(expected) // 8) >= len(expected) // 8 - 2
    for question, n in ((dislike, 2), (newest, KNOWN)):
        assert len(question.answers) == len(question.odds) == n
        assert (question.answers[question.truth] == expected)[~is_chance].all()
    _, level = device.interactions.newest()
    assert dislike.truth == part_of(device.interactions) % 2 == (level < MIDDLE)


def test_a_pair_of_evaluations_without_noise_and_with_the_same_draws_tells_everything(secagg, seen):
    """The leak that fresh draws and noise close: nothing but the one device differs."""
    run, capture, _ = secagg
    bare, targets = without_noise(seen), list(range(30))
    reader = evaluations.EvaluationReader(run, capture, 0)
    for trials, least in zip(reader.read_pair(bare, bare, targets), (1.0, 0.5, 0.95), strict=True):
        assert np.mean([trial.right(1.0, 0.0) for trial in trials]) >= least


def test_cohorts_evaluate_after_every_tenth_that_trains():
    training, evaluating = _training_and_evaluations(tuple(range(24)))
    assert evaluating == (10, 21)
    assert training == tuple(index for index in range(24) if index not in evaluating)


def test_attackers_whose_devices_have_too_few_opinions_ask_nothing():
    devices = [Namespace(interactions=Interactions((item, LEVELS) for item in range(count))) for count in (1, 0, 5)]
    run, capture = Namespace(fleet=Namespace(devices=devices)), Namespace(knowledge=Namespace(colluders=(0, 1)))
    assert evaluations.audit(run, [], capture, 3, 0, private=True) == []
