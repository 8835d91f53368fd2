"""The catalogue objective's server rule, in integers: see docs/protocol.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr import _kernel
from lightfr.training.constants import (
    CATALOGUE_WEIGHT,
    CLIPPED_WEIGHT,
    LEAST_CATALOGUE_RATINGS,
    MEAN_UNIT,
    catalogue_target,
)
from lightfr.v1 import model_pb2
from lightfr_harness.server.rules.bits import unpack_signs
from lightfr_harness.server.rules.cohorts import CohortSum, Combined, combined
from lightfr_harness.server.rules.plausible import (
    Counts,
    ImplausibleSumError,
    Mask,
    cut,
    implausible_rows,
    require_plausible_clipped,
    require_plausible_counts,
    require_plausible_energy,
    require_plausible_users,
    shortened,
)
from lightfr_harness.server.rules.rule import AggregationRule
from lightfr_harness.server.rules.uploads import Upload

# Sums and the memory Q have this many fractional parts of one ternary element.
UNIT = 256
# Q forgets 1/16 of itself a round.
FORGETTING_SHIFT = 4
# Keeps |Q| below 2^31: it cannot pass 16 times the largest sum.
LARGEST_SUM = 2**26
_ROWS_AT_A_TIME = 65_536
_NO_COUNTS = np.zeros(0, np.int64)


class CatalogueRule(AggregationRule):
    """Q <- Q - (Q >> 4) + S, d = sign(Q). Q, the memory, never leaves the server."""

    by_row: tuple[str, ...] = ("own_codes", "memory", "trails")
    by_rule = ("mean_user", "first_counts", "counting_devices")
    # What a cohort added up in secret in this round: user sum and weight.
    _summed: tuple[npt.NDArray[np.int64], int] | None
    # How the numbers of several cohorts become one.
    _combine = staticmethod(combined)

    def __init__(self, device_counts: npt.NDArray[np.int64], code_bits: int, **options: Any) -> None:
        self.mean_user = np.zeros(code_bits, np.int16)
        # Counts of the first of two gate refreshes; empty when none waits for the second.
        self.first_counts = _NO_COUNTS
        # How many devices counted: in the first refresh, and for `device_counts`. 0: somebody gave the counts.
        self.counting_devices = np.zeros(2, np.int64)
        super().__init__(device_counts, code_bits, **options)
        self.memory = np.zeros((len(self.own_codes), code_bits), np.int32)
        # The part of the memory that cohorts gave, by which a row that somebody pushes shows.
        self.trails = np.zeros((len(self.own_codes), code_bits), np.int32)

    @property
    def counted_devices(self) -> int:
        """How many devices counted who rates what; 0: somebody gave the counts."""
        return int(self.counting_devices[1])

    @property
    def awaits_refresh(self) -> bool:
        """Whether one gate refresh is in, and another, of other devices, must follow before rows open or close."""
        return len(self.first_counts) > 0

    def set_gate(self, counts: npt.NDArray[np.int64], seed: int, devices: int = 0) -> None:
        """Take the counts of a gate refresh, and begin a round. Two refreshes in a row open and close rows.

        A row that opens for the first time gets a random code and an empty memory; one that closes keeps what it has.
        `devices` is how many counted; 0: nobody knows. Raises ImplausibleSumError, and changes nothing, when so many
        cannot have these counts.
        """
        if devices:
            require_plausible_counts(counts, devices, self.noise)
        if not self.awaits_refresh:
            self.first_counts = np.asarray(counts, np.int64)
            self.counting_devices = np.array([devices, self.counted_devices], np.int64)
        else:
            self.counting_devices = np.array([0, min(self.counting_devices[0], devices)], np.int64)
            # The median lies on the side of the gate where two of the three do: one refresh alone moves no row across.
            counted = np.sort([self.device_counts, self.first_counts, counts], axis=0)[1]
            self.device_counts = np.where(self.removed, 0, counted)
            self.first_counts = _NO_COUNTS
            self._give_rows(seed)
        self.begin_round()

    def change_items(
        self,
        old_index_of_new: npt.NDArray[np.int64],
        removed: npt.NDArray[np.bool_],
        device_counts: npt.NDArray[np.int64],
        seed: int,
    ) -> None:
        """Go over to another catalogue; the counts of a first gate refresh are 0 for items that join."""
        super().change_items(old_index_of_new, removed, device_counts, seed)
        if self.awaits_refresh:
            keeps = (old_index_of_new >= 0) & ~removed
            self.first_counts = np.where(keeps, self.first_counts[old_index_of_new], 0)

    def add_sums(
        self, rows: npt.NDArray[np.int64], user_sum: npt.NDArray[np.int64], weight: npt.NDArray[np.int64]
    ) -> None:
        """Count what a cohort added up in secret, in the blocks of docs/secagg.md, once in a round without uploads."""
        self._row_sums[self._row_is_open] = rows.reshape(-1, self.code_bits)
        self._summed = user_sum, int(weight[0])

    def add_cohort(self, sums: Mapping[str, npt.NDArray[np.int64]], survivors: int) -> int:
        """Count the sums over so many devices; returns how many rows say more than these can, and stay as they are.

        Raises ImplausibleSumError, and counts nothing, when the sums as a whole are not plausible.
        """
        return self.add_cohorts([CohortSum(sums, survivors)]).held

    def add_cohorts(self, cohorts: Sequence[CohortSum]) -> Combined:
        """Count the sums of all cohorts of a round, so that none moves a row further than the others allow.

        A cohort whose sums as a whole are not plausible is left out. Raises ImplausibleSumError, and counts nothing,
        when all are.
        """
        judged: list[tuple[CohortSum, Mask]] = []
        implausible: list[int | None] = []
        reasons = []
        for cohort in cohorts:
            try:
                judged.append(self._judged(cohort))
                implausible.append(int(judged[-1][1].sum()))
            except ImplausibleSumError as error:
                implausible.append(None)
                reasons.append(error)
        if not judged:
            raise reasons[0]
        survivors = [cohort.survivors for cohort, _ in judged]
        sums = {
            name: self._combine([cohort.sums[name] for cohort, _ in judged], survivors) for name in judged[0][0].sums
        }
        held = np.logical_and.reduce([rows for _, rows in judged])
        if self.noise is None:
            self._held[self._row_is_open] = held
            if self.gate > 1:
                sums["rows"] = self._not_too_long(sums["rows"].reshape(-1, self.code_bits), held, sum(survivors))
        self.add_sums(**sums)
        return Combined(int(held.sum()), tuple(implausible))

    def _judged(self, cohort: CohortSum) -> tuple[CohortSum, Mask]:
        """A cohort's sums as far as they are learnt from, and which of its open rows are implausible: they say nothing.

        Raises ImplausibleSumError when the sums as a whole are not plausible.
        """
        n, rows = cohort.survivors, cohort.sums["rows"].reshape(-1, self.code_bits)
        sums, implausible = self.weighted(cohort.sums, n), np.zeros(len(rows), np.bool_)
        if self.noise is not None:
            require_plausible_clipped(rows, cohort.sums["user_sum"], self.noise, n)
            return CohortSum(sums, n), implausible
        require_plausible_users(sums["user_sum"], int(sums["weight"][0]), n)
        # Without a gate nobody knows how many devices rate an item: it may be all of them.
        counts = self._counts if self.gate > 1 else Counts(np.full(len(rows), n), n)
        implausible = implausible_rows(rows, counts, n)
        if self.gate > 1:
            require_plausible_energy(rows[~implausible], counts.of(~implausible), n)
            rows = cut(rows, counts, n)
        sums["rows"] = np.where(implausible[:, None], 0, rows).reshape(-1)
        return CohortSum(sums, n), implausible

    @property
    def _counts(self) -> Counts:
        """How many devices rate each open item."""
        return Counts(self.device_counts[self.open_rows], self.counted_devices)

    def _not_too_long(self, rows: npt.NDArray[np.int64], held: Mask, survivors: int) -> npt.NDArray[np.int64]:
        """The rows, but those shorter whose trails would become too long."""
        trails = self.trails[self._row_is_open].astype(np.int64)
        # A row that stays as it is forgets nothing and gets nothing.
        fading = np.where(held[:, None], 0, trails >> FORGETTING_SHIFT)
        return shortened(rows, trails - fading, self._counts, survivors)

    def weighted(self, sums: Mapping[str, npt.NDArray[np.int64]], survivors: int) -> dict[str, npt.NDArray[np.int64]]:
        """The sums as add_sums takes them. With noise all devices weigh the same, and no block says how much."""
        if self.noise is None:
            return dict(sums)
        return {
            "rows": sums["rows"],
            "user_sum": CLIPPED_WEIGHT * sums["user_sum"],
            "weight": np.array([CLIPPED_WEIGHT * survivors]),
        }

    def _model_fields(self) -> dict[str, Any]:
        mean = self.mean_user.astype("<i2").tobytes() if self.mean_user.any() else b""
        return {"objective": model_pb2.OBJECTIVE_CATALOGUE, "mean_user": mean}

    def _start_sums(self) -> None:
        self._row_sums = np.zeros((len(self.own_codes), self.code_bits), np.int32)
        self._user_codes: list[bytes] = []
        self._weights: list[int] = []
        self._summed = None
        # Rows that stay as they are.
        self._held = np.zeros(len(self.own_codes), np.bool_)

    def _count(self, upload: Upload, rows: npt.NDArray[np.uint32]) -> None:
        upload.add_to(self._row_sums, rows)
        self._user_codes.append(upload.rows.user_code)
        self._weights.append(max(len(upload.item_indices), LEAST_CATALOGUE_RATINGS))

    def _cohort_sums(self) -> tuple[npt.NDArray[np.int64], int]:
        """v = sum w b and w: all that the catalogue term needs."""
        if self._summed is not None:
            return self._summed
        signs = unpack_signs(b"".join(self._user_codes), (len(self._user_codes), self.code_bits))
        weights = np.array(self._weights, np.int64)
        return weights @ signs.astype(np.int64), int(weights.sum())

    def _apply(self) -> None:
        user_sum, weight = self._cohort_sums()
        kept, n_rows = {name: getattr(self, name)[self._held] for name in self.by_row}, len(self.own_codes)
        for first in range(0, n_rows, _ROWS_AT_A_TIME):
            self._apply_rows(slice(first, min(first + _ROWS_AT_A_TIME, n_rows)), user_sum, weight)
        for name, rows in kept.items():
            getattr(self, name)[self._held] = rows
        if weight > 0:
            mean = (2 * MEAN_UNIT * user_sum + weight) // (2 * weight)
            # Beyond the unit only by noise, or by a device that lies.
            self.mean_user = np.clip(mean, -MEAN_UNIT, MEAN_UNIT).astype(np.int16)

    def _apply_rows(self, rows: slice, user_sum: npt.NDArray[np.int64], weight: int) -> None:
        packed, memory = np.ascontiguousarray(self.own_codes[rows]), np.ascontiguousarray(self.memory[rows])
        sums = self._individual(rows)
        if weight > 0:
            # v v' / w stands for the sum of w b b', which would tell the codes of single devices.
            signs = unpack_signs(packed, memory.shape).astype(np.int64)
            others = ((signs @ user_sum)[:, None] - signs * user_sum) * user_sum // weight
            others += catalogue_target(self.code_bits) * user_sum
            sums -= UNIT * CATALOGUE_WEIGHT * others // (self.n_items * self.code_bits)
        limited = np.clip(sums, -LARGEST_SUM, LARGEST_SUM).astype(np.int32)
        _kernel.aggregate(limited.data, limited.size, FORGETTING_SHIFT, memory.data, packed.data)
        self.own_codes[rows], self.memory[rows] = packed, memory
        trails = self.trails[rows]
        self.trails[rows] = trails - (trails >> FORGETTING_SHIFT) + UNIT * self._row_sums[rows]

    def _individual(self, rows: slice) -> npt.NDArray[np.int64]:
        """The devices' own rows in units of UNIT: a ternary element counts 1, an exact one 1 / f."""
        sums = UNIT * self._row_sums[rows].astype(np.int64)
        return sums // self.code_bits if self.upload_kind == model_pb2.UPLOAD_KIND_EXACT else sums
