"""Packed binary codes: one user's, and a whole catalogue's.

Layout, on disk, in memory and on the wire: row-major, code_bits / 8 bytes per row; code bit k is bit (k mod 8) of byte
(k div 8); a set bit is +1.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING

from lightfr import _arguments, _kernel
from lightfr._secret import secret
from lightfr.errors import (
    ArtifactFileError,
    BufferSizeError,
    InvalidInputError,
    ItemIndexError,
    LightFRError,
    OutOfRangeError,
)
from lightfr.open_rows import OpenRows

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Self

    from _typeshed import ReadableBuffer


@secret
class UserCode:
    """A private user code. Its bits show in no repr, no comparison error and no log."""

    __slots__ = ("_bits", "_pointer")

    def __init__(self, bits: bytes) -> None:
        self._bits = _arguments.copied("a user code", bits)
        self._pointer = _kernel.CodesPointer(self._bits, len(self._bits) * 8)

    @classmethod
    def random(cls, code_bits: int) -> UserCode:
        """Make a uniformly random code, from the system's cryptographic generator."""
        _kernel.require_code_bits(code_bits)
        return cls(os.urandom(code_bits // 8))

    @property
    def code_bits(self) -> int:
        """Length of the code."""
        return self._pointer.code_bits

    def reveal(self) -> bytes:
        """Return the packed bits: private data, for the store and the kernel only."""
        return self._bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserCode) and self._bits == other._bits

    def __hash__(self) -> int:
        return hash(self._bits)

    def __repr__(self) -> str:
        return f"<UserCode of {self.code_bits} bits>"


class ItemCodes:
    """The codes of a catalogue: a view of given bytes, or of a memory-mapped file. Scanning never copies them.

    With `open_rows` they have a row for each open item, and behind those one that all closed items share. Without, each
    item has its row.
    """

    def __init__(self, codes: ReadableBuffer, code_bits: int, open_rows: OpenRows | None = None) -> None:
        _require_open_rows(open_rows)
        self.open_rows = open_rows
        pointer = _kernel.CodesPointer(codes, code_bits, None if open_rows is None else open_rows.kernel_pointer())
        self._code_bits, self._n_items, self._n_rows = pointer.code_bits, pointer.n_items, pointer.n_rows
        # None once closed. A search in another thread that has the pointer keeps the codes until it ends.
        self._pointer: _kernel.CodesPointer | None = pointer
        # Has a descriptor of its own, and closes it when it goes.
        self._map: mmap.mmap | None = None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        code_bits: int,
        *,
        n_items: int | None = None,
        open_rows: OpenRows | None = None,
    ) -> ItemCodes:
        """Map a file of packed codes. Raises ArtifactFileError unless its size is that of n_items or of open_rows.

        Without either the file may have any number of rows.
        """
        _kernel.require_code_bits(code_bits)
        _require_open_rows(open_rows)
        n_rows = None if n_items is None else _arguments.whole("n_items", n_items)
        n_rows = n_rows if open_rows is None else open_rows.n_open + 1
        try:
            file = os.open(_arguments.path("path", path), os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise ArtifactFileError(f"cannot open codes file '{Path(path).name}': {error.strerror}") from error
        try:
            return cls._map_file(file, code_bits, n_rows, open_rows)
        finally:
            os.close(file)

    @classmethod
    def _map_file(cls, file: int, code_bits: int, n_rows: int | None, open_rows: OpenRows | None) -> ItemCodes:
        size, row = os.fstat(file).st_size, code_bits // 8
        expected = size - size % row if n_rows is None else n_rows * row
        if size != expected:
            raise ArtifactFileError(f"codes file has {size} bytes, expected {expected}", size, expected)
        # An empty file cannot be mapped, and need not be.
        try:
            mapped = mmap.mmap(file, size, access=mmap.ACCESS_READ) if size else None
        except ValueError as error:  # it shrank since its size was asked for
            raise ArtifactFileError(f"codes file no longer has the {size} bytes that it had") from error
        except OSError as error:  # no descriptor or no memory is left
            raise ArtifactFileError(f"cannot map codes file: {error.strerror}") from error
        codes = cls(mapped if mapped is not None else b"", code_bits, open_rows)
        codes._map = mapped
        return codes

    @property
    def code_bits(self) -> int:
        """Length of each code."""
        return self._code_bits

    @property
    def code_bytes(self) -> int:
        """Bytes of each row."""
        return self.code_bits // 8

    @property
    def n_items(self) -> int:
        """Number of items of the catalogue."""
        return self._n_items

    @property
    def n_rows(self) -> int:
        """Number of rows: as many as items, or one for each open item and one more."""
        return self._n_rows

    def __len__(self) -> int:
        return self.n_items

    def row(self, item_index: int) -> bytes:
        """Return the packed code of an item."""
        pointer = self.kernel_pointer().pointer
        if not 0 <= _arguments.whole("item_index", item_index) < self.n_items:
            raise ItemIndexError(self.n_items)
        row = item_index if self.open_rows is None else self.open_rows.row_of(item_index)
        start = row * self.code_bytes
        return bytes(pointer[start : start + self.code_bytes])

    def kernel_pointer(self) -> _kernel.CodesPointer:
        """Give the kernel its view, after a look at whether the mapped file is still whole.

        Reading a mapped page that a shrunken file no longer has would end the process. The look narrows that to a file
        that shrinks during a scan; replace codes files by renaming a new one over them, as the SDK does, and it cannot.
        """
        pointer, mapped = self._pointer, self._map
        if pointer is None:
            raise LightFRError("these item codes are closed")
        if mapped is not None:
            size, expected = mapped.size(), self.n_rows * self.code_bytes
            if size < expected:
                raise ArtifactFileError(f"codes file shrank to {size} bytes, expected {expected}", size, expected)
        return pointer

    def release_pages(self) -> None:
        """Give back the memory of pages that searches have read; the next search reads them again."""
        if (mapped := self._map) is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Unmap the file, once no search reads it any more. Further use raises LightFRError; closing twice is fine."""
        self._pointer = self._map = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ItemCodes of {self.n_items} items, {self.code_bits} bits>"


def _require_open_rows(open_rows: object) -> None:
    if open_rows is not None and not isinstance(open_rows, OpenRows):
        raise InvalidInputError(f"open_rows must be OpenRows, not {type(open_rows).__name__}")


@secret
class ItemSet:
    """A set of item indices as a bitmap: what a search leaves out. Its members show in no repr."""

    __slots__ = ("_bitmap", "n_items")

    def __init__(self, n_items: int, members: Iterable[int] = (), *, bitmap: bytes | bytearray | None = None) -> None:
        """Begin with `members`, and with those of a bitmap of ceil(n_items / 8) bytes if there is one."""
        self.n_items = n_items = _arguments.whole("n_items", n_items)
        if not 0 <= n_items < 2**32:
            raise OutOfRangeError("number of items", n_items, 0, 2**32 - 1)
        n_bytes = (n_items + 7) // 8
        self._bitmap = bytearray(n_bytes if bitmap is None else _arguments.copied("bitmap", bitmap))
        if len(self._bitmap) != n_bytes:
            raise BufferSizeError("item set", len(self._bitmap), n_bytes)
        if n_items % 8 and self._bitmap[-1] >> n_items % 8:
            raise InvalidInputError("the bitmap of an item set has a bit behind the last item")
        for item_index in _arguments.listed("members", members):
            self.add(item_index)

    def add(self, item_index: int) -> None:
        """Put an item into the set."""
        if not 0 <= _arguments.whole("item_index", item_index) < self.n_items:
            raise ItemIndexError(self.n_items)
        self._bitmap[item_index >> 3] |= 1 << (item_index & 7)

    def discard(self, item_index: int) -> None:
        """Take an item out of the set, if it is there."""
        if 0 <= item_index < self.n_items:
            self._bitmap[item_index >> 3] &= ~(1 << (item_index & 7))

    def __contains__(self, item_index: int) -> bool:
        return 0 <= item_index < self.n_items and bool(self._bitmap[item_index >> 3] >> (item_index & 7) & 1)

    def __len__(self) -> int:
        return int.from_bytes(self._bitmap, "little").bit_count()

    def bitmap(self, n_items: int) -> bytearray:
        """Give the kernel its view; the set must have been made for that many items."""
        if n_items != self.n_items:
            raise BufferSizeError("item set", len(self._bitmap), (n_items + 7) // 8)
        return self._bitmap

    def __repr__(self) -> str:
        return f"<ItemSet over {self.n_items} items>"
