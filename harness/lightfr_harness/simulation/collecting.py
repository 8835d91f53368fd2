"""How what the devices of a simulated round have to say reaches the server: in the clear, or as a sum."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lightfr.errors import InvalidInputError
from lightfr.secagg.contribution import blocks_of, vector_without_noise
from lightfr.secagg.noise import row_variance, ternary_threshold, user_sum_thousandths, weight_thousandths
from lightfr.training import PublishedModel, RowUpdate
from lightfr.v1 import model_pb2
from lightfr_harness.server.coordinator.phases import REVEALING, UPLOADING
from lightfr_harness.server.rules import AggregationRule, CatalogueRule, PaperRule
from lightfr_harness.server.rules.secagg import SecureSumError
from lightfr_harness.simulation.asking import Share
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


def count_clear(server: AggregationRule, share: Share) -> Collected:
    """What uploads in the clear add up to."""
    sums = {name: numbers.astype(np.int64) for name, numbers in share.sums.items()}
    if isinstance(server, PaperRule):
        server.add_sums(sums["rows"])
    else:
        catalogue_of(server).add_sums(**sums)
    return Collected(share.up_bytes, 0, share.cpu_seconds, 0.0)


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


def count_unmasked(server: AggregationRule, share: Share, devices: int, random: np.random.Generator) -> Collected:
    """The sum that masks would have given, without them. No bytes are counted.

    `devices` is the roster's size, those that dropped out included.
    """
    if not share.devices:
        return Collected(0, 0, share.cpu_seconds, 0.0, abandoned=True)
    catalogue, started = catalogue_of(server), time.process_time()
    sums = {name: numbers.astype(np.int64) for name, numbers in share.sums.items()}
    add_noise(sums, catalogue.code_bits, catalogue.noise, devices, share.devices, random)
    catalogue.add_cohort(sums, share.devices)
    return Collected(0, 0, share.cpu_seconds + time.process_time() - started, 0.0)


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
    add_noise(totals, model.code_bits, model.noise, devices, len(updates), random)
    return totals


def add_noise(
    sums: dict[str, npt.NDArray[np.int64]],
    code_bits: int,
    noise: model_pb2.Noise | None,
    devices: int,
    survivors: int,
    random: np.random.Generator,
) -> None:
    """Add to the sums of a round the noise of its survivors, drawn once."""
    if noise:
        sums["rows"] += _gaussian_sum(noise.rows_thousandths, survivors, sums["rows"].size, random)
        sums["user_sum"] += _gaussian_sum(noise.sums_thousandths, survivors, code_bits, random)
    else:
        sums["rows"] += ternary_sum(devices, survivors, row_variance(code_bits), sums["rows"].size, random)
        sums["user_sum"] += _gaussian_sum(user_sum_thousandths(devices), survivors, code_bits, random)
        sums["weight"] += _gaussian_sum(weight_thousandths(devices), survivors, 1, random)


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
