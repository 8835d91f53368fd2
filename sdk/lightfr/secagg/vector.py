"""The integers that a cohort adds up: blocks of just enough bits, masked in place and packed for the wire."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from lightfr import _kernel
from lightfr._secret import secret
from lightfr.errors import BufferSizeError, InvalidInputError
from lightfr.secagg.noise import COUNT_VARIANCE, EVALUATION_VARIANCE, row_variance, ternary_room, user_sum_thousandths
from lightfr.training.constants import MAX_WEIGHT, rated_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lightfr.v1.model_pb2 import Noise

# Room for noise, in standard deviations of the sum: it leaves it with a probability below 2^-70 a number.
_NOISE_ROOM = 10

# Groups of users in an evaluation round, by how many opinions they have.
_GROUPS = 4

# A piece of mask stream: small enough for the second-level cache, large enough to make calls rare.
_PIECE_BYTES = 65536
_ZEROS = bytes(_PIECE_BYTES)


@dataclass(frozen=True)
class Block:
    """`count` numbers whose sum over the cohort fits `bits` bits, in two's complement when `signed`."""

    name: str
    count: int
    bits: int
    signed: bool = True

    @property
    def packed_bytes(self) -> int:
        """Bytes on the wire."""
        return _kernel.packed_bytes(self.count, self.bits)


def round_blocks(open_rows: int, code_bits: int, devices: int, noise: Noise | None = None) -> tuple[Block, ...]:
    """Return the blocks of a training round; `noise` is that of the RoundModel, which mode SECAGG_DP alone has.

    `rows` are the rows of all open items by ascending index, zeros where a device has nothing; `user_sum` is w b;
    `weight` is w. In mode SECAGG_DP w is 1, for every device the same, and so there is no block for it.
    """
    if noise:
        largest_rows = devices * (rated_target(code_bits) + code_bits)
        return (
            Block("rows", open_rows * code_bits, _bits_for(largest_rows, noise.rows_thousandths, devices)),
            Block("user_sum", code_bits, _bits_for(devices, noise.sums_thousandths, devices)),
        )
    sum_bits = _bits_for(MAX_WEIGHT * devices, user_sum_thousandths(devices), devices)
    return (
        Block("rows", open_rows * code_bits, _ternary_bits(devices, row_variance(code_bits))),
        Block("user_sum", code_bits, sum_bits),
        Block("weight", 1, sum_bits),
    )


def gate_blocks(n_items: int, devices: int, noise: Noise | None = None) -> tuple[Block, ...]:
    """Return the one block of a gate refresh: 1 for each item that the device rated, else 0, and noise."""
    return (Block("counts", n_items, _count_bits(devices, noise, COUNT_VARIANCE)),)


def evaluation_blocks(n_candidates: int, devices: int, noise: Noise | None = None) -> tuple[Block, ...]:
    """Return the one block of an evaluation round.

    By group of users, and there for opinions that are no dislikes and for dislikes: 1 for a device that has one, then
    for each candidate whether it showed the item, and whether that counts for its place. At most 63 ones a device.
    """
    bits = _count_bits(devices, noise, EVALUATION_VARIANCE)
    return (Block("hits", 2 * _GROUPS * (1 + 2 * n_candidates), bits),)


def _count_bits(devices: int, noise: Noise | None, variance: int) -> int:
    """Return the bits of sums of 0 or 1 over so many devices, and of their noise."""
    if noise:
        return _bits_for(devices, noise.counts_thousandths, devices)
    return _ternary_bits(devices, variance)


def _ternary_bits(devices: int, variance: int) -> int:
    """Return the bits of sums from -devices to devices and of their ternary noise on top."""
    return (2 * (devices + ternary_room(devices, variance))).bit_length()


def _bits_for(largest_sum: int, noise_thousandths: int, devices: int) -> int:
    """Return the bits of sums from -largest_sum to largest_sum and of the noise of so many devices on top."""
    deviation_thousandths = isqrt(devices * (_NOISE_ROOM * noise_thousandths) ** 2)
    room = -(-deviation_thousandths // 1000)
    return (2 * (largest_sum + room)).bit_length()


@secret
class Vector:
    """The numbers of some blocks, zeros at first: int16 where a block has at most 16 bits, else int32.

    A mask wraps around in these, which is exact: what counts in the end are the low bits.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = tuple(blocks)
        self._numbers: dict[str, memoryview[int]] = {}
        for block in self.blocks:
            kind = "i" if _kernel.number_bytes(block.bits) == 4 else "h"
            self._numbers[block.name] = memoryview(array(kind, [0]) * block.count)

    def __getitem__(self, name: str) -> memoryview[int]:
        """Return the numbers of a block, to read and write; their count is fixed."""
        return self._numbers[name]

    def __repr__(self) -> str:
        return f"<Vector of {sum(block.count for block in self.blocks)} numbers>"

    @property
    def packed_bytes(self) -> int:
        """Bytes on the wire."""
        return sum(block.packed_bytes for block in self.blocks)

    def mask(self, key: bytes, *, subtract: bool) -> None:
        """Add the mask of a key in place, or subtract it: AES-256-CTR from a zero counter, block after block."""
        stream = _MaskStream(key)
        for block in self.blocks:
            number_bytes = _kernel.number_bytes(block.bits)
            for piece in _pieces(self._numbers[block.name]):
                mask = stream.take(len(piece))
                _kernel.mask(piece, len(piece) // number_bytes, block.bits, mask, subtract=subtract)

    def pack(self) -> bytes:
        """Return the low bits of all numbers, each block padded to a whole byte."""
        return b"".join(_kernel.pack_bits(self._numbers[b.name], b.count, b.bits) for b in self.blocks)

    def add_packed(self, packed: bytes) -> None:
        """Add what pack() made of a vector of the same blocks; raises InvalidInputError when it is no such thing."""
        for block, part in self.require_packed(packed):
            _kernel.unpack_add(part, block.count, block.bits, self._numbers[block.name])

    def require_packed(self, packed: bytes) -> list[tuple[Block, memoryview]]:
        """The part of each block in what pack() made; raises InvalidInputError when it is no such thing."""
        if len(packed) != self.packed_bytes:
            raise BufferSizeError("packed vector", len(packed), self.packed_bytes)
        parts, first = [], 0
        for block in self.blocks:
            parts.append((block, memoryview(packed)[first : first + block.packed_bytes]))
            first += block.packed_bytes
        if any(_has_dirty_padding(block, part) for block, part in parts):
            raise InvalidInputError("a bit behind the last number of a block is set")
        return parts


@secret
class _MaskStream:
    """The key stream of one mask, piece by piece in one buffer."""

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(AES(key), CTR(bytes(16))).encryptor()
        self._buffer = bytearray(_PIECE_BYTES + 15)  # `cryptography` asks for a block's room behind the output

    def take(self, n: int) -> memoryview:
        """Return the next n bytes, valid until the next call."""
        self._cipher.update_into(memoryview(_ZEROS)[:n], self._buffer)
        return memoryview(self._buffer)[:n]


def _has_dirty_padding(block: Block, part: memoryview) -> bool:
    used_bits = block.count * block.bits % 8
    return bool(used_bits and part[-1] >> used_bits)


def _pieces(numbers: memoryview[int]) -> Iterator[memoryview]:
    view = numbers.cast("B")
    return (view[first : first + _PIECE_BYTES] for first in range(0, len(view), _PIECE_BYTES))
