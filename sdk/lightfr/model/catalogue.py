"""The app's item ids and the rows of the item codes, each found from the other in a memory-mapped file.

The format stands in docs/artifacts.md. Opening checks the header and the sizes; an entry is checked when a look-up
meets it, so that ten million ids cost nothing until they are asked for.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from struct import Struct
from typing import TYPE_CHECKING

from lightfr._artifacts import open_artifact
from lightfr.errors import ArtifactFileError, ItemIdError, ItemIndexError, LightFRError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

MAGIC = b"LFRC"
FORMAT_VERSION = 1
KIND_INT, KIND_STR = 1, 2
MAX_ITEMS = 2**32 - 1
MAX_TEXT_BYTES = 2**32 - 1
MAX_ID_BYTES = 255

HEADER = Struct("<4sBBHQ")  # magic, format version, kind, zero, item count


def require_item_id(item_id: str | int) -> str | int:
    """Return the id if it is a string of 1 to 255 UTF-8 bytes or an int of 64 bits, signed; else raise ItemIdError.

    Exactly these types: a subclass, bool among them, would not come back from the store as what it was.
    """
    if type(item_id) is int and -(2**63) <= item_id < 2**63:
        return item_id
    if type(item_id) is str and 1 <= len(_utf8(item_id)) <= MAX_ID_BYTES:
        return item_id
    raise ItemIdError


def _utf8(item_id: str) -> bytes:
    """The bytes of an id; none where a lone surrogate has no encoding."""
    try:
        return item_id.encode()
    except UnicodeEncodeError:
        # Not passed on: the encoder's error carries the id.
        return b""


class Catalogue:
    """The ids of a catalogue, by row and by id. Look-ups read the mapped file; ids show in no repr and no error."""

    def __init__(self, mapped: mmap.mmap, n_items: int | None = None) -> None:
        """Take a map of a catalogue file; `open` is the usual way."""
        kind, self._n_items = _read_header(mapped, n_items)
        self._map = mapped
        self._is_text = kind == KIND_STR
        # By row stand the ids, or the offsets of their text, which are one more than the ids.
        order_start = HEADER.size + (4 * (self._n_items + 1) if self._is_text else 8 * self._n_items)
        self._text_start = order_start + 4 * self._n_items
        _require_size(mapped, self._text_start, order_start if self._is_text else None)
        # Casts read the machine's byte order; the kernel runs on little-endian machines only.
        with memoryview(mapped) as content:
            self._by_row = content[HEADER.size : order_start].cast("I" if self._is_text else "q")
            self._order = content[order_start : self._text_start].cast("I")

    @classmethod
    def open(cls, path: str | os.PathLike[str], n_items: int | None = None) -> Catalogue:
        """Map a catalogue file. Raises ArtifactFileError unless header and size agree (with n_items, if given)."""
        with open_artifact(path, "catalogue file") as file:
            mapped = _map_whole(file.fileno())
        try:
            return cls(mapped, n_items)
        except BaseException:
            mapped.close()
            raise

    @property
    def n_items(self) -> int:
        """Number of ids, which is the number of rows."""
        return self._n_items

    @property
    def kind(self) -> str:
        """What the ids are: "int" or "str"."""
        return "str" if self._is_text else "int"

    def __len__(self) -> int:
        return self._n_items

    def row_of(self, item_id: str | int) -> int | None:
        """Find the row of an id; None when the catalogue lacks it or has ids of the other kind."""
        require_item_id(item_id)
        self._require_whole()
        if isinstance(item_id, str) != self._is_text:
            return None
        try:
            return self._search(item_id.encode() if isinstance(item_id, str) else item_id)
        except IndexError as error:
            raise ArtifactFileError(
                f"catalogue file is corrupt: its order names a row beyond its {self._n_items} items"
            ) from error

    # Any: bytes or an int, by the kind of the file.
    def _search(self, key: Any) -> int | None:
        key_of = self._text_of if self._is_text else self._by_row.__getitem__
        position = bisect_left(self._order, key, key=key_of)
        if position == self._n_items:
            return None
        row = self._order[position]
        return row if key_of(row) == key else None

    def id_of(self, item_index: int) -> str | int:
        """Give the id of a row."""
        self._require_whole()
        if not 0 <= item_index < self._n_items:
            raise ItemIndexError(self._n_items)
        return _decode(self._text_of(item_index)) if self._is_text else self._by_row[item_index]

    def release_pages(self) -> None:
        """Give back the memory of pages that look-ups have read; the next look-up reads them again."""
        self._require_whole()
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def _text_of(self, row: int) -> bytes:
        start, stop = self._text_start + self._by_row[row], self._text_start + self._by_row[row + 1]
        if not 1 <= stop - start <= MAX_ID_BYTES or stop > len(self._map):
            raise ArtifactFileError("catalogue file is corrupt: an id is not 1 to 255 bytes inside its text")
        return self._map[start:stop]

    def _require_whole(self) -> None:
        """Look whether the mapped file still has all its pages: reading one that it lost would end the process."""
        if self._map.closed:
            raise LightFRError("this catalogue is closed")
        size, expected = self._map.size(), len(self._map)
        if size < expected:
            raise ArtifactFileError(f"catalogue file shrank to {size} bytes, expected {expected}", size, expected)

    def close(self) -> None:
        """Unmap the file. Further look-ups raise LightFRError; closing twice is fine."""
        self._by_row.release()
        self._order.release()
        self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Catalogue of {self._n_items} items, ids are {self.kind}>"


def _map_whole(file: int) -> mmap.mmap:
    try:
        return mmap.mmap(file, 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError, OverflowError) as error:
        # ValueError: an empty file; OverflowError: a file beyond the address space.
        size = os.fstat(file).st_size
        raise ArtifactFileError(f"cannot map a catalogue file of {size} bytes", size) from error


def _read_header(mapped: mmap.mmap, expected_items: int | None) -> tuple[int, int]:
    """Return kind and number of items."""
    if len(mapped) < HEADER.size:
        raise ArtifactFileError(f"catalogue file has {len(mapped)} bytes, no header", len(mapped), HEADER.size)
    magic, version, kind, zero, n_items = HEADER.unpack_from(mapped)
    if (magic, version, zero) != (MAGIC, FORMAT_VERSION, 0) or kind not in (KIND_INT, KIND_STR):
        raise ArtifactFileError(f"not a catalogue file of format version {FORMAT_VERSION}")
    if not 1 <= n_items <= MAX_ITEMS:
        raise ArtifactFileError(f"catalogue file has {n_items} items, expected 1 to {MAX_ITEMS}")
    if expected_items not in (None, n_items):
        raise ArtifactFileError(f"catalogue file has {n_items} items, expected {expected_items}")
    return kind, n_items


def _require_size(mapped: mmap.mmap, text_start: int, offsets_end: int | None) -> None:
    """Raise ArtifactFileError unless the file ends where the text does; its length is the last of the offsets."""
    actual, expected = len(mapped), text_start
    if offsets_end is not None and actual >= text_start:
        expected += int.from_bytes(mapped[offsets_end - 4 : offsets_end], "little")
    if actual != expected:
        raise ArtifactFileError(f"catalogue file has {actual} bytes, expected {expected}", actual, expected)


def _decode(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        pass
    # Raised outside the handler, whose error carries the bytes of the id.
    raise ArtifactFileError("catalogue file is corrupt: an id is not UTF-8")
