"""Data in: readers, splits, the synthetic generator and downloads."""

from .errors import DatasetError
from .fetch import fetch
from .held_out import Candidates, HeldOut, ItemGroups
from .ratings import Ratings, renumber_by_popularity
from .readers import READERS, load
from .splits import CatalogueSplit, Split, by_time_80_10_10, leave_last_out, sampled_80_10_10
from .synthetic import SIZES, SyntheticSize, generate

__all__ = [
    "READERS",
    "SIZES",
    "Candidates",
    "CatalogueSplit",
    "DatasetError",
    "HeldOut",
    "ItemGroups",
    "Ratings",
    "Split",
    "SyntheticSize",
    "by_time_80_10_10",
    "fetch",
    "generate",
    "leave_last_out",
    "load",
    "renumber_by_popularity",
    "sampled_80_10_10",
]
