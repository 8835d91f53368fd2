"""Whether the sum of a cohort can be what its devices had to say: docs/protocol.md, "Plausible sums".

A masked vector cannot be looked into, so one device may have put anything into a sum. What all of them together can
have said is known, in bounds, from how many there are and how many devices rate each item.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np
import numpy.typing as npt

from lightfr.errors import LightFRError
from lightfr.secagg.noise import COUNT_VARIANCE, row_variance, ternary_room
from lightfr.training.constants import CLIPPED_LENGTH, LEAST_CATALOGUE_RATINGS, MAX_WEIGHT, rated_target
from lightfr.v1.model_pb2 import Noise

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# More than five standard deviations of the noise in a row: the root of so many variances.
_ROW_REACH = 32
# Six standard deviations of the noise in weight and user sum, per device of the cohort.
_WEIGHT_REACH, _USER_SUM_REACH = 6, 24
# Of counts and of what is drawn by them.
_DEVIATIONS = 4
# More implausible rows than both spoil the sum: so many, and one in so many.
_ROWS_TOO_MANY, _ONE_IN = 3, 100
# The devices of an item agree in less than a fourth of what they say, most of all at first and when a model is spoilt.
_AGREEMENT = 4
# All clipped gradients together agree in less than half of what they say.
_CLIPPED_AGREEMENT = 2
# Of noise and uploads; what is above these and half of the uploads is cut off.
_CUT_DEVIATIONS = 3
# Fewer devices are too few to say what is usual.
_ENERGY_FROM_DEVICES = 64
# A row's trail, squared, may be so many times as long for its count as that of the middle row.
_LONGEST_TRAIL = 3
# A trail of one a round, squared. Half of it is free in any case, and more among more devices.
_PARTS = 256
_TRAIL_UNIT = (16 * _PARTS) ** 2
_TRAIL_FREE_DEVICES = 128


class ImplausibleSumError(LightFRError):
    """A sum that its devices cannot have said: one of them lied, and nothing was learnt from it."""


@dataclass(frozen=True)
class Counts:
    """How many of `devices` rate each item; 0: nobody knows how many devices were asked."""

    by_item: Numbers
    devices: int

    def of(self, rows: Mask) -> Counts:
        """Those of some rows."""
        return Counts(self.by_item[rows], self.devices)

    @property
    def _asked(self) -> int:
        """At least as many devices as the largest count."""
        return max(self.devices, int(self.by_item.max(initial=1)))

    def raters(self, survivors: int) -> Numbers:
        """How many of the survivors rate each item at most, on the average: the counts may be too low by chance."""
        highest = self.by_item + _DEVIATIONS * _root(self.by_item + COUNT_VARIANCE)
        raters: Numbers = np.minimum(survivors * highest // self._asked + 1, survivors)
        return raters

    def uploads(self, survivors: int) -> Numbers:
        """How many of them upload its row, on the average: of all rows a device uploads 64 at most."""
        rated, uploaded = survivors * self.by_item, survivors * MAX_WEIGHT * self.by_item
        uploads: Numbers = np.minimum(rated // self._asked, uploaded // max(int(self.by_item.sum()), 1)) + 1
        return uploads


def require_plausible_counts(counts: Numbers, survivors: int, noise: Noise | None = None) -> None:
    """Raise ImplausibleSumError unless each count of a gate refresh is one that so many devices can reach."""
    reach = _noise_reach(noise.counts_thousandths, survivors) if noise else ternary_room(survivors, COUNT_VARIANCE)
    if len(counts) and (int(counts.min()) < -reach or int(counts.max()) > survivors + reach):
        raise ImplausibleSumError("a count is below zero or above the number of devices")


def require_plausible_users(user_sum: Numbers, weight: int, survivors: int) -> None:
    """Raise ImplausibleSumError unless so many devices can have this weight, and these codes by their weight."""
    least, most = LEAST_CATALOGUE_RATINGS - _WEIGHT_REACH, MAX_WEIGHT + _WEIGHT_REACH
    if not least * survivors <= weight <= most * survivors:
        raise ImplausibleSumError("the weight is not what so many devices have")
    if int(np.abs(user_sum).max()) > weight + _USER_SUM_REACH * survivors:
        raise ImplausibleSumError("the user sum is larger than its weight")


def implausible_rows(rows: Numbers, counts: Counts, survivors: int) -> Mask:
    """Rows that say more than the devices that can have rated the item. `rows` and counts are of the open rows.

    Raises ImplausibleSumError when they are many.
    """
    variance = row_variance(rows.shape[1])
    raters, most = counts.raters(survivors), survivors + ternary_room(survivors, variance)
    bounds = np.minimum(raters + _DEVIATIONS * _root(raters) + isqrt(_ROW_REACH * variance), most)
    implausible: Mask = (np.abs(rows) > bounds[:, None]).any(axis=1)
    n_bad = int(implausible.sum())
    if n_bad >= _ROWS_TOO_MANY and n_bad * _ONE_IN > len(rows):
        raise ImplausibleSumError(f"{n_bad} of {len(rows)} rows say more than their devices can")
    return implausible


def require_plausible_energy(rows: Numbers, counts: Counts, survivors: int) -> None:
    """Raise ImplausibleSumError when the popular or the rare half of the rows have more in them than devices give.

    Noise gives each number its variance, and each upload one, or more as far as devices agree. Small cohorts are not
    judged by this.
    """
    if survivors < _ENERGY_FROM_DEVICES:
        return
    uploads = counts.uploads(survivors)
    usual = rows.shape[1] * (row_variance(rows.shape[1]) + uploads + (uploads // _AGREEMENT) ** 2)
    energies, order = _energies(rows), np.argsort(counts.by_item, kind="stable")
    for half in (order[: len(order) // 2], order[len(order) // 2 :]):
        expected, n_numbers = int(usual[half].sum()), rows.shape[1] * len(half)
        if int(energies[half].sum()) > _most_energy(expected, n_numbers):
            raise ImplausibleSumError("the rows together say more than their devices can")


def cut(rows: Numbers, counts: Counts, survivors: int) -> Numbers:
    """The rows with no number far above what is usual for their counts, so that one device cannot make a code alone."""
    uploads = counts.uploads(survivors)
    most = (uploads // 2 + _CUT_DEVIATIONS * _root(uploads + row_variance(rows.shape[1])))[:, None]
    return np.clip(rows, -most, most)


def shortened(rows: Numbers, trails: Numbers, counts: Counts, survivors: int) -> Numbers:
    """The rows, but those shorter that devices have pushed much further than other rows, for their counts.

    `trails` are what the devices of earlier rounds gave to the open rows, as the memory forgets it, in parts of 256.
    One that would become too long with all of its row gets as many eighths of the row as it can take.
    """
    if not len(rows):
        return rows
    energies = _energies(trails + _PARTS * rows) // _TRAIL_UNIT
    usual = int(np.median(1024 * energies // np.maximum(counts.by_item, 1)))
    free = rows.shape[1] * (survivors + _TRAIL_FREE_DEVICES) // (2 * _TRAIL_FREE_DEVICES)
    bounds = free + _LONGEST_TRAIL * usual * counts.by_item // 1024
    result, longer = rows.copy(), np.flatnonzero(energies > bounds)
    for eighths in reversed(range(8)):
        result[longer] = (eighths * rows[longer] + 4) // 8
        still = _energies(trails[longer] + _PARTS * result[longer]) // _TRAIL_UNIT > bounds[longer]
        longer = longer[still]
    return result


def require_plausible_clipped(rows: Numbers, user_sum: Numbers, noise: Noise, survivors: int) -> None:
    """Raise ImplausibleSumError unless so many devices can have these sums in mode SECAGG_DP.

    There the noise is known, each device's gradients have a largest value and a largest length, and all weigh 1.
    """
    f = len(user_sum)
    if int(np.abs(user_sum).max()) > survivors + _noise_reach(noise.sums_thousandths, survivors):
        raise ImplausibleSumError("the user sum is larger than its devices are many")
    most = survivors * (rated_target(f) + f) + _noise_reach(noise.rows_thousandths, survivors)
    if int(np.abs(rows).max(initial=0)) > most:
        raise ImplausibleSumError("a row says more than its devices can")
    length = CLIPPED_LENGTH * f * survivors
    if survivors >= _ENERGY_FROM_DEVICES:
        length //= _CLIPPED_AGREEMENT
    of_noise = rows.size * survivors * noise.rows_thousandths**2 // 1_000_000
    # As Python's integers: those of a large catalogue may be too many for 64 bits.
    if sum(_energies(rows).tolist()) > length**2 + _most_energy(of_noise, rows.size):
        raise ImplausibleSumError("the rows together say more than their devices can")


def _noise_reach(thousandths: int, devices: int) -> int:
    """Eight standard deviations of the sum of discrete Gaussian noise."""
    return isqrt(devices * (8 * thousandths) ** 2) // 1000 + 1


def _most_energy(expected: int, n_numbers: int) -> int:
    """An eighth on top, and more than five standard deviations."""
    return expected + expected // 8 + 8 * expected // max(isqrt(n_numbers), 1)


def _energies(rows: Numbers) -> Numbers:
    """The sum of the squares of each row."""
    energies: Numbers = np.einsum("ik,ik->i", rows, rows)
    return energies


def _root(numbers: Numbers) -> Numbers:
    """Rounded up."""
    return np.ceil(np.sqrt(numbers)).astype(np.int64)
