"""The C kernel behind plain functions: sizes are checked here, statuses become exceptions.

This package is the only one that touches ffi and lib. Buffers are anything with the buffer protocol; none is copied.
"""

from lightfr._kernel._boundary import (
    MAX_CODE_BITS,
    MIN_CODE_BITS,
    isa_name,
    require_code_bits,
    select_isa,
    supported_isas,
)
from lightfr._kernel._masks import mask, number_bytes, pack_bits, packed_bytes, ternary_noise, unpack_add
from lightfr._kernel._search import CodesPointer, Hits, OpenPointer, PriorPointer, distances, topk, topk_batch
from lightfr._kernel._training import (
    MOST_REFINED_ITEMS,
    Fit,
    aggregate,
    gather,
    gram,
    pack,
    refine,
    row_gradients,
    ternary,
    ternary_add,
    unpack,
)

__all__ = [
    "MAX_CODE_BITS",
    "MIN_CODE_BITS",
    "MOST_REFINED_ITEMS",
    "CodesPointer",
    "Fit",
    "Hits",
    "OpenPointer",
    "PriorPointer",
    "aggregate",
    "distances",
    "gather",
    "gram",
    "isa_name",
    "mask",
    "number_bytes",
    "pack",
    "pack_bits",
    "packed_bytes",
    "refine",
    "require_code_bits",
    "row_gradients",
    "select_isa",
    "supported_isas",
    "ternary",
    "ternary_add",
    "ternary_noise",
    "topk",
    "topk_batch",
    "unpack",
    "unpack_add",
]
