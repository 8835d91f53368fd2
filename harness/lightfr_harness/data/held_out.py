"""What evaluation is asked about: one positive among candidates, or sets from the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lightfr.interactions import MIDDLE

from .errors import InvalidRatingsError
from .ratings import Index

Offsets = NDArray[np.int64]
Rows = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ItemGroups:
    """Lists of items of different lengths: group j is `item_index[offsets[j]:offsets[j + 1]]`."""

    item_index: Index
    offsets: Offsets

    def __post_init__(self) -> None:
        object.__setattr__(self, "item_index", np.asarray(self.item_index, np.uint32))
        object.__setattr__(self, "offsets", np.asarray(self.offsets, np.int64))
        if not len(self.offsets) or self.offsets[0] or self.offsets[-1] != len(self.item_index):
            raise InvalidRatingsError("Offsets must start at 0 and end at the number of items.")
        if (np.diff(self.offsets) < 0).any():
            raise InvalidRatingsError("Offsets must not decrease.")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, group: int) -> Index:
        if not 0 <= group < len(self):
            raise IndexError(group)
        return self.item_index[self.offsets[group] : self.offsets[group + 1]]

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)


@dataclass(frozen=True, eq=False)
class Candidates:
    """For each evaluated user one positive, then its negatives; groups may differ in length.

    A user may occur more than once, with another positive each time.

    Scores for candidates are one flat array aligned with `item_index`.
    """

    user_index: Index
    groups: ItemGroups
    levels: NDArray[np.int64] | None = None
    """What each user thinks of the positive, 0 to LEVELS. None: nobody says, and all count as liked."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "user_index", np.asarray(self.user_index, np.uint32))
        if len(self.user_index) != len(self.groups) or (self.groups.sizes < 1).any():
            raise InvalidRatingsError("Candidates need one group, with its positive, per user.")
        if self.levels is not None and len(self.levels) != len(self.user_index):
            raise InvalidRatingsError("Candidates need one level per user.")

    def __len__(self) -> int:
        return len(self.user_index)

    @property
    def item_index(self) -> Index:
        return self.groups.item_index

    @property
    def offsets(self) -> Offsets:
        return self.groups.offsets

    @property
    def positives(self) -> Index:
        return self.item_index[self.offsets[:-1]]

    @property
    def is_disliked(self) -> Rows:
        """Which positives are rated below the middle of the scale."""
        return np.zeros(len(self), np.bool_) if self.levels is None else self.levels < MIDDLE

    @property
    def is_liked(self) -> Rows:
        """Which are rated above it; all, where none is rated below."""
        if self.levels is None or not self.is_disliked.any():
            return np.ones(len(self), np.bool_)
        return self.levels > MIDDLE

    def users_of_rows(self) -> Index:
        """The user of every entry of `item_index`, for scoring all pairs in one go."""
        return np.repeat(self.user_index, self.groups.sizes)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """For each evaluated user the items to find, and the ones already seen, never to be listed."""

    user_index: Index
    held_out: ItemGroups
    seen: ItemGroups

    def __post_init__(self) -> None:
        object.__setattr__(self, "user_index", np.asarray(self.user_index, np.uint32))
        if not len(self.user_index) == len(self.held_out) == len(self.seen):
            raise InvalidRatingsError("Held-out and seen items need one group per user.")
        if (self.held_out.sizes < 1).any():
            raise InvalidRatingsError("Every evaluated user needs at least one held-out item.")

    def __len__(self) -> int:
        return len(self.user_index)


def groups_from_lists(lists: list[Index]) -> ItemGroups:
    sizes = np.array([len(group) for group in lists], dtype=np.int64)
    flat = np.concatenate(lists) if lists else np.empty(0, dtype=np.uint32)
    return ItemGroups(flat, np.concatenate(([0], np.cumsum(sizes))))
