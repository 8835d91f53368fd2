"""Exact ranking of a catalogue by score, on the device: similarity of codes, and a popularity prior if there is one."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import cache, partial
from itertools import islice, pairwise
from operator import index
from typing import TYPE_CHECKING, NamedTuple

from lightfr import _arguments, _kernel
from lightfr.codes import ItemCodes, ItemSet, UserCode
from lightfr.errors import CodeLengthError, InvalidInputError, ItemIndexError, OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_STEPS = 64
MAX_OFFSET = 1 << 20


class Ranked(NamedTuple):
    """One item of a ranking. Similarity is the share of equal bits, sim(b, d) of the paper, in [0, 1].

    The score is what items are ranked by: equal bits less other bits, and the prior's offset on top.
    """

    item_index: int
    similarity: float
    score: int


class Prior:
    """What popularity adds to scores: a step function of the item index, since catalogues are numbered by popularity.

    `steps` are 1 to 64 pairs (first item index, offset). The first begins at 0, indices ascend, and no offset is higher
    than the one before it; offsets are -2^20 to 2^20. A prior costs no byte per item, and hardly any time.
    """

    def __init__(self, steps: Iterable[tuple[int, int]]) -> None:
        try:
            self.steps = tuple((index(first), index(offset)) for first, offset in steps)
        except (TypeError, ValueError):
            raise InvalidInputError("steps must be pairs of whole numbers: a first item index and an offset") from None
        if not 1 <= len(self.steps) <= MAX_STEPS:
            raise OutOfRangeError("number of steps", len(self.steps), 1, MAX_STEPS)
        for _, offset in self.steps:
            if not -MAX_OFFSET <= offset <= MAX_OFFSET:
                raise OutOfRangeError("offset", offset, -MAX_OFFSET, MAX_OFFSET)
        if self.steps[0][0] != 0 or any(a[0] >= b[0] or a[1] < b[1] for a, b in pairwise(self.steps)):
            raise InvalidInputError("steps must begin at item 0, by ascending index, with offsets that do not rise")
        if self.steps[-1][0] >= 1 << 32:
            raise OutOfRangeError("first item of a step", self.steps[-1][0], 0, (1 << 32) - 1)
        self._firsts = [first for first, _ in self.steps]
        self._pointer = _kernel.PriorPointer(self.steps)

    def __repr__(self) -> str:
        return f"<Prior of {len(self.steps)} steps>"

    def offset_of(self, item_index: int) -> int:
        """Return what an item's score has on top."""
        return self.steps[bisect_right(self._firsts, item_index) - 1][1]


def rank(
    user_code: UserCode,
    item_codes: ItemCodes,
    k: int,
    *,
    exclude: ItemSet | None = None,
    among: Iterable[int] | None = None,
    prior: Prior | None = None,
) -> list[Ranked]:
    """Return the k items of the highest score, best first, ties to the lower index; fewer when fewer are left.

    `exclude` leaves items out. `among` asks about these items alone, and only their codes are read.
    """
    _require_kinds(user_code, item_codes, exclude, prior)
    k = _arguments.whole("k", k)
    pointer = item_codes.kernel_pointer()
    bitmap = None if exclude is None else exclude.bitmap(item_codes.n_items)
    if among is None:
        steps = None if prior is None else prior._pointer
        return _ranked(_kernel.topk(pointer, user_code._pointer, k, bitmap, steps), pointer.code_bits, prior)
    _require_k(k)
    wanted = set(_arguments.indices("among", among))
    if not all(0 <= item_index < item_codes.n_items for item_index in wanted):
        raise ItemIndexError(item_codes.n_items)
    # Ascending, so that the lower place among them is the lower index as well.
    asked = array("I", sorted(i for i in wanted if bitmap is None or not bitmap[i >> 3] >> (i & 7) & 1))
    rows = _kernel.CodesPointer(_kernel.gather(pointer, asked, len(asked)), pointer.code_bits)
    # All of them, since the prior may turn their order around.
    places, distances = _kernel.topk(rows, user_code._pointer, k if prior is None else max(k, len(asked)))
    found = _ranked(([asked[place] for place in places], distances), pointer.code_bits, prior)
    return found if prior is None else sorted(found, key=lambda item: (-item.score, item.item_index))[:k]


def _require_kinds(user_code: object, item_codes: object, exclude: object, prior: object) -> None:
    has_codes = isinstance(user_code, UserCode) and isinstance(item_codes, ItemCodes)
    has_options = (exclude is None or isinstance(exclude, ItemSet)) and (prior is None or isinstance(prior, Prior))
    if not (has_codes and has_options):
        raise InvalidInputError("a search takes a UserCode and ItemCodes, as `exclude` an ItemSet, as `prior` a Prior")


def _require_k(k: int) -> None:
    """Raise OutOfRangeError for a k that the kernel would refuse, where it is not asked."""
    if not 1 <= k < 2**31:
        raise OutOfRangeError("k", k, 1, 2**31 - 1)


def popular(n_items: int, k: int, exclude: ItemSet, among: Iterable[int] | None = None) -> list[int]:
    """Return the first k items: catalogues are numbered by popularity."""
    _require_k(k)
    asked = range(n_items) if among is None else sorted(set(among))
    return list(islice((i for i in asked if i not in exclude), k))


def rank_batch(
    user_codes: Sequence[UserCode], item_codes: ItemCodes, k: int, *, prior: Prior | None = None
) -> list[list[Ranked]]:
    """Return rank() of several user codes in one pass over the catalogue: several profiles on one device."""
    user_codes = _arguments.listed("user_codes", user_codes)
    for code in user_codes:
        _require_kinds(code, item_codes, None, prior)
    pointer = item_codes.kernel_pointer()
    for code in user_codes:
        # One behind the other, codes of other lengths may well have the bytes of some codes of this one.
        if code.code_bits != pointer.code_bits:
            raise CodeLengthError(code.code_bits, pointer.code_bits)
    queries = _kernel.CodesPointer(b"".join(code.reveal() for code in user_codes), pointer.code_bits)
    steps = None if prior is None else prior._pointer
    found = _kernel.topk_batch(pointer, queries, _arguments.whole("k", k), prior=steps)
    return [_ranked(hits, pointer.code_bits, prior) for hits in found]


def recommend(
    user_code: UserCode,
    item_codes: ItemCodes,
    k: int,
    *,
    rated: Iterable[int] = (),
    prior: Prior | None = None,
) -> list[Ranked]:
    """Return the k items of the highest score that the user has not rated."""
    return rank(user_code, item_codes, k, exclude=ItemSet(item_codes.n_items, rated), prior=prior)


@cache
def _tables(code_bits: int) -> tuple[list[float], list[int]]:
    """Similarity and score of each distance."""
    distances = range(code_bits + 1)
    return [1 - distance / code_bits for distance in distances], [code_bits - 2 * distance for distance in distances]


# What Ranked._make does, at half its price: it counts where a whole search takes a microsecond.
_make_ranked = partial(tuple.__new__, Ranked)


def _ranked(hits: _kernel.Hits, code_bits: int, prior: Prior | None) -> list[Ranked]:
    items, distances = hits
    similarities, scores = _tables(code_bits)
    by_codes = map(scores.__getitem__, distances)
    found = by_codes if prior is None else map(int.__add__, by_codes, map(prior.offset_of, items))
    return list(map(_make_ranked, zip(items, map(similarities.__getitem__, distances), found, strict=True)))
