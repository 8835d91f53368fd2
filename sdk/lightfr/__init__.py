"""lightfr: on-device recommendation with binary codes. This module is the whole public surface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightfr import errors
from lightfr.codes import ItemCodes, ItemSet, UserCode
from lightfr.errors import LightFRError
from lightfr.ranking import Ranked, rank, rank_batch, recommend

if TYPE_CHECKING:
    from lightfr.aio import AsyncClient
    from lightfr.client import Client, Participation, Reason, Recommendation, RoundStage, Status
    from lightfr.enrollment import Enrolled, enroll
    from lightfr.interactions import RatingScale
    from lightfr.keys import CallbackKey, FileKey, KeyProvider, PassphraseKey

__version__ = "0.1.0"

# Names that need TLS, encryption or protobuf, and the module of each: loaded when first used, so that an app which only
# ranks does not pay for them.
_LAZY = {
    "AsyncClient": "lightfr.aio",
    "CallbackKey": "lightfr.keys",
    "Client": "lightfr.client",
    "Enrolled": "lightfr.enrollment",
    "FileKey": "lightfr.keys",
    "KeyProvider": "lightfr.keys",
    "Participation": "lightfr.client",
    "PassphraseKey": "lightfr.keys",
    "RatingScale": "lightfr.interactions",
    "Reason": "lightfr.client",
    "Recommendation": "lightfr.client",
    "RoundStage": "lightfr.client",
    "Status": "lightfr.client",
    "enroll": "lightfr.enrollment",
}

__all__ = [
    "AsyncClient",
    "CallbackKey",
    "Client",
    "Enrolled",
    "FileKey",
    "ItemCodes",
    "ItemSet",
    "KeyProvider",
    "LightFRError",
    "Participation",
    "PassphraseKey",
    "Ranked",
    "RatingScale",
    "Reason",
    "Recommendation",
    "RoundStage",
    "Status",
    "UserCode",
    "__version__",
    "enroll",
    "errors",
    "rank",
    "rank_batch",
    "recommend",
]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'lightfr' has no attribute '{name}'")
    from importlib import import_module

    value: object = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
