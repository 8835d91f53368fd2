"""How what the devices of a simulated round have to say reaches the server: in the clear, or as a sum."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lightfr import _wire
from lightfr.errors import InvalidInputError
from lightfr.secagg.contribution import blocks_of, vector_without_noise
from lightfr.secagg.noise import row_variance, ternary_threshold, user_sum_thousandths, weight_thousandths
from lightfr.training import PublishedModel, RowUpdate
from lightfr.v1 import model_pb2
from lightfr_harness.server.coordinator.cohort import REVEALING, UPLOADING
from lightfr_harness.server.rules import AggregationRule, CatalogueRule
from lightfr_harness.server.rules.secagg import SecureSumError
from lightfr_harness.simulation.secure import SecureRound


@dataclass(frozen=True)
class Cohort:
    """The devices of a round: what they would upload, which never do, and which fall silent after it."""

    model: PublishedModel
    updates: list[RowUpdate]
    drops: npt.NDArray[np.bool_]
    silent: npt.NDArray[np.bool_]
    random: np.random.Generator


@dataclass(frozen=True)
class Collected:
    """What a round cost beside the fits and the download of the model: bytes inside messages, and CPU time."""

    up_bytes: int
    down_bytes: int
    device_seconds: float
    server_seconds: float
    abandoned: bool = False


Collector = Callable[[AggregationRule, Cohort], Collected]


def collector_of(server: AggregationRule, *, masked: bool) -> Collector:
    """The way that belongs to the server's privacy mode."""
    if server.privacy_mode == model_pb2.PRIVACY_MODE_CLEAR:
        return collect_clear
    return collect_masked if masked else collect_unmasked


def collect_clear(server: AggregationRule, cohort: Cohort) -> Collected:
    """Every device that does not drop out uploads its rows as they are."""
    started = time.process_time()
    uploads = [
        _wire.encode_update(update) for update, drop in zip(cohort.updates, cohort.drops, strict=True) if not drop
    ]
    encoded = time.process_time()
    for upload in uploads:
        server.add(upload)
    return Collected(sum(map(len, uploads)), 0, encoded - started, time.process_time() - encoded)


def collect_masked(server: AggregationRule, cohort: Cohort) -> Collected:
    """All steps of secure aggregation, with devices that leave before some of them.

    When so many are gone that a device or the server cannot go on, the round is abandoned.
    """
    secure = SecureRound.of_updates(cohort.model, cohort.updates, cohort.random.bytes)
    leaves = leave_before(cohort.drops)
    try:
        secure.run(lambda phase: cohort.silent if phase == REVEALING else leaves == phase)
        sums = secure.finish()
    except SecureSumError:
        return Collected(*secure.cost(), abandoned=True)
    catalogue_of(server).add_cohort(sums, secure.survivors)
    return Collected(*secure.cost())


def leave_before(drops: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The phase before which each device drops out, in turn all up to the upload; 0 for those that stay."""
    steps = np.zeros(len(drops), np.int64)
    steps[drops] = 1 + np.arange(np.count_nonzero(drops)) % UPLOADING
    return steps


def collect_unmasked(server: AggregationRule, cohort: Cohort) -> Collected:
    """The sum that masks would have given, without them. No bytes are counted."""
    started = time.process_time()
    staying = [update for update, drop in zip(cohort.updates, cohort.drops, strict=True) if not drop]
    if not staying:
        return Collected(0, 0, 0.0, 0.0, abandoned=True)
    sums = sums_without_masks(cohort.model, staying, len(cohort.updates), cohort.random)
    catalogue_of(server).add_cohort(sums, len(staying))
    return Collected(0, 0, time.process_time() - started, 0.0)


def sums_without_masks(
    model: PublishedModel, updates: list[RowUpdate], devices: int, random: np.random.Generator
) -> dict[str, npt.NDArray[np.int64]]:
    """By block, what the updates add up to, with the noise of the devices that made them.

    `devices` is the roster's size, those that dropped out included.
    """
    totals = {block.name: np.zeros(block.count, np.int64) for block in blocks_of(model, devices)}
    for update in updates:
        vector = vector_without_noise(model, update, devices)
        for name, total in totals.items():
            total += np.asarray(vector[name])
    n = len(updates)
    if model.noise:
        totals["rows"] += _gaussian_sum(model.noise.rows_thousandths, n, totals["rows"].size, random)
        totals["user_sum"] += _gaussian_sum(model.noise.sums_thousandths, n, model.code_bits, random)
    else:
        variance = row_variance(model.code_bits)
        totals["rows"] += ternary_sum(devices, n, variance, totals["rows"].size, random)
        totals["user_sum"] += _gaussian_sum(user_sum_thousandths(devices), n, model.code_bits, random)
        totals["weight"] += _gaussian_sum(weight_thousandths(devices), n, 1, random)
    return totals


def ternary_sum(
    devices: int, survivors: int, variance: int, n: int, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """n sums of the ternary noise of so many survivors of a roster: exactly their distribution.

    `variance` is that of the sum over all of the roster.
    """
    chance = ternary_threshold(devices, variance) / 65536
    not_zero = random.binomial(survivors, 2 * chance, n)
    return 2 * random.binomial(not_zero, 0.5) - not_zero


def _gaussian_sum(thousandths: int, survivors: int, n: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """A rounded Gaussian of the summed variance: for accuracy as good as a sum of discrete ones, not for privacy."""
    return np.rint(random.normal(0, thousandths / 1000 * survivors**0.5, n)).astype(np.int64)


def catalogue_of(server: AggregationRule) -> CatalogueRule:
    """The server, if its objective can be summed securely."""
    if not isinstance(server, CatalogueRule):
        raise InvalidInputError("only the catalogue objective can be summed securely")
    return server
