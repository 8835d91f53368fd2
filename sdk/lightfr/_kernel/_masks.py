"""Masks, noise and packed integers of secure aggregation.

Numbers of at most 16 bits live in uint16, wider ones in uint32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightfr._kernel._boundary import check, lib, readable, require_range, writable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_MAX_BITS = 32
# By whether numbers are wide: the element type and the operations on it.
_KIND = ("uint16_t", "uint32_t")
_MASK = (lib.lfr_mask16, lib.lfr_mask32)
_PACK = (lib.lfr_pack_bits16, lib.lfr_pack_bits32)
_UNPACK_ADD = (lib.lfr_unpack_add16, lib.lfr_unpack_add32)


def _is_wide(bits: int) -> bool:
    require_range("bits", bits, 1, _MAX_BITS)
    return bits > 16


def number_bytes(bits: int) -> int:
    """Return the bytes of memory, and of mask stream, that a number of `bits` bits takes: 2 or 4."""
    return 4 if _is_wide(bits) else 2


def packed_bytes(n: int, bits: int) -> int:
    """Return the bytes that n packed numbers take."""
    return (n * bits + 7) // 8


def mask(values: WriteableBuffer, n: int, bits: int, stream: ReadableBuffer, *, subtract: bool) -> None:
    """Add a mask of n * number_bytes(bits) bytes to n numbers in place, or subtract it."""
    wide = _is_wide(bits)
    target = writable(_KIND[wide], values, n, "values")
    source = readable("uint8_t", stream, n * number_bytes(bits), "mask stream")
    check(_MASK[wide](target, n, source, subtract))


def ternary_noise(values: WriteableBuffer, n: int, threshold: int, random: ReadableBuffer) -> None:
    """Add -1, 0 or +1 to n uint16 numbers in place, from two random bytes each; +1 has the chance threshold / 65536."""
    require_range("threshold", threshold, 0, 32768)
    target = writable("uint16_t", values, n, "values")
    check(lib.lfr_ternary_noise(target, n, threshold, readable("uint8_t", random, 2 * n, "random bytes")))


def pack_bits(values: ReadableBuffer, n: int, bits: int) -> bytearray:
    """Return the low bits of n numbers, one behind the other, low bit first."""
    wide, packed = _is_wide(bits), bytearray(packed_bytes(n, bits))
    source = readable(_KIND[wide], values, n, "values")
    check(_PACK[wide](source, n, bits, writable("uint8_t", packed, len(packed), "packed values")))
    return packed


def unpack_add(packed: ReadableBuffer, n: int, bits: int, sums: WriteableBuffer) -> None:
    """Add n packed numbers to sums; bits behind the last number must be zero."""
    wide = _is_wide(bits)
    source = readable("uint8_t", packed, packed_bytes(n, bits), "packed values")
    check(_UNPACK_ADD[wide](source, n, bits, writable(_KIND[wide], sums, n, "sums")))
