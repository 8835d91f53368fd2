"""Writes the files that devices download: catalogues, bitmaps, deltas of codes. docs/artifacts.md has the formats."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from lightfr import _kernel
from lightfr._kernel import require_code_bits
from lightfr.errors import ArtifactFileError, CodeLengthError, InvalidInputError, OutOfRangeError
from lightfr.model import catalogue_part, deltas
from lightfr.model.catalogue import require_item_id
from lightfr.model.catalogue_part import BLOCK_IDS, GROUP_IDS, KIND_INT, KIND_STR, MAX_ITEMS

# Offsets of blocks have 32 bits.
MAX_IDS_BYTES = 2**32 - 1


def write_catalogue(path: str | os.PathLike[str], ids: Sequence[str] | Sequence[int]) -> None:
    """Write a part of a catalogue, the ids by their numbers, and put the file in place when it is complete.

    Raises ItemIdError, OutOfRangeError (their number, or all their bytes) or InvalidInputError for ids that cannot be
    written, and ArtifactFileError when the disk fails.
    """
    if not 1 <= len(ids) <= MAX_ITEMS:
        raise OutOfRangeError("number of item ids", len(ids), 1, MAX_ITEMS)
    kind = _require_one_kind(ids)
    sections = (
        _text_sections(cast("Sequence[str]", ids)) if kind is str else _integer_sections(cast("Sequence[int]", ids))
    )
    target = Path(path)
    try:
        # Beside the target, because a rename is atomic only within one file system.
        with tempfile.TemporaryDirectory(prefix=".catalogue-", dir=target.parent) as stage:
            _write(Path(stage) / "complete", sections)
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


def _write(path: Path, sections: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(sections)
        file.flush()
        os.fsync(file.fileno())


def _integer_sections(ids: Sequence[int]) -> list[bytes]:
    by_number = np.array(ids, "<i8")
    order = np.argsort(by_number, kind="stable")
    in_order = by_number[order]
    _require_no_repeats(int((in_order[1:] == in_order[:-1]).sum()))
    # Modulo 2^64, in which no difference is too large.
    gaps = np.diff(in_order.view("<u8")) - np.uint64(1)
    blocks = [_gap_block(gaps[at : at + BLOCK_IDS - 1]) for at in range(0, len(ids), BLOCK_IDS)]
    return _sections(KIND_INT, order, blocks, in_order[::BLOCK_IDS].tobytes())


def _gap_block(gaps: npt.NDArray[np.uint64]) -> bytes:
    largest = int(gaps.max(initial=0))
    if not largest:
        return b""
    return gaps.astype(f"<u{next(size for size in (1, 2, 4, 8) if largest < 256**size)}").tobytes()


def _text_sections(ids: Sequence[str]) -> list[bytes]:
    # Strings compare by code points, whose order is that of their bytes in UTF-8.
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__))
    in_order = [ids[number].encode() for number in order]
    _require_no_repeats(len(in_order) - len(set(in_order)))
    blocks = [_text_block(in_order[at : at + BLOCK_IDS]) for at in range(0, len(ids), BLOCK_IDS)]
    return _sections(KIND_STR, order, blocks, b"")


def _text_block(ids: list[bytes]) -> bytes:
    first = bytes([len(ids[0])]) + ids[0]
    if len(ids) == 1:
        return first
    lengths = np.array([len(item_id) for item_id in ids])
    padded = np.array(ids, f"S{lengths.max()}").view(np.uint8).reshape(len(ids), -1)
    same = np.logical_and.accumulate(padded[1:] == padded[:-1], axis=1).sum(axis=1)
    shared = np.minimum(same, lengths[:-1])
    rest = b"".join(item_id[n:] for item_id, n in zip(ids[1:], shared, strict=True))
    content = bytes(shared.tolist()) + bytes((lengths[1:] - shared).tolist()) + rest
    return first + zlib.compress(content, 9)


def _sections(kind: int, order: npt.NDArray[np.int64], blocks: list[bytes], first_ids: bytes) -> list[bytes]:
    offsets = list(accumulate(map(len, blocks), initial=0))
    if offsets[-1] > MAX_IDS_BYTES:
        raise OutOfRangeError("bytes of all item ids", offsets[-1], 1, MAX_IDS_BYTES)
    header = catalogue_part.HEADER.pack(catalogue_part.MAGIC, catalogue_part.FORMAT_VERSION, kind, 0, len(order))
    groups = np.empty_like(order)
    groups[order] = np.arange(len(order)) // GROUP_IDS
    directory = header, np.array(offsets, "<u4").tobytes(), first_ids
    n_groups = -(-len(order) // GROUP_IDS)
    return [*directory, *blocks, _pack(order, len(order) - 1), _pack(groups, n_groups - 1)]


def _pack(numbers: npt.NDArray[np.int64], largest: int) -> bytes:
    """Pack numbers into as many bits each as the largest needs, the low bit first."""
    bits = largest.bit_length()
    if not bits:
        return b""
    words = numbers.astype(f"<u{_kernel.number_bytes(bits)}")
    return bytes(_kernel.pack_bits(words.data, len(words), bits))


def _require_no_repeats(repeats: int) -> None:
    if repeats:
        raise InvalidInputError(f"{repeats} item ids repeat others: each item needs its own id")


def make_bitmap(bits: npt.NDArray[np.bool_]) -> bytes:
    """Return the file of a bitmap over items."""
    return zlib.compress(np.packbits(bits, bitorder="little").tobytes(), 9)


def make_delta(
    old: npt.NDArray[np.uint8], new: npt.NDArray[np.uint8], moved_from: npt.NDArray[np.int64] | None = None
) -> bytes:
    """Return what turns the old rows into the new ones; shapes (rows, code_bytes).

    `moved_from` has, for each new row, the old row that it comes from, or -1. None: rows stay where they are.
    """
    _require_shapes(old, new)
    flips = new.copy()
    if moved_from is None:
        kept = min(len(old), len(new))
        flips[:kept] ^= old[:kept]
        runs = np.array([run for run in ((0, kept), (deltas.ZEROS, len(new) - kept)) if run[1]], "<u4")
    else:
        _require_rows(moved_from, old, new)
        moved = np.flatnonzero(moved_from >= 0)
        flips[moved] ^= old[moved_from[moved]]
        runs = _runs(moved_from)
    rows = np.flatnonzero(flips.any(axis=1))
    gaps = (np.diff(rows, prepend=-1) - 1).astype("<u4")
    planes = gaps.view(np.uint8).reshape(-1, 4).T
    counts = len(old), len(new), len(runs), len(rows)
    header = deltas.HEADER.pack(deltas.MAGIC, deltas.FORMAT_VERSION, bytes(3), new.shape[1] * 8, *counts)
    return header + _compress([runs.tobytes(), *(plane.tobytes() for plane in planes), flips[rows].tobytes()])


def _runs(moved_from: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Return (first old row, number of rows) of each run."""
    follows = moved_from[1:] == np.where(moved_from[:-1] < 0, -1, moved_from[:-1] + 1)
    starts = np.flatnonzero(np.concatenate(([len(moved_from) > 0], ~follows)))
    firsts = np.where(moved_from[starts] < 0, deltas.ZEROS, moved_from[starts])
    return np.column_stack((firsts, np.diff(starts, append=len(moved_from)))).astype("<u4")


def _require_shapes(old: npt.NDArray[np.uint8], new: npt.NDArray[np.uint8]) -> None:
    code_bits = new.shape[1] * 8
    require_code_bits(code_bits)
    if old.shape[1] * 8 != code_bits:
        raise CodeLengthError(old.shape[1] * 8, code_bits)
    for codes in (old, new):
        if len(codes) > deltas.MAX_ROWS:
            raise OutOfRangeError("number of rows", len(codes), 0, deltas.MAX_ROWS)


def _require_rows(moved_from: npt.NDArray[np.int64], old: npt.NDArray[np.uint8], new: npt.NDArray[np.uint8]) -> None:
    if len(moved_from) != len(new):
        raise InvalidInputError(f"moved_from has {len(moved_from)} rows, the new codes have {len(new)}")
    low, high = int(moved_from.min(initial=-1)), int(moved_from.max(initial=-1))
    if low < -1 or high >= len(old):
        raise OutOfRangeError("a row of moved_from", low if low < -1 else high, -1, len(old) - 1)


def _compress(parts: Iterable[bytes]) -> bytes:
    """Compress the parts into one zlib stream, in which each has blocks, and so Huffman codes, of its own.

    Bytes of one part look alike and unlike those of the others: shared codes cost 5 % more where few rows changed.
    Repeats other than runs of one byte are chance here; looking for them takes longer and saves at most 3 %.
    """
    compressor = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_RLE)
    packed = [compressor.compress(part) + compressor.flush(zlib.Z_BLOCK) for part in parts]
    return b"".join(packed) + compressor.flush()
