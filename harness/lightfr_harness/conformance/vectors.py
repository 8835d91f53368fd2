"""The aggregation vectors of vectors/v1, which the first rounds of a run replay."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from lightfr_harness.errors import CannotRunError

FILE = "aggregation.json"


def find_vectors(checkout: Path) -> Path:
    """The checkout's vectors/v1 where there is one, else the copy that an installed harness carries."""
    folder = checkout / "vectors" / "v1"
    return folder if folder.is_dir() else Path(str(files("lightfr_harness") / "vectors" / "v1"))


DEFAULT_FOLDER = find_vectors(Path(__file__).parents[3])


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
            return cls._of(json.loads((folder / FILE).read_text()))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CannotRunError(
                f"the vectors {folder / FILE} cannot be read ({type(error).__name__});"
                " name a folder that holds them, such as vectors/v1 of the source tree: --vectors FOLDER"
            ) from error

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Vectors:
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
