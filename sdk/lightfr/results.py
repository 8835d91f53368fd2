"""What a client returns."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple, TypedDict


class Recommendation(NamedTuple):
    """An item to show.

    Similarity is the share of bits in which its code equals the user's, in [0, 1]. The score is what items are ranked
    by: equal bits less other bits, and what popularity adds.
    """

    item_id: str | int
    similarity: float
    score: int


class RankedBy(StrEnum):
    """What recommendations go by at the moment."""

    # The codes, in the way that an evaluation by many devices has chosen.
    CODES = "codes"
    # Popularity, until the codes are known to be better.
    POPULARITY = "popularity"
    # Codes that nobody has evaluated, and that may know nothing yet.
    UNKNOWN = "unknown"


class ItemIdKind(StrEnum):
    """What the item ids of a catalogue are."""

    STR = "str"
    INT = "int"


class Status(NamedTuple):
    """What an app may show about this device. Counts only."""

    model_version: int
    item_count: int
    code_bits: int
    # None before the first sync.
    item_id_kind: ItemIdKind | None
    rating_count: int
    # Ratings of items that the catalogue does not have: they wait for one that has them. 0 before the first sync.
    unknown_ratings: int
    rounds: int
    upload_pending: bool
    # UNKNOWN before the first sync too.
    ranked_by: RankedBy
    # Devices that are in a secure round with this one, as the server last told. None: no round, or not told yet.
    others_in_round: int | None = None


class ExportedRating(TypedDict):
    """One rating of an export."""

    item_id: str | int
    rating: float


class ExportedData(TypedDict):
    """All that is kept about a user, ready for JSON; codes and messages are in hexadecimal."""

    ratings: list[ExportedRating]
    rating_scale: list[float]
    # Ids of the items that shall not be shown.
    hidden: list[str | int]
    user_code: str
    rounds: int
    pending_upload: str
    # What was given of the budget: when the device took part, and how much privacy was lost (None: no bound is known).
    spent: dict[str, Any]
