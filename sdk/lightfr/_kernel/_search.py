"""Exact best rows: thin wrappers of lfr_topk_prior, lfr_topk_batch_prior and lfr_distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lightfr import errors
from lightfr._kernel._boundary import check, ffi, lib, readable, require_code_bits, require_range, writable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from _typeshed import ReadableBuffer, WriteableBuffer

_MAX_K = 2**31 - 1
_MAX_ITEMS = 2**32 - 1

# Looked up once: a scan of a small catalogue takes a few microseconds in all.
_new, _topk, _NULL = ffi.new, lib.lfr_topk_prior, ffi.NULL
_HITS, _COUNT = ffi.typeof("lfr_hit[]"), ffi.typeof("uint32_t *")


class CodesPointer:
    """A code matrix as the kernel sees it. Made once and reused: looking up a buffer costs more than a small scan."""

    __slots__ = ("code_bits", "n_items", "pointer")

    def __init__(self, buffer: ReadableBuffer, code_bits: int) -> None:
        require_code_bits(code_bits)
        self.code_bits = code_bits
        self.pointer: Any = ffi.from_buffer("uint8_t[]", buffer)
        n_bytes = len(self.pointer)
        self.n_items, rest = divmod(n_bytes, code_bits // 8)
        if rest:
            raise errors.BufferSizeError("item codes", n_bytes, self.n_items * code_bits // 8)
        require_range("number of items", self.n_items, 0, _MAX_ITEMS)

    def release(self) -> None:
        """Let go of the buffer, so that its owner can close it."""
        ffi.release(self.pointer)


class PriorPointer:
    """Steps of a popularity prior as the kernel sees them, which also checks them when they are used."""

    __slots__ = ("_steps", "pointer")

    def __init__(self, steps: Sequence[tuple[int, int]]) -> None:
        self._steps = ffi.new("lfr_step[]", [*steps])
        self.pointer: Any = ffi.new("lfr_prior *", (self._steps, len(steps)))


class Hits:
    """The result of a search: (item_index, distance) pairs, best first."""

    __slots__ = ("_hits", "_size")

    def __init__(self, hits: Any, size: int) -> None:
        self._hits = hits
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[tuple[int, int]]:
        hits = self._hits
        for i in range(self._size):
            hit = hits[i]
            yield hit.item_index, hit.distance


def _exclusions(bitmap: ReadableBuffer, n_items: int, n_queries: int) -> Any:
    return readable("uint8_t", bitmap, n_queries * ((n_items + 7) // 8), "exclusion bitmap")


def topk(
    items: CodesPointer,
    query: CodesPointer,
    k: int,
    exclude: ReadableBuffer | None = None,
    prior: PriorPointer | None = None,
) -> Hits:
    """Return the k rows of the highest score, ties to the lower index; fewer only when fewer are left.

    The score is code_bits - 2 distance, and the offset of the row's step on top if there is a prior.
    """
    n_items, code_bits = items.n_items, items.code_bits
    if not 1 <= k <= _MAX_K:
        raise errors.OutOfRangeError("k", k, 1, _MAX_K)
    if query.code_bits != code_bits or query.n_items != 1:
        raise _query_error(items, query)
    room = (k if k < n_items else n_items) or 1
    hits, found = _new(_HITS, room), _new(_COUNT)
    excluded = _NULL if exclude is None else _exclusions(exclude, n_items, 1)
    steps = _NULL if prior is None else prior.pointer
    status = _topk(items.pointer, n_items, code_bits, query.pointer, excluded, steps, room, hits, found)
    if status:
        check(status)
    return Hits(hits, found[0])


def topk_batch(
    items: CodesPointer,
    queries: CodesPointer,
    k: int,
    excludes: ReadableBuffer | None = None,
    prior: PriorPointer | None = None,
) -> list[Hits]:
    """Return topk of every query, in one pass over the items."""
    require_range("k", k, 1, _MAX_K)
    if queries.code_bits != items.code_bits:
        raise _query_error(items, queries)
    n_queries, room = queries.n_items, min(k, items.n_items) or 1
    hits, found = _new(_HITS, n_queries * room), ffi.new("uint32_t[]", n_queries)
    excluded = _NULL if excludes is None else _exclusions(excludes, items.n_items, n_queries)
    steps = _NULL if prior is None else prior.pointer
    check(
        lib.lfr_topk_batch_prior(
            items.pointer,
            items.n_items,
            items.code_bits,
            queries.pointer,
            n_queries,
            excluded,
            steps,
            room,
            hits,
            found,
        )
    )
    # Each part keeps the whole array alive through its owner.
    return [Hits(_Part(hits, j * room), found[j]) for j in range(n_queries)]


class _Part:
    """A stretch of an array of hits, which it keeps alive."""

    __slots__ = ("_first", "_hits")

    def __init__(self, hits: Any, first: int) -> None:
        self._hits = hits
        self._first = first

    def __getitem__(self, i: int) -> Any:
        return self._hits[self._first + i]


def distances(items: CodesPointer, query: CodesPointer, out: WriteableBuffer) -> None:
    """Write the Hamming distance of each row to `out`, which holds n_items uint16."""
    if query.code_bits != items.code_bits or query.n_items != 1:
        raise _query_error(items, query)
    target = writable("uint16_t", out, items.n_items, "distances")
    check(lib.lfr_distances(items.pointer, items.n_items, items.code_bits, query.pointer, target))


def _query_error(items: CodesPointer, query: CodesPointer) -> errors.InvalidInputError:
    if query.code_bits != items.code_bits:
        return errors.CodeLengthError(query.code_bits, items.code_bits)
    return errors.BufferSizeError("query", query.n_items * query.code_bits // 8, items.code_bits // 8)
