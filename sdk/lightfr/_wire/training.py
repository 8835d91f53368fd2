"""Messages of a training round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightfr.errors import ProtocolError

if TYPE_CHECKING:
    from lightfr.training.updates import RowUpdate
    from lightfr.v1 import model_pb2


def decode_round_model(message: bytes) -> model_pb2.RoundModel:
    """Parse a RoundModel; PublishedModel checks what it says."""
    from google.protobuf.message import DecodeError

    from lightfr.v1 import model_pb2

    try:
        return model_pb2.RoundModel.FromString(message)
    except DecodeError as error:
        raise ProtocolError(f"round model: {len(message)} bytes are not a RoundModel message") from error


def encode_update(update: RowUpdate) -> bytes:
    """Serialise an update in the clear."""
    from lightfr.training.model import CODES, TERNARY
    from lightfr.v1 import update_pb2

    message = update_pb2.RowUpdate(
        code_bits=update.code_bits, item_indices=update.item_indices.tobytes(), user_code=update.user_code
    )
    if update.upload_kind == TERNARY:
        message.ternary.nonzero, message.ternary.positive = bytes(update.nonzero), bytes(update.positive)
    elif update.upload_kind == CODES:
        message.codes.codes = update.codes
    else:
        message.exact.gradients = update.gradients
    return message.SerializeToString()
