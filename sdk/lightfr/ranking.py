"""Exact ranking of a catalogue by similarity of codes, on the device."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from lightfr import _kernel
from lightfr.codes import ItemCodes, ItemSet, UserCode
from lightfr.errors import ItemIndexError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Ranked(NamedTuple):
    """One item of a ranking. Similarity is the share of equal bits, sim(b, d) of the paper, in [0, 1]."""

    item_index: int
    similarity: float


def rank(
    user_code: UserCode,
    item_codes: ItemCodes,
    k: int,
    *,
    exclude: ItemSet | None = None,
    among: Iterable[int] | None = None,
) -> list[Ranked]:
    """Return the k most similar items, best first, ties to the lower index; fewer when fewer are left.

    `exclude` leaves items out. `among` asks about these items alone, and only their codes are read.
    """
    pointer = item_codes.kernel_pointer()
    bitmap = None if exclude is None else exclude.bitmap(item_codes.n_items)
    if among is None:
        return _ranked(_kernel.topk(pointer, user_code._pointer, k, bitmap), pointer.code_bits)
    wanted = set(among)
    if not all(0 <= item_index < item_codes.n_items for item_index in wanted):
        raise ItemIndexError(item_codes.n_items)
    # Ascending, so that the lower place among them is the lower index as well.
    asked = array("I", sorted(i for i in wanted if bitmap is None or not bitmap[i >> 3] >> (i & 7) & 1))
    rows = _kernel.CodesPointer(_kernel.gather(pointer, asked, len(asked)), pointer.code_bits)
    ranked = _ranked(_kernel.topk(rows, user_code._pointer, k), pointer.code_bits)
    return [Ranked(asked[place], similarity) for place, similarity in ranked]


def similarity_of(user_code: UserCode, item_codes: ItemCodes, item_index: int) -> float:
    """Return the similarity of one item."""
    differing = int.from_bytes(user_code.reveal()) ^ int.from_bytes(item_codes.row(item_index))
    return 1 - differing.bit_count() / item_codes.code_bits


def rank_batch(user_codes: Sequence[UserCode], item_codes: ItemCodes, k: int) -> list[list[Ranked]]:
    """Return rank() of several user codes in one pass over the catalogue: several profiles on one device."""
    pointer = item_codes.kernel_pointer()
    queries = _kernel.CodesPointer(b"".join(code.reveal() for code in user_codes), pointer.code_bits)
    return [_ranked(hits, pointer.code_bits) for hits in _kernel.topk_batch(pointer, queries, k)]


def recommend(user_code: UserCode, item_codes: ItemCodes, k: int, *, rated: Iterable[int] = ()) -> list[Ranked]:
    """Return the k most similar items that the user has not rated."""
    return rank(user_code, item_codes, k, exclude=ItemSet(item_codes.n_items, rated))


def _ranked(hits: _kernel.Hits, code_bits: int) -> list[Ranked]:
    return [Ranked(item_index, 1 - distance / code_bits) for item_index, distance in hits]
