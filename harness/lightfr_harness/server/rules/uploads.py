"""Uploads as a server sees them: parsed, and refused with a reason unless they are what the round asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from lightfr import _kernel
from lightfr.errors import ProtocolError
from lightfr.v1 import model_pb2, update_pb2
from lightfr_harness.server.rules.bits import unpack_signs

KIND_OF_FIELD = {
    "ternary": model_pb2.UPLOAD_KIND_TERNARY,
    "exact": model_pb2.UPLOAD_KIND_EXACT,
    "codes": model_pb2.UPLOAD_KIND_CODES,
}


class UploadError(ProtocolError):
    """An upload that the round does not allow. Nothing of it was counted."""


@dataclass(frozen=True, repr=False)
class Upload:
    """The rows of one device, checked. They are in the clear, and so they show in no repr."""

    item_indices: npt.NDArray[np.uint32]
    rows: update_pb2.RowUpdate

    def values(self) -> npt.NDArray[np.integer]:
        """The rows as numbers: exact gradients, or codes as signs."""
        shape = (len(self.item_indices), self.rows.code_bits)
        if self.rows.WhichOneof("rows") == "exact":
            return np.frombuffer(self.rows.exact.gradients, "<i4").reshape(shape)
        return unpack_signs(self.rows.codes.codes, shape)

    def add_to(self, sums: npt.NDArray[np.int32], at: npt.NDArray[np.uint32]) -> None:
        """Add the rows to those rows of an int32 matrix of sums."""
        if self.rows.WhichOneof("rows") != "ternary":
            sums[at] += self.values()
            return
        planes, (n_rows, code_bits) = self.rows.ternary, sums.shape
        _kernel.ternary_add(planes.nonzero, planes.positive, at.data, len(at), code_bits, n_rows, sums.data)


class UploadReader:
    """Reads the uploads of one round and checks them against its model."""

    def __init__(self, model: model_pb2.RoundModel, open_rows: bytes = b"") -> None:
        self._model = model
        self._code_bits = model.code_bits
        self._max_rows = model.max_rows or model.item_count
        gate = np.frombuffer(open_rows, np.uint8) if open_rows else None
        self._is_open = None if gate is None else np.unpackbits(gate, bitorder="little").astype(np.bool_)
        self._has_user_code = model.objective == model_pb2.OBJECTIVE_CATALOGUE

    def read(self, message: bytes) -> Upload:
        """Parse one RowUpdate; raises UploadError unless it is what the round asked for."""
        try:
            update = update_pb2.RowUpdate.FromString(message)
        except DecodeError as error:
            raise UploadError(f"the {len(message)} bytes are not a RowUpdate message") from error
        return self.check(update)

    def check(self, update: update_pb2.RowUpdate) -> Upload:
        """Check a parsed RowUpdate; raises UploadError unless it is what the round asked for."""
        _require(update.code_bits == self._code_bits, "code_bits differs from the round's")
        indices = self._indices(update.item_indices)
        self._require_rows(update, len(indices))
        code_bytes = self._code_bits // 8 if self._has_user_code else 0
        _require(len(update.user_code) == code_bytes, f"user_code must be {code_bytes} bytes")
        return Upload(indices, update)

    def _indices(self, field: bytes) -> npt.NDArray[np.uint32]:
        _require(len(field) % 4 == 0, "item_indices must be a whole number of uint32")
        indices = np.frombuffer(field, "<u4")
        if not len(indices):
            return indices
        _require(len(indices) <= self._max_rows, f"more than {self._max_rows} rows")
        _require(bool((indices[1:] > indices[:-1]).all()), "item_indices is not strictly ascending")
        _require(int(indices[-1]) < self._model.item_count, "an item index is not below item_count")
        _require(self._is_open is None or bool(self._is_open[indices].all()), "an item is closed by the gate")
        return indices

    def _require_rows(self, update: update_pb2.RowUpdate, n_rows: int) -> None:
        field = update.WhichOneof("rows")
        kind = KIND_OF_FIELD[field] if field else None
        _require(kind == self._model.upload_kind, "rows are not of the kind asked for")
        row_bytes = n_rows * self._code_bits // 8
        if field == "exact":
            _require(len(update.exact.gradients) == 32 * row_bytes, "gradients have the wrong size")
        elif field == "codes":
            _require(len(update.codes.codes) == row_bytes, "codes have the wrong size")
        else:
            sizes = (len(update.ternary.nonzero), len(update.ternary.positive))
            _require(sizes == (row_bytes, row_bytes), "ternary planes have the wrong size")
            nonzero, positive = (
                int.from_bytes(plane, "little") for plane in (update.ternary.nonzero, update.ternary.positive)
            )
            _require(positive | nonzero == nonzero, "an element is positive where it is zero")


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise UploadError(f"upload refused: {reason}")
