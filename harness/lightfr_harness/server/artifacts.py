"""Writes the files that devices download: the catalogue, and deltas of codes. docs/artifacts.md has the formats."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from lightfr._kernel import require_code_bits
from lightfr.errors import ArtifactFileError, CodeLengthError, InvalidInputError, OutOfRangeError
from lightfr.model import deltas
from lightfr.model.catalogue import (
    FORMAT_VERSION,
    HEADER,
    KIND_INT,
    KIND_STR,
    MAGIC,
    MAX_ITEMS,
    MAX_TEXT_BYTES,
    require_item_id,
)

# Ids joined at a time: large enough for few writes, small beside the list of ids itself.
BATCH_IDS = 10_000


def write_catalogue(path: str | os.PathLike[str], ids: Sequence[str] | Sequence[int]) -> None:
    """Write the ids, row by row, and put the file in place when it is complete.

    Raises ItemIdError, OutOfRangeError (their number, or all their bytes) or InvalidInputError for ids that cannot be
    written, and ArtifactFileError when the disk fails.
    """
    if not 1 <= len(ids) <= MAX_ITEMS:
        raise OutOfRangeError("number of item ids", len(ids), 1, MAX_ITEMS)
    kind = _require_one_kind(ids)
    parts = _text_parts(cast("Sequence[str]", ids)) if kind is str else _integer_parts(cast("Sequence[int]", ids))
    target = Path(path)
    try:
        # Beside the target, because a rename is atomic only within one file system.
        with tempfile.TemporaryDirectory(prefix=".catalogue-", dir=target.parent) as stage:
            _write(Path(stage) / "complete", parts)
            os.replace(Path(stage) / "complete", target)
    except OSError as error:
        raise ArtifactFileError(f"cannot write catalogue file '{target.name}': {error.strerror}") from error


def _require_one_kind(ids: Sequence[str] | Sequence[int]) -> type:
    kinds = set()
    for item_id in ids:
        require_item_id(item_id)
        kinds.add(str if isinstance(item_id, str) else int)
    if len(kinds) != 1:
        raise InvalidInputError("item ids mix strings and integers: a catalogue has one kind")
    return kinds.pop()


def _write(path: Path, parts: Iterator[bytes]) -> None:
    with path.open("wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def _header(kind: int, n_items: int) -> bytes:
    return HEADER.pack(MAGIC, FORMAT_VERSION, kind, 0, n_items)


def _integer_parts(ids: Sequence[int]) -> Iterator[bytes]:
    by_row = np.array(ids, "<i8")
    order = np.argsort(by_row, kind="stable")
    in_order = by_row[order]
    _require_no_repeats(int((in_order[1:] == in_order[:-1]).sum()))
    return iter([_header(KIND_INT, len(ids)), by_row.tobytes(), order.astype("<u4").tobytes()])


def _text_parts(ids: Sequence[str]) -> Iterator[bytes]:
    # Strings compare by code points, whose order is that of their bytes in UTF-8.
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), "<u4")
    _require_no_repeats(sum(ids[row] == ids[after] for row, after in pairwise(order)))
    offsets = np.zeros(len(ids) + 1, np.int64)
    np.cumsum([len(item_id.encode()) for item_id in ids], out=offsets[1:])
    if offsets[-1] > MAX_TEXT_BYTES:
        raise OutOfRangeError("bytes of all item ids", int(offsets[-1]), 1, MAX_TEXT_BYTES)
    parts = [_header(KIND_STR, len(ids)), offsets.astype("<u4").tobytes(), order.tobytes()]
    batches = (ids[start : start + BATCH_IDS] for start in range(0, len(ids), BATCH_IDS))
    return chain(parts, ("".join(batch).encode() for batch in batches))


def _require_no_repeats(repeats: int) -> None:
    if repeats:
        raise InvalidInputError(f"{repeats} item ids repeat others: each row needs its own id")


def make_delta(old: npt.NDArray[np.uint8], new: npt.NDArray[np.uint8]) -> bytes:
    """Return what turns the old rows into the new ones, which are as many or more; shapes (rows, code_bytes)."""
    _require_shapes(old, new)
    flips = new.copy()
    flips[: len(old)] ^= old
    rows = np.flatnonzero(flips.any(axis=1))
    gaps = (np.diff(rows, prepend=-1) - 1).astype("<u4")
    planes = gaps.view(np.uint8).reshape(-1, 4).T
    header = deltas.HEADER.pack(
        deltas.MAGIC, deltas.FORMAT_VERSION, bytes(3), new.shape[1] * 8, len(old), len(new), len(rows)
    )
    return header + _compress([*(plane.tobytes() for plane in planes), flips[rows].tobytes()])


def _require_shapes(old: npt.NDArray[np.uint8], new: npt.NDArray[np.uint8]) -> None:
    code_bits = new.shape[1] * 8
    require_code_bits(code_bits)
    if old.shape[1] * 8 != code_bits:
        raise CodeLengthError(old.shape[1] * 8, code_bits)
    if not len(old) <= len(new) <= deltas.MAX_ITEMS:
        raise OutOfRangeError("new item count", len(new), len(old), deltas.MAX_ITEMS)


def _compress(parts: Iterable[bytes]) -> bytes:
    """Compress the parts into one zlib stream, in which each has blocks, and so Huffman codes, of its own.

    Bytes of one part look alike and unlike those of the others: shared codes cost 5 % more where few rows changed.
    Repeats other than runs of one byte are chance here; looking for them takes longer and saves at most 3 %.
    """
    compressor = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_RLE)
    packed = [compressor.compress(part) + compressor.flush(zlib.Z_BLOCK) for part in parts]
    return b"".join(packed) + compressor.flush()
