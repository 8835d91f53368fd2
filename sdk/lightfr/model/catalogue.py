"""The app's item ids and the rows of the item codes, each found from the other in a file.

docs/artifacts.md describes the format. Opening checks the header and the sizes; an entry is checked when a look-up
meets it, so that ten million ids cost nothing until they are asked for. Look-ups read single pages of the file. A map
of it would cost a device megabytes: binary searches touch pages all over the file, and the system maps their
neighbours too.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from functools import lru_cache, partial
from struct import Struct
from typing import TYPE_CHECKING

from lightfr._artifacts import open_artifact
from lightfr.errors import ArtifactFileError, ItemIdError, ItemIndexError, LightFRError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, BinaryIO, Self

MAGIC = b"LFRC"
FORMAT_VERSION = 1
KIND_INT, KIND_STR = 1, 2
MAX_ITEMS = 2**32 - 1
MAX_TEXT_BYTES = 2**32 - 1
MAX_ID_BYTES = 255

HEADER = Struct("<4sBBHQ")  # magic, format version, kind, zero, item count
_WORD, _INTEGER = Struct("<I"), Struct("<q")
_PAGE_BYTES = 4096
# The first steps of every search read the same few pages.
_KEPT_PAGES = 64


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
    """The ids of a catalogue, by row and by id. Ids show in no repr and no error."""

    def __init__(self, file: BinaryIO, n_items: int | None = None) -> None:
        """Take an unbuffered catalogue file, which is closed with the catalogue; `open` is the usual way."""
        self._file = file
        self._size_bytes = os.fstat(file.fileno()).st_size
        kind, self._n_items = _read_header(file.read(HEADER.size), n_items)
        self._is_text = kind == KIND_STR
        # By row stand the ids, or the offsets of their text, which are one more than the ids.
        self._order_start = HEADER.size + (4 * (self._n_items + 1) if self._is_text else 8 * self._n_items)
        self._text_start = self._order_start + 4 * self._n_items
        self._page = lru_cache(_KEPT_PAGES)(partial(_read_page, file, self._size_bytes))
        expected = self._text_start
        if self._is_text and self._size_bytes >= expected:
            # The text's length is the last of the offsets.
            expected += self._entry(_WORD, self._order_start - _WORD.size)
        if self._size_bytes != expected:
            reason = f"catalogue file has {self._size_bytes} bytes, expected {expected}"
            raise ArtifactFileError(reason, self._size_bytes, expected)

    @classmethod
    def open(cls, path: str | os.PathLike[str], n_items: int | None = None) -> Catalogue:
        """Open a catalogue file. Raises ArtifactFileError unless header and size agree (with n_items, if given)."""
        file = open_artifact(path, "catalogue file", buffering=0)
        try:
            return cls(file, n_items)
        except BaseException:
            file.close()
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
        wanted: Any = item_id.encode() if isinstance(item_id, str) else item_id
        position = bisect_left(range(self._n_items), wanted, key=lambda at: self._key_of(self._row_at(at)))
        if position == self._n_items:
            return None
        row = self._row_at(position)
        return row if self._key_of(row) == wanted else None

    def id_of(self, item_index: int) -> str | int:
        """Give the id of a row."""
        self._require_whole()
        if not 0 <= item_index < self._n_items:
            raise ItemIndexError(self._n_items)
        key = self._key_of(item_index)
        return _decode(key) if self._is_text else key

    def _row_at(self, position: int) -> int:
        """Return the row of the id that has this place in the order of the ids."""
        row = self._entry(_WORD, self._order_start + _WORD.size * position)
        if row >= self._n_items:
            raise ArtifactFileError(
                f"catalogue file is corrupt: its order names a row beyond its {self._n_items} items"
            )
        return row

    # Any: the bytes of a text or an int, by the kind of the file.
    def _key_of(self, row: int) -> Any:
        if not self._is_text:
            return self._entry(_INTEGER, HEADER.size + _INTEGER.size * row)
        first, beyond = (self._entry(_WORD, HEADER.size + _WORD.size * place) for place in (row, row + 1))
        if not 1 <= beyond - first <= MAX_ID_BYTES or self._text_start + beyond > self._size_bytes:
            raise ArtifactFileError("catalogue file is corrupt: an id is not 1 to 255 bytes inside its text")
        return os.pread(self._file.fileno(), beyond - first, self._text_start + first)

    def _entry(self, kind: Struct, offset: int) -> int:
        """Read a number. It lies in one page, for its offset is a multiple of its size."""
        number, at = divmod(offset, _PAGE_BYTES)
        value: int = kind.unpack_from(self._page(number), at)[0]
        return value

    def _require_whole(self) -> None:
        """Raise an error when the catalogue is closed or its file has become shorter."""
        if self._file.closed:
            raise LightFRError("this catalogue is closed")
        size = os.fstat(self._file.fileno()).st_size
        if size < self._size_bytes:
            raise _shrunk(size, self._size_bytes)

    def close(self) -> None:
        """Close the file. Further look-ups raise LightFRError; closing twice is fine."""
        self._page.cache_clear()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Catalogue of {self._n_items} items, ids are {self.kind}>"


def _read_page(file: BinaryIO, size_bytes: int, number: int) -> bytes:
    start = number * _PAGE_BYTES
    page = os.pread(file.fileno(), _PAGE_BYTES, start)
    if len(page) < min(_PAGE_BYTES, size_bytes - start):
        raise _shrunk(start + len(page), size_bytes)
    return page


def _shrunk(size_bytes: int, expected_bytes: int) -> ArtifactFileError:
    reason = f"catalogue file shrank to {size_bytes} bytes, expected {expected_bytes}"
    return ArtifactFileError(reason, size_bytes, expected_bytes)


def _read_header(header: bytes, expected_items: int | None) -> tuple[int, int]:
    """Return kind and number of items."""
    if len(header) < HEADER.size:
        raise ArtifactFileError(
            f"catalogue file has {len(header)} bytes, shorter than its header", len(header), HEADER.size
        )
    magic, version, kind, zero, n_items = HEADER.unpack(header)
    if (magic, version, zero) != (MAGIC, FORMAT_VERSION, 0) or kind not in (KIND_INT, KIND_STR):
        raise ArtifactFileError(f"not a catalogue file of format version {FORMAT_VERSION}")
    if not 1 <= n_items <= MAX_ITEMS:
        raise ArtifactFileError(f"catalogue file has {n_items} items, expected 1 to {MAX_ITEMS}")
    if expected_items not in (None, n_items):
        raise ArtifactFileError(f"catalogue file has {n_items} items, expected {expected_items}")
    return kind, n_items


def _decode(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        pass
    # Raised outside the handler, whose error carries the bytes of the id.
    raise ArtifactFileError("catalogue file is corrupt: an id is not UTF-8")
