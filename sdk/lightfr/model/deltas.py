"""Makes new item codes from old ones and a downloaded delta, a chunk at a time.

docs/artifacts.md describes the format. It keeps a few chunks in memory, eight bytes for each run of rows, and four for
each changed row.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from bisect import bisect_left
from struct import Struct
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from lightfr._artifacts import open_artifact
from lightfr._kernel import MAX_CODE_BITS, MIN_CODE_BITS
from lightfr.errors import ArtifactError, ArtifactFileError
from lightfr.model.inflating import Inflater

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAGIC = b"LFRD"
FORMAT_VERSION = 2
MAX_ROWS = 2**32 - 1
# In place of the first row of a run: rows of zeros.
ZEROS = 2**32 - 1

HEADER = Struct("<4sB3sIQQQQ")  # magic, format version, zeros, code bits, old and new rows, runs, changed rows
_RUN = Struct("<II")  # first row, number of rows
_CHUNK_BYTES = 1 << 16
# zlib makes a thousand bytes of one. No honest delta needs so many for each of its own, and a small one needs few.
_MEMORY_PER_BYTE = 64
_FREE_MEMORY_BYTES = 1 << 20


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
        open_artifact(old_codes_path, "codes file", buffering=0) as old_file,
    ):
        header = _read_header(delta_file)
        old_bytes, expected = os.fstat(old_file.fileno()).st_size, header.old_rows * header.code_bytes
        _require(old_bytes == expected, f"made for old codes of {expected} bytes, these have {old_bytes}")
        new_bytes = header.new_rows * header.code_bytes
        _require(new_bytes <= max_bytes, f"the new codes would have {new_bytes} bytes, at most {max_bytes} are allowed")
        _require_memory(header, os.fstat(delta_file.fileno()).st_size)
        stream = Inflater(delta_file, _refused)
        runs = _read_runs(stream, header)
        changed = _read_changed(stream, header)
        digest = _write_codes(_moved(runs, header.code_bytes, old_file), changed, header.code_bytes, stream, new_file)
        stream.require_end()
    return digest


class _Header(NamedTuple):
    code_bytes: int
    old_rows: int
    new_rows: int
    runs: int
    changed: int


def _read_header(delta_file: BinaryIO) -> _Header:
    fields = delta_file.read(HEADER.size)
    _require(len(fields) == HEADER.size, f"it has {len(fields)} bytes, no header")
    magic, version, zeros, code_bits, old_rows, new_rows, runs, changed = HEADER.unpack(fields)
    _require((magic, version, zeros) == (MAGIC, FORMAT_VERSION, bytes(3)), f"not of format version {FORMAT_VERSION}")
    _require(MIN_CODE_BITS <= code_bits <= MAX_CODE_BITS and code_bits % 8 == 0, f"codes cannot have {code_bits} bits")
    _require(max(old_rows, new_rows) <= MAX_ROWS, f"codes cannot have {max(old_rows, new_rows)} rows")
    _require(runs <= new_rows, f"{runs} runs are more than there are rows, {new_rows}")
    _require(changed <= new_rows, f"{changed} changed rows are more than there are, {new_rows}")
    return _Header(code_bits // 8, old_rows, new_rows, runs, changed)


def _require_memory(header: _Header, delta_bytes: int) -> None:
    """Raise ArtifactError for a delta whose runs and changed rows would take far more memory than it has bytes."""
    needed, most = _RUN.size * header.runs + 4 * header.changed, _FREE_MEMORY_BYTES + _MEMORY_PER_BYTE * delta_bytes
    _require(needed <= most, f"it has {delta_bytes} bytes and would take {needed} of memory, at most {most} allowed")


def _read_runs(stream: Inflater, header: _Header) -> bytearray:
    """Return the runs as they stand in the stream, each of them checked."""
    runs, n_rows = bytearray(), 0
    while len(runs) < header.runs * _RUN.size:
        piece = stream.read(min(_CHUNK_BYTES, header.runs * _RUN.size - len(runs)))
        for first, count in _RUN.iter_unpack(piece):
            if not count:
                raise _refused("a run is empty")
            if first != ZEROS and first + count > header.old_rows:
                raise _refused(f"a run goes beyond the {header.old_rows} old rows")
            n_rows += count
        runs += piece
    _require(n_rows == header.new_rows, f"its runs have {n_rows} rows, expected {header.new_rows}")
    return runs


def _read_changed(stream: Inflater, header: _Header) -> array[int]:
    """Return the changed rows, ascending, from their gaps, which come as four planes of bytes, the low bytes first."""
    rows = array("I", bytes(4)) * header.changed
    with memoryview(rows) as words, words.cast("B") as gaps:
        # The kernel runs on little-endian machines only, so the low byte of a word comes first.
        for plane in range(4):
            for start in range(0, header.changed, _CHUNK_BYTES):
                stop = min(start + _CHUNK_BYTES, header.changed)
                gaps[4 * start + plane : 4 * stop : 4] = stream.read(stop - start)
    # The last row is the sum of the gaps and of the changed rows before it.
    _require(sum(rows) + header.changed <= header.new_rows, f"a row is beyond the {header.new_rows} rows")
    row = -1
    for index, gap in enumerate(rows):
        row += gap + 1
        rows[index] = row
    return rows


def _moved(runs: bytearray, code_bytes: int, old_file: BinaryIO) -> Iterator[bytearray]:
    """Give the rows that the runs name, as chunks of whole rows, each at most two chunks long."""
    chunk, most_rows = bytearray(), _CHUNK_BYTES // code_bytes
    for run_first, count in _RUN.iter_unpack(runs):
        for start in range(0, count, most_rows):
            n_bytes = min(most_rows, count - start) * code_bytes
            if run_first == ZEROS:
                chunk += bytes(n_bytes)
            else:
                chunk += _read_old(old_file, (run_first + start) * code_bytes, n_bytes)
            if len(chunk) >= most_rows * code_bytes:
                yield chunk
                chunk = bytearray()
    if chunk:
        yield chunk


def _read_old(old_file: BinaryIO, start: int, n_bytes: int) -> bytes:
    rows = os.pread(old_file.fileno(), n_bytes, start)
    if len(rows) != n_bytes:
        raise ArtifactFileError("codes file shrank while it was read", len(rows), n_bytes)
    return rows


def _write_codes(
    chunks: Iterable[bytearray], changed: array[int], code_bytes: int, stream: Inflater, new_file: BinaryIO
) -> str:
    digest, first, done = hashlib.sha256(), 0, 0
    for chunk in chunks:
        beyond = first + len(chunk) // code_bytes
        stop = bisect_left(changed, beyond, done)
        content: bytes | bytearray = chunk
        if stop > done:
            flips = stream.read((stop - done) * code_bytes)
            content = _flip(chunk, (row - first for row in changed[done:stop]), flips, code_bytes)
        new_file.write(content)
        digest.update(content)
        first, done = beyond, stop
    return digest.hexdigest()


def _flip(chunk: bytearray, rows: Iterable[int], flips: bytes, code_bytes: int) -> bytes:
    """XOR the flips, one row after the other, into these rows of a chunk."""
    spread = bytearray(len(chunk))
    for index, row in enumerate(rows):
        spread[row * code_bytes : (row + 1) * code_bytes] = flips[index * code_bytes : (index + 1) * code_bytes]
    # One XOR of two large integers stands for thousands of small ones.
    return (int.from_bytes(chunk, "little") ^ int.from_bytes(spread, "little")).to_bytes(len(chunk), "little")


def _refused(reason: str) -> ArtifactError:
    return ArtifactError(f"delta refused: {reason}")


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise _refused(reason)
