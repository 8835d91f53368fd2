"""How a catalogue changes: who joins, leaves and returns, and whether its items are numbered anew. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

# As manifest.proto has it.
MOST_PARTS = 16
# Items are numbered anew when so large a part of all indices belongs to items that left,
_LEFT_PARTS = 4
# or when items with so large a part of all counts stand so many times too far back or too far in front.
_MOVED_PARTS = 10
_MOVED_TIMES = 2


@dataclass(frozen=True)
class Change:
    """From one catalogue to the next."""

    # By new index: the old one, -1 for an item that joins; and the place in the new list, -1 for an item that left.
    old_index_of_new: Numbers
    place_of_new: Numbers
    # So many parts of the catalogue stay as they are; behind them comes a new one, of so many items, unless that is 0.
    n_kept_parts: int
    new_part: int
    joined: int
    left: int
    returned: int
    is_renumbered: bool

    @property
    def removed(self) -> npt.NDArray[np.bool_]:
        """By new index: which items are not in the new list."""
        return self.place_of_new < 0

    @property
    def n_items(self) -> int:
        return len(self.place_of_new)

    def listed(self, by_place: Numbers) -> Numbers:
        """What the new list says of each item, by new index; 0 for those that left."""
        return np.where(self.removed, 0, by_place[self.place_of_new])

    def kept(self, by_old_index: Numbers) -> Numbers:
        """What was known of each item, by new index; 0 for those that join and those that left."""
        return np.where(self.removed | (self.old_index_of_new < 0), 0, by_old_index[self.old_index_of_new])

    def __str__(self) -> str:
        anew = "the items are numbered anew" if self.is_renumbered else "items that stay keep their numbers"
        return f"{self.joined:,} items join, {self.left:,} leave, {self.returned:,} return; {anew}"


def plan_change(found: Numbers, was_removed: npt.NDArray[np.bool_], parts: Sequence[int], counts: Numbers) -> Change:
    """The change to a new list of items.

    `found` and `counts` go by the place in the list: the index that the item has so far, or -1; and how popular it is.
    `was_removed` goes by the index so far, `parts` are the sizes of the parts so far.
    """
    is_known = found >= 0
    place_of_old = np.full(len(was_removed), -1)
    place_of_old[found[is_known]] = np.flatnonzero(is_known)
    joining = np.flatnonzero(~is_known)
    old = np.concatenate([np.arange(len(was_removed)), np.full(len(joining), -1)])
    place = np.concatenate([place_of_old, joining])
    n_kept_parts, new_part = _parts(parts, len(joining))
    is_renumbered = n_kept_parts + (new_part > 0) > MOST_PARTS or _must_renumber(place, counts)
    if is_renumbered:
        # The list has the most popular items first, so its order decides between equal counts.
        place = np.argsort(-counts, kind="stable")
        old, n_kept_parts, new_part = found[place], 0, len(found)
    return Change(
        old,
        place,
        n_kept_parts,
        new_part,
        joined=len(joining),
        left=int((~was_removed & (place_of_old < 0)).sum()),
        returned=int((was_removed & (place_of_old >= 0)).sum()),
        is_renumbered=is_renumbered,
    )


def _parts(parts: Sequence[int], n_joining: int) -> tuple[int, int]:
    """Items that join make one part with all parts before it that are not larger, so that there are few."""
    n_kept, size = len(parts), n_joining
    while n_kept and parts[n_kept - 1] <= size:
        n_kept -= 1
        size += parts[n_kept]
    return n_kept, size


def _must_renumber(place: Numbers, counts: Numbers) -> bool:
    """Whether too many indices belong to items that left, or too much of the counts to items that are out of place."""
    is_there = place >= 0
    if _LEFT_PARTS * int((~is_there).sum()) >= len(place):
        return True
    by_position = counts[place[is_there]].astype(np.float64)
    position = np.arange(1, len(by_position) + 1)
    deserved = np.empty_like(position)
    deserved[np.argsort(-by_position, kind="stable")] = position
    is_far = (position > _MOVED_TIMES * deserved) | (_MOVED_TIMES * position < deserved)
    total = float(by_position.sum())
    return total > 0 and _MOVED_PARTS * float(by_position[is_far].sum()) >= total
