"""Small models and devices that several tests need."""

import numpy as np

from lightfr import ItemCodes
from lightfr.training import PublishedModel
from lightfr.v1 import model_pb2


def make_model(
    signs,
    *,
    objective=model_pb2.OBJECTIVE_CATALOGUE,
    upload_kind=model_pb2.UPLOAD_KIND_TERNARY,
    open_rows=b"",
    **fields,
):
    """A published model of these item signs."""
    codes = ItemCodes(np.packbits(signs > 0, axis=1, bitorder="little").tobytes(), signs.shape[1])
    message = model_pb2.RoundModel(
        code_bits=signs.shape[1], item_count=len(signs), objective=objective, upload_kind=upload_kind, **fields
    )
    return PublishedModel(codes, message, open_rows)


def random_signs(n, code_bits, seed):
    return np.random.default_rng(seed).choice(np.array([-1, 1], np.int8), (n, code_bits))
