"""The catalogue objective's server rule, in integers: see docs/protocol.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr import _kernel
from lightfr.errors import InvalidInputError
from lightfr.training.constants import CATALOGUE_WEIGHT, LEAST_CATALOGUE_RATINGS, MEAN_UNIT, catalogue_target
from lightfr.v1 import model_pb2
from lightfr_harness.aggregate.bits import unpack_signs
from lightfr_harness.aggregate.server import Server
from lightfr_harness.aggregate.uploads import Upload

# Sums and the memory Q have this many fractional parts of one ternary element.
UNIT = 256
# Q forgets 1/16 of itself a round.
FORGETTING_SHIFT = 4
# Keeps |Q| below 2^31: it cannot pass 16 times the largest sum.
LARGEST_SUM = 2**26
_ROWS_AT_A_TIME = 65_536


class CatalogueServer(Server):
    """Q <- Q - (Q >> 4) + S, d = sign(Q). Q, the memory, never leaves the server."""

    by_row = ("codes", "memory")

    def __init__(self, device_counts: npt.NDArray[np.int64], code_bits: int, **options: Any) -> None:
        self.memory = np.zeros((len(device_counts), code_bits), np.int32)
        self.mean_user = np.zeros(code_bits, np.int16)
        super().__init__(device_counts, code_bits, **options)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The matrix, its memory and the mean user."""
        return {"codes": self.codes, "memory": self.memory, "mean_user": self.mean_user}

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Take up a state."""
        self.codes, self.memory, self.mean_user = state["codes"], state["memory"], state["mean_user"]
        self.begin_round()

    def _model_fields(self) -> dict[str, Any]:
        mean = self.mean_user.astype("<i2").tobytes() if self.mean_user.any() else b""
        return {"objective": model_pb2.OBJECTIVE_CATALOGUE, "mean_user": mean}

    def _start_sums(self) -> None:
        self._row_sums = np.zeros((self.n_items, self.code_bits), np.int32)
        self._user_codes: list[bytes] = []
        self._weights: list[int] = []
        # What cohorts added up securely: W, v and w.
        self._products = np.zeros((self.code_bits, self.code_bits))
        self._user_sum = np.zeros(self.code_bits, np.int64)
        self._weight = 0

    def add_sums(
        self,
        rows: npt.NDArray[np.int64],
        products: npt.NDArray[np.int64],
        user_sum: npt.NDArray[np.int64],
        weight: int,
    ) -> None:
        """Count what a cohort added up: the blocks of docs/secagg.md, each a flat array of sums over the devices."""
        f, is_open = self.code_bits, self.open_rows if self.gate > 1 else np.ones(self.n_items, np.bool_)
        expected = (int(is_open.sum()) * f, f * (f - 1) // 2, f)
        if (rows.size, products.size, user_sum.size) != expected:
            sizes = f"{rows.size}, {products.size} and {user_sum.size}"
            raise InvalidInputError(f"sums of {sizes} numbers, expected {expected[0]}, {expected[1]} and {expected[2]}")
        self._row_sums[is_open] += rows.reshape(-1, f).astype(np.int32)
        above = np.zeros((f, f))
        above[np.triu_indices(f, 1)] = products
        self._products += above + above.T + weight * np.eye(f)
        self._user_sum += user_sum
        self._weight += weight

    def add_blocks(self, sums: Mapping[str, npt.NDArray[np.int64]], devices: int) -> None:
        """Count the sums by block over so many devices. With noise all weigh the same, and the sums come without it."""
        rows, products, user_sum = sums["rows"], sums["products"], sums["user_sum"]
        if self.noise is None:
            self.add_sums(rows, products, user_sum, int(sums["weight"][0]))
        else:
            weight = max(self.max_rows, LEAST_CATALOGUE_RATINGS)
            self.add_sums(rows, weight * products, weight * user_sum, weight * devices)

    def _count(self, upload: Upload) -> None:
        upload.add_to(self._row_sums)
        self._user_codes.append(upload.rows.user_code)
        self._weights.append(max(len(upload.item_indices), LEAST_CATALOGUE_RATINGS))

    def _grow(self, n_new: int) -> None:
        self.memory = np.concatenate([self.memory, np.zeros((n_new, self.code_bits), np.int32)])

    def _cohort_sums(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], int]:
        """W = sum w b b', v = sum w b and w: all that the catalogue term needs. float64 is exact below 2^53."""
        if not self._user_codes:
            return self._products, self._user_sum, self._weight
        signs = unpack_signs(b"".join(self._user_codes), (len(self._user_codes), self.code_bits))
        users, weights = signs.astype(np.float64), np.array(self._weights, np.int64)
        weighted = users * weights[:, None]
        user_sum = self._user_sum + weighted.sum(axis=0).astype(np.int64)
        return self._products + users.T @ weighted, user_sum, self._weight + int(weights.sum())

    def _apply(self, *, balanced: bool) -> None:
        products, user_sum, weight = self._cohort_sums()
        for first in range(0, self.n_items, _ROWS_AT_A_TIME):
            rows = slice(first, min(first + _ROWS_AT_A_TIME, self.n_items))
            self._apply_rows(rows, products, user_sum, weight)
        if weight:
            mean = (2 * MEAN_UNIT * user_sum + weight) // (2 * weight)
            self.mean_user = np.clip(mean, -MEAN_UNIT, MEAN_UNIT).astype(np.int16)  # noise may carry it beyond

    def _apply_rows(
        self, rows: slice, products: npt.NDArray[np.float64], user_sum: npt.NDArray[np.int64], weight: int
    ) -> None:
        packed, memory = np.ascontiguousarray(self.codes[rows]), np.ascontiguousarray(self.memory[rows])
        signs = unpack_signs(packed, memory.shape)
        others = (signs.astype(np.float64) @ products).astype(np.int64) - weight * signs.astype(np.int64)
        others += catalogue_target(self.code_bits) * user_sum
        against = UNIT * CATALOGUE_WEIGHT * others // (self.n_items * self.code_bits)
        sums = np.clip(self._individual(rows) - against, -LARGEST_SUM, LARGEST_SUM).astype(np.int32)
        _kernel.aggregate(sums, sums.size, FORGETTING_SHIFT, memory, packed)
        self.codes[rows], self.memory[rows] = packed, memory

    def _individual(self, rows: slice) -> npt.NDArray[np.int64]:
        """The devices' own rows in units of UNIT: a ternary element counts 1, an exact one 1 / f."""
        sums = UNIT * self._row_sums[rows].astype(np.int64)
        return sums // self.code_bits if self.upload_kind == model_pb2.UPLOAD_KIND_EXACT else sums
