"""A device's part of an evaluation round: how well each candidate would have ranked an opinion of its user.

The device keeps its newest opinion back from training. Here it fits without that opinion, for each candidate of the
manifest, and ranks the item among 49 that its user has no opinion of. All that leaves the device is a row of bits, in a
sum over a cohort, with noise.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from math import log2
from typing import TYPE_CHECKING

from lightfr import _kernel
from lightfr.codes import ItemSet
from lightfr.interactions import MIDDLE
from lightfr.rankings import RankBy, Rankings, group_of
from lightfr.secagg.contribution import add_count_noise
from lightfr.secagg.noise import EVALUATION_VARIANCE
from lightfr.secagg.vector import Vector, evaluation_blocks
from lightfr.training import fit_for_use, may_refine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lightfr.codes import UserCode
    from lightfr.interactions import Interactions
    from lightfr.training import PublishedModel

    RandomBytes = Callable[[int], bytes]

OTHERS = 49
SHOWN = 10
# 65536 / log2(rank + 1) for the ranks 1 to 10, rounded: the chance, of 65536, that an item counts for its place.
GAINS = tuple(round(65536 / log2(rank + 1)) for rank in range(1, SHOWN + 1))
_SEED = b"lightfr evaluation v1\n"


def evaluation_vector(
    model: PublishedModel,
    rankings: Rankings,
    interactions: Interactions,
    code: UserCode,
    roster_digest: bytes,
    devices: int,
    random_bytes: RandomBytes = os.urandom,
) -> Vector:
    """Return the numbers of a device in an evaluation round, not masked yet: PRIVATE.

    A device with fewer than two opinions has nothing to say; it adds noise like the others.
    """
    vector = evaluation_without_noise(model, rankings, interactions, code, roster_digest, devices, random_bytes)
    add_count_noise(model, vector["hits"], devices, EVALUATION_VARIANCE, random_bytes)
    return vector


def evaluation_without_noise(
    model: PublishedModel,
    rankings: Rankings,
    interactions: Interactions,
    code: UserCode,
    roster_digest: bytes,
    devices: int,
    random_bytes: RandomBytes = os.urandom,
) -> Vector:
    """Return the numbers of a device before noise, for simulations that add it to the sum: see evaluation_vector."""
    vector = Vector(evaluation_blocks(len(rankings.candidates), devices, model.noise))
    newest = interactions.newest()
    if newest is not None and len(interactions) > 1:
        held_out, level = newest
        fitted_on = interactions.without(held_out)
        places = ranks(model, rankings, fitted_on, held_out, code, roster_digest, random_bytes)
        _count(vector["hits"], group_of(len(fitted_on)), level < MIDDLE, places, random_bytes)
    return vector


def _count(
    hits: memoryview[int], group: int, is_disliked: bool, places: Sequence[int], random_bytes: RandomBytes
) -> None:
    """Set the bits of one opinion: that it is there, and by candidate whether it was shown and whether it counts.

    One draw decides for all candidates, so that they differ by their ranks and not by luck.
    """
    width, draw = 1 + 2 * len(places), int.from_bytes(random_bytes(2), "little")
    first = (2 * group + is_disliked) * width
    hits[first] = 1
    for i, place in enumerate(places):
        if place <= SHOWN:
            hits[first + 1 + 2 * i] = 1
            hits[first + 2 + 2 * i] = int(draw < GAINS[place - 1])


def ranks(
    model: PublishedModel,
    rankings: Rankings,
    fitted_on: Interactions,
    held_out: int,
    code: UserCode,
    roster_digest: bytes,
    random_bytes: RandomBytes = os.urandom,
) -> list[int]:
    """Return the rank, from 1, of an item among 49 others by each candidate; ties go to the lower index."""
    opinions = {held_out, *fitted_on.arrays()[0]}
    removed = None if model.removed is None else model.removed.bitmap(model.n_items)
    others = drawn_items(roster_digest, model.n_items, ItemSet(model.n_items, opinions, bitmap=removed))
    asked = array("I", [held_out, *others])
    rows = _kernel.CodesPointer(_kernel.gather(model.codes.kernel_pointer(), asked, len(asked)), model.code_bits)
    by_fit: dict[tuple[int, bool], list[int]] = {}
    places = []
    for candidate in rankings.candidates:
        if candidate.by == RankBy.CODES:
            refine = candidate.refine and may_refine(model, fitted_on)
            key = candidate.recency, refine
            if key not in by_fit:
                fitted = fit_for_use(model, fitted_on, code, recency=candidate.recency, refine=refine)
                by_fit[key] = _similarities(rows, fitted)
            prior = rankings.prior(candidate, model.code_bits)
            scores = [s + prior.offset_of(i) if prior else s for s, i in zip(by_fit[key], asked, strict=True)]
        elif candidate.by == RankBy.POPULARITY:
            scores = [0] * len(asked)
        else:
            scores = array("I", random_bytes(4 * len(asked))).tolist()
        better = sum((score, -i) > (scores[0], -held_out) for score, i in zip(scores, asked, strict=True))
        places.append(1 + better)
    return places


def _similarities(rows: _kernel.CodesPointer, code: UserCode) -> list[int]:
    """Return s of each row: equal bits less other bits."""
    distances = array("H", bytes(2 * rows.n_rows))
    _kernel.distances(rows, code._pointer, distances)
    return [rows.code_bits - 2 * distance for distance in distances]


def drawn_items(roster_digest: bytes, n_items: int, without: set[int] | ItemSet) -> list[int]:
    """Return 49 items that the round draws from the catalogue, without some; all others where there are no more.

    Draw j is the little-endian uint32 at 4 (j mod 8) of SHA-256(text, roster_digest, j div 8 as uint32), times n_items,
    div 2^32. One that is to be left out or that was drawn before is passed over. A roster has fresh keys of all
    devices, so no server can have the same items drawn twice and subtract one evaluation from another.
    """
    if n_items - len(without) <= OTHERS:
        return [i for i in range(n_items) if i not in without]
    drawn: dict[int, None] = {}
    block = 0
    while True:
        digest = hashlib.sha256(_SEED + roster_digest + block.to_bytes(4, "little")).digest()
        for draw in array("I", digest):
            item = draw * n_items >> 32
            if item not in without:
                drawn[item] = None
            if len(drawn) == OTHERS:
                return list(drawn)
        block += 1
