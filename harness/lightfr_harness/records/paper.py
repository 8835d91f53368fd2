"""What `lightfr-harness paper` measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

from lightfr_harness.records.record import Record


class SeedFigures(TypedDict):
    """One final run: its accuracy on the test, and what it took."""

    seed: int
    hr: float
    ndcg: float
    cpu_seconds: float


class PaperRow(TypedDict):
    """One method with one choice of constants under one protocol."""

    protocol: str
    method: str
    title: str
    family: str
    settings: str
    constants: dict[str, float]
    steps: int
    hr: float | None
    ndcg: float | None
    by_seed: list[SeedFigures]
    validation_ndcg: float | None
    cpu_seconds: float | None
    tuning_cpu_seconds: float | None
    down_bytes: float | None
    up_bytes: float | None
    stated_hr: float | None
    stated_ndcg: float | None
    outcome: str
    note: str


@dataclass(frozen=True, kw_only=True)
class PaperAccuracyRecord(Record):
    """`lightfr-harness paper accuracy`."""

    kind: ClassVar[str] = "paper-accuracy"

    rows: list[PaperRow]
    data: str
    users: int
    items: int
    ratings: int
    held_out: dict[str, str]
    seeds: int
    quick: bool
    machine: str
    lightfr: str
