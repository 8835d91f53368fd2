"""Simulated devices. Each has a store of its own and sees only what a real one would: published models, and itself.

A fleet keeps what its devices have in a few arrays, six bytes a rating and a code a device, so that a million devices
take some hundred megabytes. A device is an object only while somebody looks at it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from lightfr import UserCode, _wire
from lightfr.interactions import Interactions
from lightfr.rankings import Ranking
from lightfr.training import (
    PublishedModel,
    RowUpdate,
    fit_for_round,
    fit_for_use,
    make_update,
    may_refine,
    taught_by,
)
from lightfr_harness.data.ratings import Ratings

if TYPE_CHECKING:
    from lightfr_harness.simulation.asking import Question, Share

# Devices whose ratings stay objects, so that a small fleet does not make them anew in every round.
KEPT_OBJECTS = 8192
# Devices that are asked in one go; after each such part progress is told.
ASKED_AT_ONCE = 8192


def stream(*key: object) -> Callable[[int], bytes]:
    """Reproducible bytes for one purpose; asking a second time gives other bytes. For simulations only."""
    name = "/".join(map(str, key))
    count = 0

    def take(n: int) -> bytes:
        nonlocal count
        count += 1
        return hashlib.shake_128(f"{name}/{count}".encode()).digest(n)

    return take


class SimulatedDevice:
    """One user's device: its ratings and its code, which nobody else holds."""

    __slots__ = ("code", "interactions")

    def __init__(self, interactions: Interactions, code: UserCode) -> None:
        self.interactions = interactions
        self.code = code

    def take_part(self, model: PublishedModel, random_bytes: Callable[[int], bytes]) -> bytes:
        """Fit, then answer with an encoded upload."""
        return _wire.encode_update(self.update(model, random_bytes))

    def update(self, model: PublishedModel, random_bytes: Callable[[int], bytes]) -> RowUpdate:
        """Fit, then compute what this device has to say: PRIVATE until it is encoded or masked."""
        taught = taught_by(model, self.interactions)
        self.code = fit_for_round(model, taught, self.code)
        return make_update(model, taught, self.code, random_bytes)

    def code_for_use(self, model: PublishedModel, ranking: Ranking) -> UserCode:
        """Fit a code to recommend with; the code of the training rounds stays as it is."""
        refine = ranking.refine and may_refine(model, self.interactions)
        return fit_for_use(model, self.interactions, self.code, recency=ranking.recency, refine=refine)


class Fleet:
    """All devices of a data set, in the order of its users, or some that follow each other."""

    def __init__(
        self,
        items: npt.NDArray[np.uint32],
        levels: npt.NDArray[np.int16],
        ends: npt.NDArray[np.int64],
        codes: npt.NDArray[np.uint8],
    ) -> None:
        """Rated items and their levels, device by device, oldest first; where each device's ratings end; the codes."""
        self.items, self.levels, self.ends, self.user_codes = items, levels, ends, codes
        self.devices = _Devices(self)

    @classmethod
    def of(cls, ratings: Ratings, code_bits: int, seed: int) -> Fleet:
        """One device per user, with that user's ratings, oldest first, and a random code.

        Without times the order is random: that of a file would make some item the newest of all users.
        """
        order = ratings.chronological_order()
        if not ratings.has_times:
            shuffled = np.random.default_rng([seed, 8]).random(len(ratings))
            order = np.lexsort((shuffled, ratings.user_index)).astype(np.int64)
        ends = np.cumsum(np.bincount(ratings.user_index, minlength=ratings.n_users)).astype(np.int64)
        codes = b"".join(first_code(code_bits, seed, user).reveal() for user in range(ratings.n_users))
        return cls(
            ratings.item_index[order],
            ratings.levels().astype(np.int16)[order],
            ends,
            np.frombuffer(codes, np.uint8).reshape(ratings.n_users, -1).copy(),
        )

    def __reduce__(self) -> tuple[type[Fleet], tuple[npt.NDArray[Any], ...]]:
        """A fleet travels as its arrays."""
        return Fleet, (self.items, self.levels, self.ends, self.user_codes)

    @cached_property
    def checksum(self) -> int:
        """Tells the ratings of one fleet from those of another."""
        checksum = 0
        for column in (self.items, self.levels, self.ends):
            checksum = zlib.crc32(np.ascontiguousarray(column).data, checksum)
        return checksum

    def part(self, first: int, end: int) -> Fleet:
        """The devices from `first` to before `end`."""
        start = int(self.ends[first - 1]) if first else 0
        stop = int(self.ends[end - 1]) if end else 0
        ends, codes = self.ends[first:end] - start, self.user_codes[first:end]
        return Fleet(self.items[start:stop], self.levels[start:stop], ends, codes)

    def __len__(self) -> int:
        return len(self.ends)

    def ask(
        self, question: Question, users: npt.NDArray[np.int64], tell: Callable[[float], None] = lambda _: None
    ) -> Share:
        """What these devices answer, added up. `tell` hears now and then what share of them has answered."""
        model, total = question.model.published(), question.nothing()
        for first in range(0, len(users), ASKED_AT_ONCE):
            some = users[first : first + ASKED_AT_ONCE]
            total = total.plus(question.answer(model, ((user, self.devices[user]) for user in some.tolist())))
            tell((first + len(some)) / len(users))
        return total

    def codes(self) -> npt.NDArray[np.uint8]:
        """The codes of all devices, for a checkpoint of the simulation: a real server never sees this."""
        return self.user_codes.copy()

    def restore(self, codes: npt.NDArray[np.uint8]) -> None:
        self.user_codes[:] = codes

    def usage(self) -> list[tuple[float, int]]:
        """CPU seconds and the most bytes of memory of each process that devices have of their own: there is none."""
        return []

    def close(self) -> None:
        """Nothing is held here that must be given back."""


class _FleetDevice(SimulatedDevice):
    """A device whose code is a row of its fleet's codes."""

    __slots__ = ("_row",)

    def __init__(self, interactions: Interactions, row: npt.NDArray[np.uint8]) -> None:
        self.interactions, self._row = interactions, row

    @property
    def code(self) -> UserCode:
        return UserCode(self._row.tobytes())

    @code.setter
    def code(self, code: UserCode) -> None:
        self._row[:] = np.frombuffer(code.reveal(), np.uint8)


class _Devices(Sequence[SimulatedDevice]):
    """The devices of a fleet, each made when it is looked at."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._interactions = lru_cache(KEPT_OBJECTS)(self._read)

    def _read(self, user: int) -> Interactions:
        fleet = self._fleet
        rated = slice(int(fleet.ends[user - 1]) if user else 0, int(fleet.ends[user]))
        return Interactions(zip(fleet.items[rated].tolist(), fleet.levels[rated].tolist(), strict=True))

    @overload
    def __getitem__(self, user: int) -> SimulatedDevice: ...
    @overload
    def __getitem__(self, user: slice) -> list[SimulatedDevice]: ...
    def __getitem__(self, user: int | slice) -> SimulatedDevice | list[SimulatedDevice]:
        numbers = range(len(self))[user]
        if isinstance(numbers, range):
            return [self[number] for number in numbers]
        return _FleetDevice(self._interactions(numbers), self._fleet.user_codes[numbers])

    def __len__(self) -> int:
        return len(self._fleet)


def first_code(code_bits: int, seed: int, user: int) -> UserCode:
    return UserCode(stream("first code", seed, user)(code_bits // 8))
