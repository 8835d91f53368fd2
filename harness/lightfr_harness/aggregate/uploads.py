"""Uploads as a server sees them: parsed, and refused with a reason unless they are what the round asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError
from lightfr.errors import ProtocolError
from lightfr.v1 import model_pb2, update_pb2

from lightfr_harness.aggregate.bits import unpack_signs

KIND_OF_FIELD = {
    "ternary": model_pb2.UPLOAD_KIND_TERNARY,
    "exact": model_pb2.UPLOAD_KIND_EXACT,
    "codes": model_pb2.UPLOAD_KIND_CODES,
}


class UploadError(ProtocolError):
    """An upload that the round does not allow. Nothing of it was counted."""


@dataclass(frozen=True)
class Upload:
    """The rows of one device: `values[i]` belongs to row `item_indices[i]`."""

    item_indices: npt.NDArray[np.uint32]
    values: npt.NDArray[np.int32]
    user_code: npt.NDArray[np.int8] | None


def decode_upload(message: bytes, model: model_pb2.RoundModel) -> Upload:
    """Parse one RowUpdate and check it against the round's model; raises UploadError."""
    try:
        update = update_pb2.RowUpdate.FromString(message)
    except DecodeError as error:
        raise UploadError(f"{len(message)} bytes are no RowUpdate message") from error
    _require(update.code_bits == model.code_bits, "code_bits is not that of the round")
    indices = _indices(update.item_indices, model)
    values = _values(update, len(indices), model)
    return Upload(indices, values, _user_code(update.user_code, model))


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise UploadError(f"upload refused: {reason}")


def _indices(field: bytes, model: model_pb2.RoundModel) -> npt.NDArray[np.uint32]:
    _require(len(field) % 4 == 0, "item_indices is no whole number of uint32")
    indices = np.frombuffer(field, "<u4")
    _require(not model.max_rows or len(indices) <= model.max_rows, f"more than {model.max_rows} rows")
    _require(bool((indices[1:] > indices[:-1]).all()), "item_indices is not strictly ascending")
    _require(not len(indices) or int(indices[-1]) < model.item_count, "an item index is not below item_count")
    if model.open_rows:
        gate = np.frombuffer(model.open_rows, np.uint8)
        _require(bool((gate[indices >> 3] >> (indices & 7) & 1).all()), "a row is closed by the gate")
    return indices


def _values(update: update_pb2.RowUpdate, n_rows: int, model: model_pb2.RoundModel) -> npt.NDArray[np.int32]:
    field = update.WhichOneof("rows")
    _require(field is not None and KIND_OF_FIELD[field] == model.upload_kind, "rows are not of the kind asked for")
    shape, row_bytes = (n_rows, model.code_bits), n_rows * model.code_bits // 8
    if field == "exact":
        _require(len(update.exact.gradients) == 4 * n_rows * model.code_bits, "gradients have the wrong size")
        return np.frombuffer(update.exact.gradients, "<i4").reshape(shape)
    if field == "codes":
        _require(len(update.codes.codes) == row_bytes, "codes have the wrong size")
        return unpack_signs(update.codes.codes, shape).astype(np.int32)
    nonzero, positive = update.ternary.nonzero, update.ternary.positive
    _require(len(nonzero) == len(positive) == row_bytes, "ternary planes have the wrong size")
    kept, plus = np.frombuffer(nonzero, np.uint8), np.frombuffer(positive, np.uint8)
    _require(not (plus & ~kept).any(), "an element is positive where it is zero")
    bits = np.unpackbits(np.stack([plus, kept]), axis=1, bitorder="little").astype(np.int32)
    return (2 * bits[0] - bits[1]).reshape(shape)


def _user_code(field: bytes, model: model_pb2.RoundModel) -> npt.NDArray[np.int8] | None:
    if model.objective == model_pb2.OBJECTIVE_PAPER:
        _require(not field, "user_code is not part of objective PAPER")
        return None
    _require(len(field) == model.code_bits // 8, "user_code has the wrong size")
    return unpack_signs(field, (model.code_bits,))
