"""Popularity as a step function of the row, in the form of manifest.proto."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lightfr.ranking import MAX_STEPS
from lightfr.v1 import manifest_pb2

# Popularities are 16 ln(1 + count), at most so much.
_PARTS = 16
_MOST = 1_023


def prior_of(
    counts: npt.NDArray[np.int64], least: int = 1, removed: npt.NDArray[np.bool_] | None = None
) -> manifest_pb2.Prior | None:
    """The prior of items with these counts, by index; counts below `least` are not told. None: there is none to tell.

    Where the counts do not fall with the index, neighbours share their mean: the best function that never rises. Levels
    that lie close together become one until there are 64. Items that were removed have no say.
    """
    if removed is not None and removed.any():
        there = np.flatnonzero(~removed)
        prior = prior_of(counts[there], least)
        if prior is not None:
            prior.first_items[1:] = there[prior.first_items[1:]].tolist()
        return prior
    told = np.where(counts >= least, counts, 0)
    if not told.any():
        return None
    levels = np.rint(_falling(_PARTS * np.log1p(told.astype(np.float64)))).astype(np.int64)
    levels = np.minimum(levels, _MOST)
    width = 1
    while len(np.unique(levels // width)) > MAX_STEPS:
        width += 1
    # The middle of what became one.
    levels = np.minimum(levels // width * width + width // 2, levels.max()) if width > 1 else levels
    firsts = np.flatnonzero(np.diff(levels, prepend=levels[0] + 1))
    return manifest_pb2.Prior(first_items=firsts.tolist(), popularities=levels[firsts].tolist())


def _falling(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The non-increasing numbers nearest to these: neighbours that rise are pooled."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] < mean:
            mean, size = (mean * size + means[-1] * sizes[-1]) / (size + sizes[-1]), size + sizes[-1]
            means.pop()
            sizes.pop()
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)
