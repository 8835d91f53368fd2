"""Exact best items: thin wrappers of lfr_topk_open, lfr_topk_batch_open and lfr_distances."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from lightfr import errors
from lightfr._kernel._boundary import check, ffi, lib, readable, require_code_bits, require_range, writable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import ReadableBuffer, WriteableBuffer

_MAX_K = 2**31 - 1
_MAX_ITEMS = 2**32 - 1
_OPEN_BLOCK = 512

# Looked up once: a scan of a small catalogue takes a few microseconds in all.
_new, _unpack, _topk, _NULL = ffi.new, ffi.unpack, lib.lfr_topk_open, ffi.NULL
_HITS, _COUNT = ffi.typeof("lfr_hit[]"), ffi.typeof("uint32_t *")


class OpenPointer:
    """Which items are open, as the kernel sees it: a bitmap, and how many are open before each block of it."""

    __slots__ = ("_before", "_bitmap", "_kept", "n_items", "n_open", "pointer")

    def __init__(self, bitmap: bytes, n_items: int) -> None:
        require_range("number of items", n_items, 0, _MAX_ITEMS)
        self.n_items = n_items
        self._bitmap, self._before = bitmap, array("I", bytes(4 * (n_items // _OPEN_BLOCK + 1)))
        bits = readable("uint8_t", bitmap, (n_items + 7) // 8, "open rows")
        before = writable("uint32_t", self._before, len(self._before), "counts of open rows")
        counted = ffi.new("uint32_t *")
        if lib.lfr_open_count(bits, n_items, before, counted):
            raise errors.InvalidInputError("the bitmap of open rows has a bit behind the last item")
        self.n_open = int(counted[0])
        self.pointer: Any = ffi.new("lfr_open *", (bits, before, n_items, self.n_open))
        self._kept = bits, before

    def rows_of(self, items: ReadableBuffer, n: int) -> array[int]:
        """Return the rows of n items (uint32): the shared one, n_open, for closed items."""
        rows = array("I", bytes(4 * n))
        where = readable("uint32_t", items, n, "item indices")
        check(lib.lfr_open_rows(self.pointer, where, n, writable("uint32_t", rows, n, "rows")), self.n_items)
        return rows

    def item_of(self, row: int) -> int:
        """Return the item of a row below n_open."""
        block = bisect_right(self._before, row) - 1
        first = block * _OPEN_BLOCK
        bits = int.from_bytes(self._bitmap[first // 8 : (first + _OPEN_BLOCK) // 8], "little")
        for _ in range(row - self._before[block]):
            bits &= bits - 1
        return first + (bits & -bits).bit_length() - 1


class CodesPointer:
    """A code matrix as the kernel sees it. Made once and reused: looking up a buffer costs more than a small scan.

    With `open_rows` it has a row for each open item, and one that the closed ones share; else a row for each item.
    """

    __slots__ = ("code_bits", "n_items", "n_rows", "open", "open_rows", "pointer")

    def __init__(self, buffer: ReadableBuffer, code_bits: int, open_rows: OpenPointer | None = None) -> None:
        require_code_bits(code_bits)
        self.code_bits = code_bits
        try:
            self.pointer: Any = ffi.from_buffer("uint8_t[]", buffer)
        except (TypeError, ValueError, BufferError):  # text, a number, an array with gaps
            kind = type(buffer).__name__
            raise errors.InvalidInputError(f"item codes must be bytes without gaps, which this {kind} is not") from None
        n_bytes = len(self.pointer)
        self.n_rows, rest = divmod(n_bytes, code_bits // 8)
        if rest:
            raise errors.BufferSizeError("item codes", n_bytes, self.n_rows * code_bits // 8)
        require_range("number of items", self.n_rows, 0, _MAX_ITEMS)
        if open_rows is not None and self.n_rows != open_rows.n_open + 1:
            raise errors.BufferSizeError("item codes", n_bytes, (open_rows.n_open + 1) * code_bits // 8)
        self.open_rows = open_rows
        self.open: Any = _NULL if open_rows is None else open_rows.pointer
        self.n_items = self.n_rows if open_rows is None else open_rows.n_items


class PriorPointer:
    """Steps of a popularity prior as the kernel sees them, which also checks them when they are used."""

    __slots__ = ("_steps", "pointer")

    def __init__(self, steps: Sequence[tuple[int, int]]) -> None:
        self._steps = ffi.new("lfr_step[]", [*steps])
        self.pointer: Any = ffi.new("lfr_prior *", (self._steps, len(steps)))


# Item indices and distances, best first.
Hits = tuple[list[int], list[int]]

# Where a search writes its hits: the array, the same array as numbers, and their count. Those for up to _SMALL hits are
# reused; a search takes one from the list, so that no two searches ever write to the same.
_SMALL = 128
_free: list[tuple[Any, Any, Any]] = []


def _room(n: int) -> tuple[Any, Any, Any]:
    hits = _new(_HITS, n)
    return hits, ffi.cast("uint32_t *", hits), _new(_COUNT)


def _exclusions(bitmap: ReadableBuffer, n_items: int, n_queries: int) -> Any:
    return readable("uint8_t", bitmap, n_queries * ((n_items + 7) // 8), "exclusion bitmap")


def topk(
    items: CodesPointer,
    query: CodesPointer,
    k: int,
    exclude: ReadableBuffer | None = None,
    prior: PriorPointer | None = None,
) -> Hits:
    """Return the k items of the highest score, ties to the lower index; fewer only when fewer are left.

    The score is code_bits - 2 distance, and the offset of the item's step on top if there is a prior.
    """
    n_items, code_bits = items.n_items, items.code_bits
    if not 1 <= k <= _MAX_K:
        raise errors.OutOfRangeError("k", k, 1, _MAX_K)
    if query.code_bits != code_bits or query.n_rows != 1:
        raise _query_error(items, query)
    most = (k if k < n_items else n_items) or 1
    try:
        room = hits, numbers, found = _free.pop() if most <= _SMALL else _room(most)
    except IndexError:
        room = hits, numbers, found = _room(_SMALL)
    excluded = _NULL if exclude is None else _exclusions(exclude, n_items, 1)
    steps = _NULL if prior is None else prior.pointer
    status = _topk(
        items.pointer, items.n_rows, code_bits, query.pointer, excluded, steps, items.open, most, hits, found
    )
    if status:
        check(status)
    pairs = _unpack(numbers, 2 * found[0])
    if most <= _SMALL:
        _free.append(room)
    return pairs[::2], pairs[1::2]


def topk_batch(
    items: CodesPointer,
    queries: CodesPointer,
    k: int,
    excludes: ReadableBuffer | None = None,
    prior: PriorPointer | None = None,
) -> list[Hits]:
    """Return topk of every query, in one pass over the rows."""
    require_range("k", k, 1, _MAX_K)
    if queries.code_bits != items.code_bits:
        raise _query_error(items, queries)
    n_queries, most = queries.n_rows, min(k, items.n_items) or 1
    hits, found = _new(_HITS, n_queries * most), ffi.new("uint32_t[]", n_queries)
    excluded = _NULL if excludes is None else _exclusions(excludes, items.n_items, n_queries)
    steps = _NULL if prior is None else prior.pointer
    check(
        lib.lfr_topk_batch_open(
            items.pointer,
            items.n_rows,
            items.code_bits,
            queries.pointer,
            n_queries,
            excluded,
            steps,
            items.open,
            most,
            hits,
            found,
        )
    )
    numbers = ffi.cast("uint32_t *", hits)
    pairs = (_unpack(numbers + 2 * most * j, 2 * found[j]) for j in range(n_queries))
    return [(flat[::2], flat[1::2]) for flat in pairs]


def distances(items: CodesPointer, query: CodesPointer, out: WriteableBuffer) -> None:
    """Write the Hamming distance of each row to `out`, which holds n_rows uint16."""
    if query.code_bits != items.code_bits or query.n_rows != 1:
        raise _query_error(items, query)
    target = writable("uint16_t", out, items.n_rows, "distances")
    check(lib.lfr_distances(items.pointer, items.n_rows, items.code_bits, query.pointer, target))


def _query_error(items: CodesPointer, query: CodesPointer) -> errors.InvalidInputError:
    if query.code_bits != items.code_bits:
        return errors.CodeLengthError(query.code_bits, items.code_bits)
    return errors.BufferSizeError("query", query.n_rows * query.code_bits // 8, items.code_bits // 8)
