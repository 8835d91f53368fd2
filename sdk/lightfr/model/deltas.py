"""Makes new item codes from old ones and a downloaded delta, a chunk at a time.

docs/artifacts.md describes the format. It keeps a few chunks in memory, and four bytes for each changed row.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from array import array
from bisect import bisect_left
from struct import Struct
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from lightfr._artifacts import open_artifact
from lightfr._kernel import MAX_CODE_BITS, MIN_CODE_BITS
from lightfr.errors import ArtifactError, ArtifactFileError

if TYPE_CHECKING:
    from collections.abc import Iterable

MAGIC = b"LFRD"
FORMAT_VERSION = 1
MAX_ITEMS = 2**32 - 1

HEADER = Struct("<4sB3sIQQQ")  # magic, format version, zeros, code bits, old and new item count, changed rows
_CHUNK_BYTES = 1 << 16
_READ_BYTES = 1 << 14


def apply_delta(
    delta_path: str | os.PathLike[str],
    old_codes_path: str | os.PathLike[str],
    new_file: BinaryIO,
    *,
    max_bytes: int,
) -> str:
    """Write the new item codes and return their SHA-256 in hexadecimal: compare it with the announced one.

    max_bytes is the most that the new codes may have. Raises ArtifactError for a delta that is malformed, larger, or
    made for other old codes, and ArtifactFileError for files that cannot be read; errors of writing pass through.
    After an error new_file holds an unusable part of the codes: write to a temporary file.
    """
    with (
        open_artifact(delta_path, "delta file") as delta_file,
        open_artifact(old_codes_path, "codes file") as old_file,
    ):
        header = _read_header(delta_file)
        old_bytes, expected = os.fstat(old_file.fileno()).st_size, header.old_items * header.code_bytes
        _require(old_bytes == expected, f"made for old codes of {expected} bytes, these have {old_bytes}")
        new_bytes = header.new_items * header.code_bytes
        _require(new_bytes <= max_bytes, f"the new codes would have {new_bytes} bytes, at most {max_bytes} are allowed")
        stream = _Inflater(delta_file)
        rows = _read_rows(stream, header) if header.changed else array("I")
        digest = _write_codes(header, rows, stream, old_file, new_file)
        stream.require_end()
    return digest


class _Header(NamedTuple):
    code_bytes: int
    old_items: int
    new_items: int
    changed: int


def _read_header(delta_file: BinaryIO) -> _Header:
    fields = delta_file.read(HEADER.size)
    _require(len(fields) == HEADER.size, f"it has {len(fields)} bytes, no header")
    magic, version, zeros, code_bits, old_items, new_items, changed = HEADER.unpack(fields)
    _require((magic, version, zeros) == (MAGIC, FORMAT_VERSION, bytes(3)), f"not of format version {FORMAT_VERSION}")
    _require(MIN_CODE_BITS <= code_bits <= MAX_CODE_BITS and code_bits % 8 == 0, f"codes cannot have {code_bits} bits")
    _require(old_items <= new_items <= MAX_ITEMS, f"item count cannot go from {old_items} to {new_items}")
    _require(changed <= new_items, f"{changed} changed rows are more than there are, {new_items}")
    return _Header(code_bits // 8, old_items, new_items, changed)


class _Inflater:
    """Reads the compressed part, never inflating more than is asked for."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._stream = zlib.decompressobj()

    def read(self, size: int) -> bytes:
        """Return exactly that many bytes."""
        content = bytearray()
        while len(content) < size:
            piece = self._inflate(size - len(content))
            _require(len(piece) > 0, "its stream is too short")
            content += piece
        return bytes(content)

    def _inflate(self, max_bytes: int) -> bytes:
        """Return 1 to max_bytes bytes, none at the end of the stream or of the file."""
        while not self._stream.eof:
            packed = self._stream.unconsumed_tail or self._file.read(_READ_BYTES)
            try:
                piece = self._stream.decompress(packed, max_bytes)
            except zlib.error as error:
                raise ArtifactError("delta refused: its stream is corrupt") from error
            if piece or not packed:
                return piece
        return b""

    def require_end(self) -> None:
        """Raise ArtifactError unless the stream and the file end here. Reaching the end checks zlib's checksum too."""
        _require(not self._inflate(1), "its stream is too long")
        _require(self._stream.eof, "its stream has no end")
        _require(not self._stream.unused_data and not self._file.read(1), "bytes follow its stream")


def _read_rows(stream: _Inflater, header: _Header) -> array[int]:
    """Return the changed rows, ascending, from their gaps, which come as four planes of bytes, the low bytes first."""
    rows = array("I", bytes(4)) * header.changed
    with memoryview(rows) as words, words.cast("B") as gaps:
        # The kernel runs on little-endian machines only, so the low byte of a word comes first.
        for plane in range(4):
            for start in range(0, header.changed, _CHUNK_BYTES):
                stop = min(start + _CHUNK_BYTES, header.changed)
                gaps[4 * start + plane : 4 * stop : 4] = stream.read(stop - start)
    # The last row is the sum of the gaps and of the changed rows before it.
    _require(sum(rows) + header.changed <= header.new_items, f"a row is beyond the {header.new_items} items")
    row = -1
    for index, gap in enumerate(rows):
        row += gap + 1
        rows[index] = row
    return rows


def _write_codes(header: _Header, rows: array[int], stream: _Inflater, old_file: BinaryIO, new_file: BinaryIO) -> str:
    digest, done = hashlib.sha256(), 0
    chunk_rows = _CHUNK_BYTES // header.code_bytes
    for first in range(0, header.new_items, chunk_rows):
        beyond = min(first + chunk_rows, header.new_items)
        chunk = _read_old(old_file, header, first, beyond)
        stop = bisect_left(rows, beyond, done)
        if stop > done:
            flips = stream.read((stop - done) * header.code_bytes)
            chunk = _flip(chunk, (row - first for row in rows[done:stop]), flips, header.code_bytes)
        done = stop
        new_file.write(chunk)
        digest.update(chunk)
    return digest.hexdigest()


def _read_old(old_file: BinaryIO, header: _Header, first: int, beyond: int) -> bytes:
    """Return the old rows from first on; those that the old codes lack are zero."""
    wanted = max(min(beyond, header.old_items) - first, 0) * header.code_bytes
    chunk = old_file.read(wanted)
    if len(chunk) != wanted:
        raise ArtifactFileError("codes file shrank while it was read", len(chunk), wanted)
    return chunk.ljust((beyond - first) * header.code_bytes, b"\0")


def _flip(chunk: bytes, rows: Iterable[int], flips: bytes, code_bytes: int) -> bytes:
    """XOR the flips, one row after the other, into these rows of a chunk."""
    spread = bytearray(len(chunk))
    for index, row in enumerate(rows):
        spread[row * code_bytes : (row + 1) * code_bytes] = flips[index * code_bytes : (index + 1) * code_bytes]
    # One XOR of two large integers stands for thousands of small ones.
    return (int.from_bytes(chunk, "little") ^ int.from_bytes(spread, "little")).to_bytes(len(chunk), "little")


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ArtifactError(f"delta refused: {reason}")
