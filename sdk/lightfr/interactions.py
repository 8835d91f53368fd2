"""What one user thinks of items: private, kept on the device, one opinion per item, oldest first."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from lightfr._secret import secret
from lightfr.errors import InvalidInputError, ItemIndexError, RatingError

if TYPE_CHECKING:
    from collections.abc import Iterable

# Ratings are kept as integers 0 .. LEVELS. 2520 is divisible by 1 to 10, so every scale of up to ten steps is exact.
LEVELS = 2520
# Below the middle of the scale a rating is a dislike, above it the item is liked. An event that says no more than that
# an item was played or clicked is in the middle.
MIDDLE = LEVELS // 2
# Kept in the place of a level for an item that shall not be shown. It teaches nothing.
HIDDEN = -1


class _Range(NamedTuple):
    minimum: float
    maximum: float


class RatingScale(_Range):
    """The declared range of ratings."""

    __slots__ = ()

    def __new__(cls, minimum: float, maximum: float) -> RatingScale:
        """Raise InvalidInputError unless the range is finite and not empty."""
        try:
            is_range = minimum < maximum and maximum - minimum < float("inf")
            # A store keeps them as text, and other types of numbers write themselves in other ways.
            bounds = float(minimum), float(maximum)
        except (TypeError, ValueError, OverflowError):  # text, None, an array
            raise InvalidInputError("a rating scale is made of two numbers: RatingScale(1, 5)") from None
        if not is_range:
            raise InvalidInputError(f"a rating scale from {minimum} to {maximum} is empty or not finite")
        return super().__new__(cls, *bounds)

    def level(self, rating: float) -> int:
        """Return r in [0, 1] as an integer in 0 .. LEVELS; raises RatingError outside the scale and for NaN."""
        try:
            if self.minimum <= rating <= self.maximum:
                return round((rating - self.minimum) / (self.maximum - self.minimum) * LEVELS)
        except (TypeError, ValueError):  # text, None, an array
            pass
        raise RatingError(self.minimum, self.maximum)

    def rating(self, level: int) -> float:
        """Return the rating that a level stands for."""
        return self.minimum + level * (self.maximum - self.minimum) / LEVELS


@secret
class Interactions:
    """Rated item indices and their levels. Rating an item again replaces the old rating and makes it the newest."""

    __slots__ = ("_arrays", "_levels")

    def __init__(self, rated: Iterable[tuple[int, int]] = ()) -> None:
        """Take (item_index, level) pairs, oldest first."""
        self._levels: dict[int, int] = {}
        self._arrays: tuple[array[int], array[int]] | None = None
        for item_index, level in rated:
            self.put(item_index, level)

    def put(self, item_index: int, level: int) -> None:
        """Set the level of an item, 0 .. LEVELS, as its newest rating."""
        if not 0 <= level <= LEVELS:
            raise RatingError(0, LEVELS)
        if not 0 <= item_index < 2**32:
            raise ItemIndexError(2**32)
        self._levels.pop(item_index, None)
        self._levels[item_index] = level
        self._arrays = None

    def remove(self, item_index: int) -> bool:
        """Forget the rating of an item; say whether there was one."""
        self._arrays = None
        return self._levels.pop(item_index, None) is not None

    def level_of(self, item_index: int) -> int:
        """Return the level of a rated item."""
        return self._levels[item_index]

    def to_teach(self) -> Interactions:
        """Return what training may use: no dislikes, and not the newest opinion, unless there is no other.

        The newest is kept back so that an evaluation has one that the codes have not learned from.
        """
        opinions = list(self._levels.items())
        kept_back = 1 if len(opinions) > 1 else 0
        return Interactions((i, level) for i, level in opinions[: len(opinions) - kept_back] if level >= MIDDLE)

    def newest(self) -> tuple[int, int] | None:
        """Return the item index and the level of the newest opinion; None: there is none."""
        return next(reversed(self._levels.items()), None)

    def without(self, item_index: int) -> Interactions:
        """Return the opinions of all other items."""
        return Interactions((i, level) for i, level in self._levels.items() if i != item_index)

    def arrays(self) -> tuple[array[int], array[int]]:
        """Return the rated items as uint32, oldest first, and their levels as int32. Not to be changed."""
        if self._arrays is None:
            self._arrays = array("I", self._levels), array("i", self._levels.values())
        return self._arrays

    def __len__(self) -> int:
        return len(self._levels)

    def __repr__(self) -> str:
        return f"<Interactions with {len(self)} items>"
