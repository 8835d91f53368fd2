"""Simulated devices. Each has a store of its own and sees only what a real one would: published models, and itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

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
    """All devices of a data set, in the order of its users."""

    def __init__(self, devices: list[SimulatedDevice]) -> None:
        self.devices = devices

    @classmethod
    def of(cls, ratings: Ratings, code_bits: int, seed: int) -> Fleet:
        """One device per user, with that user's ratings, oldest first, and a random code.

        Without times the order is random: that of a file would make some item the newest of all users.
        """
        order = ratings.chronological_order()
        if not ratings.has_times:
            shuffled = np.random.default_rng([seed, 8]).random(len(ratings))
            order = np.lexsort((shuffled, ratings.user_index)).astype(np.int64)
        pairs = list(zip(ratings.item_index[order].tolist(), ratings.levels()[order].tolist(), strict=True))
        ends = np.cumsum(np.bincount(ratings.user_index, minlength=ratings.n_users)).tolist()
        starts = [0, *ends[:-1]]
        return cls(
            [
                SimulatedDevice(Interactions(pairs[start:end]), first_code(code_bits, seed, user))
                for user, (start, end) in enumerate(zip(starts, ends, strict=True))
            ]
        )

    def __len__(self) -> int:
        return len(self.devices)

    def codes(self) -> npt.NDArray[np.uint8]:
        """The codes of all devices, for a checkpoint of the simulation: a real server never sees this."""
        return np.frombuffer(b"".join(d.code.reveal() for d in self.devices), np.uint8).reshape(len(self), -1)

    def restore(self, codes: npt.NDArray[np.uint8]) -> None:
        for device, code in zip(self.devices, codes, strict=True):
            device.code = UserCode(code.tobytes())


def first_code(code_bits: int, seed: int, user: int) -> UserCode:
    return UserCode(stream("first code", seed, user)(code_bits // 8))
