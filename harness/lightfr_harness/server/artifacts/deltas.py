"""Makes the delta between two versions of the item codes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from lightfr._kernel import require_code_bits
from lightfr.errors import CodeLengthError, OutOfRangeError
from lightfr.model.deltas import FORMAT_VERSION, HEADER, MAGIC, MAX_ITEMS


def make_delta(old: npt.NDArray[np.uint8], new: npt.NDArray[np.uint8]) -> bytes:
    """Return what turns the old rows into the new ones, which are as many or more; shapes (rows, code_bytes)."""
    _require_shapes(old, new)
    flips = new.copy()
    flips[: len(old)] ^= old
    rows = np.flatnonzero(flips.any(axis=1))
    gaps = (np.diff(rows, prepend=-1) - 1).astype("<u4")
    planes = gaps.view(np.uint8).reshape(-1, 4).T
    header = HEADER.pack(MAGIC, FORMAT_VERSION, bytes(3), new.shape[1] * 8, len(old), len(new), len(rows))
    return header + _compress([*(plane.tobytes() for plane in planes), flips[rows].tobytes()])


def _require_shapes(old: npt.NDArray[np.uint8], new: npt.NDArray[np.uint8]) -> None:
    code_bits = new.shape[1] * 8
    require_code_bits(code_bits)
    if old.shape[1] * 8 != code_bits:
        raise CodeLengthError(old.shape[1] * 8, code_bits)
    if not len(old) <= len(new) <= MAX_ITEMS:
        raise OutOfRangeError("new item count", len(new), len(old), MAX_ITEMS)


def _compress(parts: Iterable[bytes]) -> bytes:
    """Compress the parts into one zlib stream, in which each has blocks, and so Huffman codes, of its own.

    Bytes of one part look alike and unlike those of the others: shared codes cost 5 % more where few rows changed.
    Repeats other than runs of one byte are chance here; looking for them takes longer and saves at most 3 %.
    """
    compressor = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_RLE)
    packed = [compressor.compress(part) + compressor.flush(zlib.Z_BLOCK) for part in parts]
    return b"".join(packed) + compressor.flush()
