"""The paper's aggregation as printed: Agg_grad and Agg_para. The audit's subject, not the default."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr.errors import InvalidInputError
from lightfr.interactions import LEVELS
from lightfr.v1 import model_pb2
from lightfr_harness.server.rules.bits import unpack_signs
from lightfr_harness.server.rules.rule import AggregationRule
from lightfr_harness.server.rules.uploads import Upload


def balance_of(regularization: float, code_bits: int) -> int:
    """The paper's lambda as the integer that uploads are scaled to: 4 f^2 lambda LEVELS."""
    return round(4 * code_bits**2 * regularization * LEVELS)


class PaperRule(AggregationRule):
    """Agg_grad: D = sign(sum of gradients - balance D'). Agg_para, by uploads of codes: D = sign(sum of those rows).

    It remembers nothing but the codes.
    """

    def __init__(
        self, device_counts: npt.NDArray[np.int64], code_bits: int, *, regularization: float, **options: Any
    ) -> None:
        if options["upload_kind"] == model_pb2.UPLOAD_KIND_TERNARY:
            raise InvalidInputError("the paper's protocol has no ternary uploads: use exact gradients or codes")
        self.balance = balance_of(regularization, code_bits)
        super().__init__(device_counts, code_bits, **options)

    def add_sums(self, rows: npt.NDArray[np.int64]) -> None:
        """Count what all devices together say about the open rows, once in a round without uploads."""
        self._row_sums[self._row_is_open] = rows.reshape(-1, self.code_bits)

    def _model_fields(self) -> dict[str, Any]:
        return {"objective": model_pb2.OBJECTIVE_PAPER, "balance": self.balance}

    def _start_sums(self) -> None:
        self._row_sums = np.zeros((len(self.own_codes), self.code_bits), np.int64)

    def _count(self, upload: Upload, rows: npt.NDArray[np.uint32]) -> None:
        self._row_sums[rows] += upload.values()

    def _apply(self) -> None:
        votes = self._row_sums
        # Rows sent as codes are balanced on the device.
        if self.upload_kind != model_pb2.UPLOAD_KIND_CODES:
            signs = unpack_signs(self.own_codes, votes.shape).astype(np.int64)
            votes = votes - self.balance * (signs.sum(axis=1, keepdims=True) - signs)
        self._set_codes_by_sign(votes)
