"""What `lightfr-harness paper` measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from lightfr_harness.records.audits import FindingFields
from lightfr_harness.records.record import Record
from lightfr_harness.records.training import SweepPoint


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
    # Of the paper's four, the one that this is.
    dataset: str = ""


class PaperCostRow(TypedDict):
    """What one device of a method pays, measured, beside the paper's formula. Times are those of one top 10."""

    name: str
    formula: str
    storage_bytes: float
    storage_formula_bytes: float
    down_bytes: float
    up_bytes: float
    round_formula_bytes: float
    median_ns: float | None
    min_ns: float | None
    ratio: float | None
    ratio_interval: list[float]
    min_ratio: float | None
    note: str


@dataclass(frozen=True, kw_only=True)
class PaperCostsRecord(Record):
    """`lightfr-harness paper costs`."""

    kind: ClassVar[str] = "paper-costs"

    rows: list[PaperCostRow]
    findings: list[FindingFields]
    dataset: str
    items: int
    ratings: int
    bits: int
    open_rows: int
    seed: int
    isa: str
    machine: str
    lightfr: str


class PaperSweep(TypedDict):
    """Figures 4 to 6 of one data set."""

    data: str
    points: list[SweepPoint]


@dataclass(frozen=True, kw_only=True)
class PaperFiguresRecord(Record):
    """`lightfr-harness paper figures`."""

    kind: ClassVar[str] = "paper-figures"

    # Each has the fields of a point of figure_1 in a cost record.
    figure_1: list[dict[str, Any]]
    sweeps: list[PaperSweep]
    findings: list[FindingFields]
    rounds: int
    seeds: int
    isa: str
    machine: str
    lightfr: str
