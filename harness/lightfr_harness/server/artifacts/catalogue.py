"""Writes the catalogue: the app's item ids by row, and the order in which a device searches them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import cast

import numpy as np

from lightfr.errors import ArtifactFileError, InvalidInputError, OutOfRangeError
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


class CatalogueError(InvalidInputError):
    """Ids that make no catalogue: they repeat, or mix strings and integers. Nothing was written."""


def write_catalogue(path: str | os.PathLike[str], ids: Sequence[str] | Sequence[int]) -> None:
    """Write the ids, row by row, and put the file in place when it is complete.

    Raises ItemIdError, OutOfRangeError (their number, or all their bytes) or CatalogueError for ids that cannot be
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
        raise CatalogueError("item ids mix strings and integers: a catalogue has one kind")
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
    return chain(parts, _text(ids))


def _text(ids: Sequence[str]) -> Iterator[bytes]:
    for start in range(0, len(ids), BATCH_IDS):
        yield "".join(ids[start : start + BATCH_IDS]).encode()


def _require_no_repeats(repeats: int) -> None:
    if repeats:
        raise CatalogueError(f"{repeats} item ids repeat others: each row needs its own id")
