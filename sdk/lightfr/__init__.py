"""lightfr: on-device recommendation with binary codes. This module is the whole public surface."""

from lightfr import errors
from lightfr.codes import ItemCodes, ItemSet, UserCode
from lightfr.errors import LightFRError
from lightfr.ranking import Ranked, rank, rank_batch, recommend

__version__ = "0.1.0"

__all__ = [
    "ItemCodes",
    "ItemSet",
    "LightFRError",
    "Ranked",
    "UserCode",
    "__version__",
    "errors",
    "rank",
    "rank_batch",
    "recommend",
]
