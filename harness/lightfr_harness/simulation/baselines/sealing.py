"""How FedMF's numbers stand in messages: as they are, as whole multiples of 1e-5, or as ciphertexts of these multiples.

The multiples are exactly what decryption gives, so a run on them equals a run on ciphertexts bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr.errors import InvalidInputError, ProtocolError
from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.lightfr_baselines_pb2 import EncryptedItemRows, EncryptedTable
from lightfr_harness.simulation.baselines.method import Floats
from lightfr_harness.simulation.baselines.paillier import Below, PrivateKey, PublicKey
from lightfr_harness.simulation.baselines.tables import (
    decode_rows,
    decode_table,
    encode_rows,
    encode_table,
    parsed,
    require_rows,
)

SCALE = 100_000  # numbers are rounded to multiples of 1 / SCALE
LARGEST = 2.0**40  # of a multiple; sums of thousands of them are still exact in a float64
# What is in a table: plain numbers, multiples or ciphertexts.
Cells = npt.NDArray[Any]


class Sealing(ABC):
    """How numbers stand in messages."""

    @abstractmethod
    def sealed(self, numbers: Floats) -> Cells: ...

    @abstractmethod
    def opened(self, cells: Cells) -> Floats: ...

    @abstractmethod
    def added(self, left: Cells, right: Cells) -> Cells:
        """The sums, sealed, without opening anything."""

    @abstractmethod
    def encode_table(self, cells: Cells) -> bytes: ...

    @abstractmethod
    def decode_table(self, message: bytes) -> Cells: ...

    @abstractmethod
    def encode_rows(self, items: Index, cells: Cells) -> bytes: ...

    @abstractmethod
    def decode_rows(self, message: bytes) -> tuple[Index, Cells]: ...


class Plain(Sealing):
    """Numbers as they are."""

    def sealed(self, numbers: Floats) -> Cells:
        return numbers

    def opened(self, cells: Cells) -> Floats:
        return cells.astype(np.float64, copy=False)

    def added(self, left: Cells, right: Cells) -> Cells:
        total: Cells = left + right
        return total

    def encode_table(self, cells: Cells) -> bytes:
        return encode_table(cells)

    def decode_table(self, message: bytes) -> Cells:
        return decode_table(message)

    def encode_rows(self, items: Index, cells: Cells) -> bytes:
        return encode_rows(items, cells)

    def decode_rows(self, message: bytes) -> tuple[Index, Cells]:
        return decode_rows(message)


class FixedPoint(Plain):
    """Whole multiples of 1 / SCALE, in float64, which holds them exactly."""

    def sealed(self, numbers: Floats) -> Cells:
        return multiples(numbers)

    def opened(self, cells: Cells) -> Floats:
        return super().opened(cells) / SCALE


class Encrypted(Sealing):
    """Ciphertexts of the same multiples. The server makes one without the private key."""

    def __init__(self, public: PublicKey, private: PrivateKey | None, below: Below) -> None:
        self._public, self._private, self._below = public, private, below

    def sealed(self, numbers: Floats) -> Cells:
        flat = [self._public.encrypt(int(each), self._below) for each in multiples(numbers).ravel().tolist()]
        return np.array(flat, object).reshape(numbers.shape)

    def opened(self, cells: Cells) -> Floats:
        if self._private is None:
            raise InvalidInputError("Only devices have the private key; open this table on a device.")
        return np.array([self._private.decrypt(each) for each in cells.ravel().tolist()]).reshape(cells.shape) / SCALE

    def added(self, left: Cells, right: Cells) -> Cells:
        total: Cells = left * right % self._public.square
        return total

    def encode_table(self, cells: Cells) -> bytes:
        return self._table(cells).SerializeToString()

    def decode_table(self, message: bytes) -> Cells:
        return self._cells(parsed(EncryptedTable(), message))

    def encode_rows(self, items: Index, cells: Cells) -> bytes:
        return EncryptedItemRows(item_indices=items.tolist(), rows=self._table(cells)).SerializeToString()

    def decode_rows(self, message: bytes) -> tuple[Index, Cells]:
        decoded = parsed(EncryptedItemRows(), message)
        items, cells = np.array(decoded.item_indices, np.uint32), self._cells(decoded.rows)
        require_rows(len(items), len(cells))
        return items, cells

    def _table(self, cells: Cells) -> EncryptedTable:
        size = self._public.ciphertext_bytes
        joined = b"".join(each.to_bytes(size, "big") for each in cells.ravel().tolist())
        return EncryptedTable(columns=cells.shape[1], ciphertext_bytes=size, ciphertexts=joined)

    def _cells(self, table: EncryptedTable) -> Cells:
        size, joined = self._public.ciphertext_bytes, table.ciphertexts
        if table.ciphertext_bytes != size or not table.columns or len(joined) % (size * table.columns):
            raise ProtocolError(f"{len(joined)} bytes are no rows of {table.columns} ciphertexts of {size} bytes.")
        flat = [int.from_bytes(joined[start : start + size], "big") for start in range(0, len(joined), size)]
        return np.array(flat, object).reshape(-1, table.columns)


def multiples(numbers: Floats) -> Floats:
    """The nearest whole multiples of 1 / SCALE."""
    rounded = np.rint(numbers * SCALE)
    if not (np.abs(rounded) <= LARGEST).all():
        raise InvalidInputError(
            f"A number is not finite or beyond {LARGEST / SCALE:.0f}: training diverges. Take a smaller step size."
        )
    return rounded
