"""lightfr: on-device recommendation with binary codes. This module is the whole public surface."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

# Before anything that would fail in less words: files are locked, synced and replaced as POSIX has it.
if os.name != "posix":  # pragma: no cover - nothing here runs elsewhere
    raise ImportError(
        "lightfr runs on Linux and macOS: it needs POSIX files and locks, which this system does not have"
    )

from lightfr import errors
from lightfr.codes import ItemCodes, ItemSet, UserCode
from lightfr.errors import LightFRError
from lightfr.open_rows import OpenRows
from lightfr.ranking import Prior, Ranked, rank, rank_batch, recommend

if TYPE_CHECKING:
    from lightfr.aio import AsyncClient
    from lightfr.budget import Budget
    from lightfr.client import Client
    from lightfr.device import Device, DeviceStatus
    from lightfr.interactions import RatingScale
    from lightfr.keys import CallbackKey, FileKey, KeyProvider, PassphraseKey
    from lightfr.participation import Participation, Reason, RoundStage
    from lightfr.results import ItemIdKind, RankedBy, Recommendation, Status
    from lightfr.store import discard

__version__ = "0.1.0"

# Names that need TLS, encryption or protobuf, and the module of each: loaded when first used, so that an app which only
# ranks does not pay for them.
_LAZY = {
    "AsyncClient": "lightfr.aio",
    "Budget": "lightfr.budget",
    "CallbackKey": "lightfr.keys",
    "Client": "lightfr.client",
    "Device": "lightfr.device",
    "DeviceStatus": "lightfr.device",
    "FileKey": "lightfr.keys",
    "ItemIdKind": "lightfr.results",
    "KeyProvider": "lightfr.keys",
    "Participation": "lightfr.participation",
    "PassphraseKey": "lightfr.keys",
    "RatingScale": "lightfr.interactions",
    "Reason": "lightfr.participation",
    "RankedBy": "lightfr.results",
    "Recommendation": "lightfr.results",
    "RoundStage": "lightfr.participation",
    "Status": "lightfr.results",
    "discard": "lightfr.store",
}

__all__ = [
    "AsyncClient",
    "Budget",
    "CallbackKey",
    "Client",
    "Device",
    "DeviceStatus",
    "FileKey",
    "ItemCodes",
    "ItemIdKind",
    "ItemSet",
    "KeyProvider",
    "LightFRError",
    "OpenRows",
    "Participation",
    "PassphraseKey",
    "Prior",
    "Ranked",
    "RankedBy",
    "RatingScale",
    "Reason",
    "Recommendation",
    "RoundStage",
    "Status",
    "UserCode",
    "__version__",
    "discard",
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
