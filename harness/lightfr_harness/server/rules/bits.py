"""Packed bits and signs, for arrays of any shape whose last axis is a code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def unpack_signs(packed: bytes | npt.NDArray[np.uint8], shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """Packed codes as signs, -1 or +1."""
    flat = np.frombuffer(packed, np.uint8) if isinstance(packed, bytes) else packed.reshape(-1)
    return (np.unpackbits(flat, bitorder="little").view(np.int8) * 2 - 1).reshape(shape)


def pack_signs(signs: npt.NDArray[np.integer]) -> npt.NDArray[np.uint8]:
    """Signs as packed codes, row by row."""
    return np.packbits(signs > 0, axis=-1, bitorder="little")
