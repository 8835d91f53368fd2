"""What every method has: it is fitted step by step and scores pairs of users and items. Federated ones have rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lightfr_harness.data import Ratings
from lightfr_harness.data.ratings import Index

Floats = npt.NDArray[np.float64]
Settings = Mapping[str, float]
# Called after each step with the number of steps done; says whether to stop.
AfterStep = Callable[[int], bool]
# Called with every exchange as the server has it: the device, what it was sent and what it answered, both encoded.
Observer = Callable[[int, bytes, bytes], None]

FACTORS = 32
# Rounds of a federated method, and at most so many passes of a centralised one.
STEPS = 50
# The share of the devices in a round.
FRACTION = 0.6


@dataclass(frozen=True)
class Traffic:
    """Bytes of encoded messages in one round, over all its devices."""

    devices: int
    down_bytes: int
    up_bytes: int


class Method(ABC):
    """One way to recommend, with the settings that it was made with."""

    # What was sent in each round so far; nothing, where all data are in one place.
    rounds: Sequence[Traffic] = ()

    @abstractmethod
    def begin(self, train: Ratings, seed: int) -> None:
        """Take the ratings, and draw what is drawn once."""

    @abstractmethod
    def step(self) -> None:
        """One pass over the ratings, or one round."""

    @abstractmethod
    def scores(self, users: Index, items: Index) -> Floats:
        """One score for each pair of users[k] and items[k]; higher is better."""

    def fit(self, train: Ratings, seed: int, steps: int = STEPS, after: AfterStep | None = None) -> int:
        """Take so many steps, fewer where `after` says so, and return how many were taken."""
        self.begin(train, seed)
        for done in range(1, steps + 1):
            self.step()
            if after is not None and after(done):
                return done
        return steps


class Federated(Method):
    """A server and its devices, which exchange encoded messages only. A step is a round of a share of the devices."""

    fraction = FRACTION
    # One for each user. `begin` makes them, and the stream that decides, among other things, who takes part.
    devices: Sequence[object]
    _draws: np.random.Generator

    def __init__(self) -> None:
        self.rounds: list[Traffic] = []
        self.observer: Observer = lambda device, download, upload: None

    @abstractmethod
    def round(self, users: list[int]) -> Traffic:
        """One round of these devices: encoded messages go down and up, and the server learns from what came."""

    def step(self) -> None:
        size = max(1, round(self.fraction * len(self.devices)))
        users = self._draws.choice(len(self.devices), size, replace=False)
        self.rounds.append(self.round(sorted(users.tolist())))


@dataclass(frozen=True)
class DeviceCost:
    """What one device of a federated method pays, measured: files, encoded messages, and a call that recommends."""

    storage_bytes: int
    down_bytes: int
    up_bytes: int
    recommend: Callable[[int], Index]
    note: str = ""
    # The part of the catalogue that `recommend` goes through, where the whole would take hours: divide its time by it.
    share: float = 1.0


@dataclass(frozen=True)
class Entry:
    """A method in the table: how it is made, its authors' constants, and the grid that tuning tries on validation.

    Grids have at most six settings, the same effort for everybody. The number of steps is chosen with them.
    """

    name: str
    title: str
    # "federated", "centralised", "variant" (of LightFR), "peer" or "reference".
    family: str
    make: Callable[[Settings], Method]
    authors: Settings
    grid: tuple[Settings, ...]
    # Bytes and a recommending call of one device with so many items and ratings; None: not federated.
    cost: Callable[[int, int, int], DeviceCost] | None = None
    # Steps that the authors take; None: STEPS. 0: all is done when the ratings are taken, and there are no steps.
    authors_steps: int | None = None
    note: str = ""
