"""Small models and devices that several tests need."""

import numpy as np

from lightfr import ItemCodes, OpenRows
from lightfr.training import PublishedModel
from lightfr.v1 import model_pb2


def make_model(
    signs,
    *,
    objective=model_pb2.OBJECTIVE_CATALOGUE,
    upload_kind=model_pb2.UPLOAD_KIND_TERNARY,
    is_open=None,
    removed=None,
    **fields,
):
    """A published model of these item signs; `is_open`, by item, closes the others, which share the last row then."""
    codes = packed_codes(signs, is_open)
    message = model_pb2.RoundModel(
        code_bits=signs.shape[1], item_count=len(signs), objective=objective, upload_kind=upload_kind, **fields
    )
    return PublishedModel(codes, message, removed)


def packed_codes(signs, is_open=None):
    """Item codes of these signs: all of them, or those of open items and the first closed one's for the others."""
    packed, code_bits = np.packbits(signs > 0, axis=1, bitorder="little"), signs.shape[1]
    if is_open is None:
        return ItemCodes(packed.tobytes(), code_bits)
    is_open = np.asarray(is_open, bool)
    shared = packed[~is_open][:1] if not is_open.all() else np.zeros((1, code_bits // 8), np.uint8)
    open_rows = OpenRows(np.packbits(is_open, bitorder="little").tobytes(), len(signs))
    return ItemCodes(np.concatenate([packed[is_open], shared]).tobytes(), code_bits, open_rows)


def random_signs(n, code_bits, seed):
    return np.random.default_rng(seed).choice(np.array([-1, 1], np.int8), (n, code_bits))
