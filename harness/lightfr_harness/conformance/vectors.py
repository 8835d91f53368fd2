"""The aggregation vectors of vectors/v1, which the first rounds of a run replay."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from lightfr.errors import InvalidInputError

# A checkout has the vectors at its top, an installed harness carries a copy.
CHECKOUT = Path(__file__).parents[3] / "vectors" / "v1"
DEFAULT_FOLDER = CHECKOUT if CHECKOUT.is_dir() else Path(__file__).parents[1] / "vectors" / "v1"
FILE = "aggregation.json"


class VectorsError(InvalidInputError):
    """Vectors that are not where they should be."""


@dataclass(frozen=True)
class VectorRound:
    """What four devices upload, and what must come of it."""

    uploads: list[bytes]
    codes: bytes
    mean_user: list[int]
    memory: list[list[int]]


@dataclass(frozen=True)
class Vectors:
    """The first codes and some rounds on them."""

    code_bits: int
    item_count: int
    open_rows: list[bool]
    codes: bytes
    rounds: list[VectorRound]

    @classmethod
    def read(cls, folder: Path) -> Vectors:
        try:
            content = json.loads((folder / FILE).read_text())
            return cls._of(content)
        except (OSError, ValueError, KeyError) as error:
            advice = "name the folder vectors/v1 of the source tree: --vectors FOLDER"
            raise VectorsError(f"{folder / FILE} cannot be read ({type(error).__name__}): {advice}") from error

    @classmethod
    def _of(cls, content: dict) -> Vectors:  # type: ignore[type-arg]
        bitmap = bytes.fromhex(content["open_rows"])
        is_open = [bool(bitmap[row // 8] >> row % 8 & 1) for row in range(content["item_count"])]
        rounds = [
            VectorRound(
                [bytes.fromhex(upload) for upload in one["uploads"]],
                bytes.fromhex(one["codes"]),
                one["mean_user"],
                one["memory"],
            )
            for one in content["rounds"]
        ]
        return cls(content["code_bits"], content["item_count"], is_open, bytes.fromhex(content["codes"]), rounds)
