"""What a day of a large fleet takes, by simulation, and what a small one took for real."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from lightfr_harness.records.record import Record


class ScaleHour(TypedDict):
    """One hour: check-ins and finished device rounds a second, busy cores, busy share of the database."""

    check_ins: float
    device_rounds: float
    cores: float
    database: float


class ScaleAnswer(TypedDict):
    """What a fleet takes in a day, or in the time that was simulated."""

    device_rounds: int
    check_ins: int
    check_ins_per_place: float
    rounds: int
    round_seconds_p50: float
    round_seconds_p95: float
    cohorts: int
    abandoned_cohorts: int
    wait_seconds_p50: float
    wait_seconds_p95: float
    mean_check_ins_per_second: float
    peak_check_ins_per_second: float
    peak_over_hour: float
    mean_cores: float
    busiest_minute_cores: float
    replicas: int
    database_busy_mean: float
    database_busy_minute: float
    inserts_per_second: float
    up_bytes_per_second: float
    up_bytes_per_device_round: float
    down_bytes_whole: float
    down_bytes_delta: float
    hours: list[ScaleHour]


class RealFigures(TypedDict):
    """What both a real run and a simulation of the same scenario say."""

    placed: float
    contributions: float
    check_ins: float
    rounds: float
    round_seconds_p50: float
    last_place_seconds: float
    peak_check_ins_per_second: float
    cpu_ms_per_device_round: float


@dataclass(frozen=True, kw_only=True)
class ScaleRecord(Record):
    """`lightfr-harness simulate scale`."""

    kind: ClassVar[str] = "scale"

    scenario: dict[str, Any]
    constants: dict[str, Any]
    answer: ScaleAnswer
    seconds: float
    peak_bytes: int


@dataclass(frozen=True, kw_only=True)
class ScaleRealRecord(Record):
    """`lightfr-harness simulate real`."""

    kind: ClassVar[str] = "scale-real"

    scenario: dict[str, Any]
    constants: dict[str, Any]
    real: RealFigures
    simulated: RealFigures
    deviation: RealFigures
    written_bytes_per_device_round: float
    load_average: float
