"""Sums over cohorts that an attacker would choose, for the final matrix; devices and server are put back after each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from lightfr.secagg.contribution import vector_without_noise
from lightfr.secagg.noise import COUNT_VARIANCE
from lightfr_harness.audits.capture import ONE_NOISELESS_IN, CapturingRun, CohortSum, Ints, Observed, sum_of_blocks
from lightfr_harness.audits.privacy.differences import DifferenceTrial, GateTrial
from lightfr_harness.audits.privacy.small_cohort import Behind, CohortTrial
from lightfr_harness.simulation.collecting import catalogue_of, ternary_sum

# Devices in the small-cohort trials of one size, about, and trials at most.
TRIAL_DEVICES, MOST_TRIALS = 48, 8
# Pairs of sums, and of each the devices that are asked about; pairs of gate refreshes.
PAIRS, TARGETS_OF_PAIR = 10, 40
GATE_PAIRS = 400


def small_cohorts(run: CapturingRun, size: int, seed: int) -> list[CohortTrial]:
    """Sums over random cohorts of one size."""
    trials = []
    for index in range(max(1, min(MOST_TRIALS, TRIAL_DEVICES // size))):
        rng = np.random.default_rng([seed, 23, size, index])
        drawn = rng.permutation(len(run.fleet))
        with _put_back(run):
            inside, outside = run.observe(drawn[:size], rng), run.observe(drawn[size : 2 * size], rng)
        trials.append(CohortTrial(inside.view, _behind(inside), _behind(outside)))
    return trials


def _behind(seen: Observed) -> Behind:
    rows = [np.array(update.item_indices, np.int64) for update in seen.updates.values()]
    return Behind(np.array(list(seen.codes.values()), np.int8), rows)


def round_pairs(run: CapturingRun, size: int, seed: int, *, next_matrix: bool) -> list[DifferenceTrial]:
    """A cohort twice, the first time less one device, on the same matrix or on the one after.

    The first sum is made once with everybody, and each target's part is then taken out of it.
    """
    trials = []
    for index in range(PAIRS):
        rng = np.random.default_rng([seed, 29, index])
        cohort = _draw(rng, len(run.fleet), size)
        with _put_back(run):
            first = run.observe(cohort, rng)
            if next_matrix:
                run.move(first.view)
            second = run.observe(cohort, rng)
        for target in rng.permutation(cohort)[:TARGETS_OF_PAIR].tolist():
            rows = np.array(second.updates[target].item_indices, np.int64)
            without = _without(run, first, target)
            trials.append(DifferenceTrial(without, second.view.total, second.codes[target], rows))
    return trials


def _without(run: CapturingRun, seen: Observed, target: int) -> CohortSum:
    total, n = seen.view.total, seen.view.total.n_devices
    vector = vector_without_noise(seen.view.published, seen.updates[target], n)
    part = sum_of_blocks(
        catalogue_of(run.server), {block.name: np.asarray(vector[block.name]) for block in vector.blocks}, 1
    )
    return replace(
        total, rows=total.rows - part.rows, user_sum=total.user_sum - part.user_sum, weight=total.weight - part.weight
    )


def gate_pairs(run: CapturingRun, size: int, seed: int) -> list[GateTrial]:
    """Counts over a cohort, and over the same with one device less, each with its noise."""
    rng = np.random.default_rng([seed, 41])
    sets = [np.array(device.interactions.arrays()[0], np.int64) for device in run.fleet.devices]
    honest = size - size // ONE_NOISELESS_IN
    trials = []
    for _ in range(GATE_PAIRS):
        cohort = _draw(rng, len(run.fleet), size)
        counts = np.bincount(np.concatenate([sets[user] for user in cohort.tolist()]), minlength=run.server.n_items)
        target = sets[int(rng.choice(cohort))]
        noise = [ternary_sum(size, honest, COUNT_VARIANCE, run.server.n_items, rng) for _ in range(2)]
        without = counts.copy()
        without[target] -= 1
        trials.append(GateTrial(without + noise[0], counts + noise[1], target))
    return trials


@contextmanager
def _put_back(run: CapturingRun) -> Iterator[None]:
    codes, state = run.fleet.codes().copy(), {name: value.copy() for name, value in run.server.state().items()}
    yield
    run.fleet.restore(codes)
    run.server.restore(state)


def _draw(rng: np.random.Generator, n_users: int, size: int) -> Ints:
    return np.sort(rng.choice(n_users, size, replace=False))
