"""One file of a catalogue: sorted ids in packed blocks, and the numbers of their items.

docs/artifacts.md describes the format. An id has a position in the order of the ids, and its item has a number.
Look-ups read single pages of the file. A map of it would cost a device megabytes: searches touch pages all over the
file, and the system maps their neighbours too.
"""

from __future__ import annotations

import os
import zlib
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import add, gt
from struct import Struct
from typing import TYPE_CHECKING, Any

from lightfr import _kernel
from lightfr._artifacts import open_artifact
from lightfr.errors import ArtifactFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    # Of a file of so many bytes, one page by its number.
    ReadPage = Callable[[BinaryIO, int, int], bytes]

MAGIC = b"LFRC"
FORMAT_VERSION = 2
KIND_INT, KIND_STR = 1, 2
MAX_ITEMS = 2**32 - 1
MAX_ID_BYTES = 255
BLOCK_IDS = 256
GROUP_IDS = 8192
# Far above what a block of strings needs, so that a false offset cannot make a reader load gigabytes.
MAX_BLOCK_BYTES = 2**17

HEADER = Struct("<4sBBHQ")  # magic, format version, kind, zero, number of items
# Of the gaps of a block of integers, by their bytes.
GAP_TYPES = {0: "B", 1: "B", 2: "H", 4: "I", 8: "Q"}
_OFFSETS, _INTEGER = Struct("<II"), Struct("<q")
_PAGE_BYTES = 4096
# The first steps of every search read the same few pages.
_KEPT_PAGES = 64


def keep_pages() -> ReadPage:
    """Return what reads pages for the parts of one catalogue, and keeps the last ones."""
    return lru_cache(_KEPT_PAGES)(_read_page)


def _read_page(file: BinaryIO, size_bytes: int, number: int) -> bytes:
    start = number * _PAGE_BYTES
    return _read(file, size_bytes, start, min(_PAGE_BYTES, size_bytes - start))


def _read(file: BinaryIO, size_bytes: int, start: int, n_bytes: int) -> bytes:
    piece = os.pread(file.fileno(), n_bytes, start)
    if len(piece) < n_bytes:
        raise _shrunk(start + len(piece), size_bytes)
    return piece


def open_part(path: str | os.PathLike[str], page: ReadPage) -> Part:
    """Open a part. Raises ArtifactFileError unless the file begins with the header and ends where the layout does."""
    file = open_artifact(path, "catalogue file", buffering=0)
    try:
        kind, n_items = _read_header(file.read(HEADER.size))
        return (_TextPart if kind == KIND_STR else _IntegerPart)(file, n_items, page)
    except BaseException:
        file.close()
        raise


def _read_header(header: bytes) -> tuple[int, int]:
    """Return kind and number of items."""
    if len(header) < HEADER.size:
        reason = f"catalogue file has {len(header)} bytes, shorter than its header"
        raise ArtifactFileError(reason, len(header), HEADER.size)
    magic, version, kind, zero, n_items = HEADER.unpack(header)
    if (magic, version, zero) != (MAGIC, FORMAT_VERSION, 0) or kind not in (KIND_INT, KIND_STR):
        raise ArtifactFileError(f"not a catalogue file of format version {FORMAT_VERSION}")
    if not 1 <= n_items <= MAX_ITEMS:
        raise ArtifactFileError(f"catalogue file has {n_items} items, expected 1 to {MAX_ITEMS}")
    return kind, n_items


# Any: a key is an int, or the bytes of a string, by the kind of the file.
class Part(ABC):
    """The ids of one file. They show in no repr and no error."""

    is_text: bool
    # For each block behind the offsets.
    _first_bytes: int

    def __init__(self, file: BinaryIO, n_items: int, page: ReadPage) -> None:
        """Take an unbuffered file, which is closed with the part; `open_part` is the usual way."""
        self.n_items = n_items
        self._file, self._page = file, page
        self._size_bytes = os.fstat(file.fileno()).st_size
        self._blocks, groups = -(-n_items // BLOCK_IDS), -(-n_items // GROUP_IDS)
        self._number_bits, self._group_bits = (n_items - 1).bit_length(), (groups - 1).bit_length()
        self._firsts = HEADER.size + 4 * (self._blocks + 1)
        self._ids = self._firsts + self._first_bytes * self._blocks
        self._require_size(self._ids + self._packed_bytes)
        # The last offset is the length of the ids.
        self._ids_bytes = _OFFSETS.unpack(self._cached(self._firsts - 8, 8))[1]
        self._numbers = self._ids + self._ids_bytes
        self._groups = self._numbers + _kernel.packed_bytes(n_items, self._number_bits)
        self._require_size(self._numbers + self._packed_bytes, exactly=True)

    @property
    def _packed_bytes(self) -> int:
        """Of the numbers and the groups."""
        return sum(_kernel.packed_bytes(self.n_items, bits) for bits in (self._number_bits, self._group_bits))

    def number_of(self, key: Any) -> int | None:
        """Find the number of an item; None when the part lacks the id."""
        block = bisect_right(range(self._blocks), key, key=self._first_of) - 1
        place = self._find(block, key) if block >= 0 else None
        if place is None:
            return None
        number = self._packed(self._numbers, block * BLOCK_IDS + place, self._number_bits)
        if number >= self.n_items:
            raise _corrupt(f"a number is not below its {self.n_items} items")
        return number

    def key_of(self, number: int) -> Any:
        """Give the id of a number below n_items."""
        block, place = divmod(self._position_of(number), BLOCK_IDS)
        return self._key_at(block, place)

    def check(self) -> None:
        """Go through the directory. What stands behind it is checked when a look-up meets it."""
        if self._bounds(0)[0] != self._ids:
            raise _corrupt("the first block does not begin where the ids do")
        for start, beyond in pairwise(self._entries(HEADER.size, self._blocks + 1, "I")):
            self._require_block(start, beyond)
        for start, bits in ((self._numbers, self._number_bits), (self._groups, self._group_bits)):
            _require_clear(self._cached(start + _kernel.packed_bytes(self.n_items, bits) - 1, 1), self.n_items * bits)

    @abstractmethod
    def _first_of(self, block: int) -> Any:
        """Give the first id of a block."""

    @abstractmethod
    def _find(self, block: int, key: Any) -> int | None:
        """Find the place of an id in a block whose first id is not above it."""

    @abstractmethod
    def _key_at(self, block: int, place: int) -> Any:
        """Give the id at a place of a block."""

    def _ids_of(self, block: int) -> int:
        return min(BLOCK_IDS, self.n_items - block * BLOCK_IDS)

    def _bounds(self, block: int) -> tuple[int, int]:
        """Where a block is in the file, and its bytes."""
        start, beyond = _OFFSETS.unpack(self._cached(HEADER.size + 4 * block, 8))
        self._require_block(start, beyond)
        return self._ids + start, beyond - start

    def _require_block(self, start: int, beyond: int) -> None:
        if not start <= beyond <= self._ids_bytes:
            raise _corrupt("the offset of a block is above the next or behind the ids")
        if beyond - start > MAX_BLOCK_BYTES:
            raise _corrupt(f"a block has {beyond - start} bytes, at most {MAX_BLOCK_BYTES} are allowed")

    def _position_of(self, number: int) -> int:
        group = self._packed(self._groups, number, self._group_bits)
        first = group * GROUP_IDS
        count = min(GROUP_IDS, self.n_items - first)
        place = self._place_in_group(number, first, count) if count > 0 else -1
        if place < 0:
            raise _corrupt("a number is not in its group")
        return first + place

    def _place_in_group(self, number: int, first: int, count: int) -> int:
        """Look for the number among those of `count` positions; -1: it is not there."""
        if not self._number_bits:
            return 0
        bits, size = self._number_bits, _kernel.number_bytes(self._number_bits)
        packed = self._read(self._numbers + first * bits // 8, _kernel.packed_bytes(count, bits))
        _require_clear(packed[-1:], count * bits)
        numbers = bytearray(size * count)
        _kernel.unpack_add(packed, count, bits, numbers)
        wanted = number.to_bytes(size, "little")
        # Looking for one byte is many times as fast as looking for several, and meets one number in 256.
        low_bytes = numbers[::size]
        place = low_bytes.find(wanted[0])
        while place >= 0 and numbers[place * size : (place + 1) * size] != wanted:
            place = low_bytes.find(wanted[0], place + 1)
        return place

    def _packed(self, start: int, index: int, bits: int) -> int:
        """Read one of the packed numbers of a section."""
        first, shift = divmod(index * bits, 8)
        word = self._cached(start + first, (shift + bits + 7) // 8)
        return int.from_bytes(word, "little") >> shift & ((1 << bits) - 1)

    def _entries(self, start: int, count: int, kind: str) -> Iterator[int]:
        """Give the numbers of a directory, a page at a time."""
        size = array(kind).itemsize
        for at in range(0, count * size, _PAGE_BYTES):
            yield from array(kind, self._read(start + at, min(_PAGE_BYTES, count * size - at)))

    def _cached(self, start: int, n_bytes: int) -> bytes:
        """Read at most a page, of pages that are kept."""
        number, at = divmod(start, _PAGE_BYTES)
        piece = self._page(self._file, self._size_bytes, number)[at : at + n_bytes]
        if len(piece) < n_bytes:
            piece += self._page(self._file, self._size_bytes, number + 1)[: n_bytes - len(piece)]
        return piece

    def _read(self, start: int, n_bytes: int) -> bytes:
        return _read(self._file, self._size_bytes, start, n_bytes)

    def _require_size(self, expected: int, *, exactly: bool = False) -> None:
        if self._size_bytes < expected or (exactly and self._size_bytes > expected):
            reason = f"catalogue file has {self._size_bytes} bytes, expected {expected}"
            raise ArtifactFileError(reason, self._size_bytes, expected)

    def require_whole(self) -> None:
        """Raise an error when the file has become shorter."""
        size = os.fstat(self._file.fileno()).st_size
        if size < self._size_bytes:
            raise _shrunk(size, self._size_bytes)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _IntegerPart(Part):
    is_text = False
    _first_bytes = 8

    def check(self) -> None:
        super().check()
        if any(after <= before for before, after in pairwise(self._entries(self._firsts, self._blocks, "q"))):
            raise _corrupt("the first ids of its blocks do not ascend")

    def _first_of(self, block: int) -> int:
        first: int = _INTEGER.unpack(self._cached(self._firsts + 8 * block, 8))[0]
        return first

    def _find(self, block: int, key: int) -> int | None:
        # Each id less its place.
        sums = list(accumulate(self._gaps(block), initial=self._first_of(block)))
        place = bisect_left(range(len(sums)), key, key=lambda at: sums[at] + at)
        return place if place < len(sums) and sums[place] + place == key else None

    def _key_at(self, block: int, place: int) -> int:
        return self._first_of(block) + sum(self._gaps(block)[:place]) + place

    def _gaps(self, block: int) -> array[int]:
        """Give the gaps of a block, one for each id but the first."""
        count, (start, n_bytes) = self._ids_of(block), self._bounds(block)
        gap_bytes, rest = divmod(n_bytes, count - 1) if count > 1 else (0, n_bytes)
        if rest or gap_bytes not in GAP_TYPES:
            raise _corrupt("the gaps of a block have none of the sizes")
        gaps = array(GAP_TYPES[gap_bytes], self._read(start, n_bytes) if gap_bytes else bytes(count - 1))
        limit = self._first_of(block + 1) if block + 1 < self._blocks else 2**63
        if self._first_of(block) + sum(gaps) + count > limit:
            raise _corrupt("the ids of a block reach the next or go beyond 64 bits")
        return gaps


class _TextPart(Part):
    is_text = True
    _first_bytes = 0

    def _first_of(self, block: int) -> bytes:
        start, n_bytes = self._bounds(block)
        head = self._cached(start, min(n_bytes, 1 + MAX_ID_BYTES))
        if not head or not 1 <= head[0] < len(head):
            raise _corrupt("the first id of a block is not 1 to 255 bytes inside it")
        return head[1 : 1 + head[0]]

    def _find(self, block: int, key: bytes) -> int | None:
        for place, found in enumerate(self._keys(block)):
            if found >= key:
                return place if found == key else None
        return None

    def _key_at(self, block: int, place: int) -> bytes:
        keys = self._keys(block)
        for _ in range(place):
            next(keys)
        return next(keys)

    def _keys(self, block: int) -> Iterator[bytes]:
        """Give the ids of a block, one after the other."""
        count, key = self._ids_of(block) - 1, self._first_of(block)
        content = self._inflated(block, 1 + len(key), count)
        shared, further, at = content[:count], content[count : 2 * count], 2 * count
        lengths = [len(key), *map(add, shared, further)]
        if max(lengths) > MAX_ID_BYTES or any(map(gt, shared, lengths)):
            raise _corrupt("an id of a block has more than 255 bytes, or shares more than the id before it has")
        yield key
        for n_shared, n_further in zip(shared, further, strict=True):
            before, key = key, key[:n_shared] + content[at : at + n_further]
            if key <= before:
                raise _corrupt("the ids of a block do not ascend")
            at += n_further
            yield key

    def _inflated(self, block: int, skipped: int, count: int) -> bytes:
        """Inflate what follows the first id of a block: for `count` ids what they share, their lengths, their rest."""
        start, n_bytes = self._bounds(block)
        packed = self._read(start + skipped, n_bytes - skipped)
        if not count:
            if packed:
                raise _corrupt("bytes follow the only id of a block")
            return b""
        stream = zlib.decompressobj()
        try:
            content = stream.decompress(packed, (2 + MAX_ID_BYTES) * count + 1)
        except zlib.error as error:
            raise _corrupt("the stream of a block is") from error
        if not stream.eof or stream.unused_data or len(content) != 2 * count + sum(content[count : 2 * count]):
            raise _corrupt("the lengths of a block do not fit its stream")
        return content


def _require_clear(last: bytes, n_bits: int) -> None:
    """Refuse set bits behind the last number of a section, whose last byte this is."""
    if n_bits % 8 and last[0] >> n_bits % 8:
        raise _corrupt("bits behind the last number are set")


def _corrupt(reason: str) -> ArtifactFileError:
    return ArtifactFileError(f"catalogue file is corrupt: {reason}")


def _shrunk(size_bytes: int, expected_bytes: int) -> ArtifactFileError:
    reason = f"catalogue file shrank to {size_bytes} bytes, expected {expected_bytes}"
    return ArtifactFileError(reason, size_bytes, expected_bytes)
