"""What benchmarks measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from lightfr_harness.records.record import Record


class LoadUnits(TypedDict):
    """New connections on a schedule: each checks in and uploads."""

    asked_per_second: float
    accepted_per_second: float
    accepted: int
    errors: dict[str, int]
    told_to_come_back: int
    request_bytes: int
    seconds: float
    latency_ms: dict[str, float]
    client_cpu_ms_each: float
    server_cpu_ms_each: float
    server_rss_bytes: int
    load_average: float


class LoadHeld(TypedDict):
    """Connections that stay open."""

    connections: int
    open_at_the_server: int
    check_ins: int
    turns: int
    errors: int
    server_rss_before_bytes: int
    server_rss_bytes: int
    kilobytes_each: float


class LoadRound(TypedDict):
    """A masked round under load. Latencies are those of deliveries; nobody waits for the next step in them."""

    server: str
    devices: int
    uploaded: int
    dropped: int
    errors: dict[str, int]
    request_bytes: int
    seconds: float
    latency_ms: dict[str, float]
    client_cpu_ms_each: float
    server_cpu_ms_each: float
    database_cpu_ms_each: float
    server_written_bytes_each: float
    server_peak_rss_bytes: int
    load_average: float


@dataclass(frozen=True, kw_only=True)
class TopkRecord(Record):
    """`lightfr-harness bench topk`."""

    kind: ClassVar[str] = "topk"

    items: int
    bits: int
    batch: int
    codes: str
    k: int
    seed: int
    isa: str
    machine: str
    faiss_ratio: float
    float64_ratio: float
    floor_ratio: float
    faiss_ratio_median: float
    float64_ratio_median: float
    floor_ratio_median: float
    ours_ns: float
    ours_median_ns: float
    floor_ns: float
    floor_median_ns: float
    faiss_ns: float
    faiss_median_ns: float
    float64_ns: float
    float64_median_ns: float
    repeats: int


@dataclass(frozen=True, kw_only=True)
class Figure1Record(Record):
    """`lightfr-harness bench report`: the table of top-K timings, and the paper's Figure 1."""

    kind: ClassVar[str] = "figure-1"

    # Each has the fields of a topk record.
    timings: list[dict[str, Any]]
    figure_bits: int
    storage_bytes: list[dict[str, float]]
    communication_bytes: list[dict[str, float]]


@dataclass(frozen=True, kw_only=True)
class FitRecord(Record):
    """`lightfr-harness bench fit`."""

    kind: ClassVar[str] = "fit"

    rated: int
    bits: int
    numpy_ratio: float
    numpy_ratio_median: float
    ours_ns: float
    repeats: int


@dataclass(frozen=True, kw_only=True)
class OpenRowsRecord(Record):
    """`lightfr-harness bench open-rows`."""

    kind: ClassVar[str] = "open-rows"

    items: int
    open_items: int
    bits: int
    bitmap: str
    k: int
    seed: int
    ratio: float
    ratio_median: float
    open_ns: float
    full_ns: float
    prior_ratio: float
    prior_ratio_median: float
    prior_open_ns: float
    prior_full_ns: float
    repeats: int


@dataclass(frozen=True, kw_only=True)
class RoundsRecord(Record):
    """`lightfr-harness bench rounds`."""

    kind: ClassVar[str] = "rounds"

    bits: int
    us_by_ratings: dict[str, float]
    us_by_items: dict[str, float]
    us_by_devices: dict[str, float]
    exponent_in_ratings: float


@dataclass(frozen=True, kw_only=True)
class LoadRecord(Record):
    """`lightfr-harness bench load`."""

    kind: ClassVar[str] = "load"

    units: list[LoadUnits]
    held: LoadHeld


@dataclass(frozen=True, kw_only=True)
class SecureLoadRecord(Record):
    """`lightfr-harness bench load --privacy secagg`."""

    kind: ClassVar[str] = "load-secagg"

    cohort: int
    open_rows: int
    bits: int
    dropout: float
    processes: int
    rounds: list[LoadRound]


@dataclass(frozen=True, kw_only=True)
class DeviceRecord(Record):
    """`lightfr-harness bench device`."""

    kind: ClassVar[str] = "device"

    items: int
    open_items: int
    bits: int
    ratings: int
    import_cpu_ms_min: float
    import_cpu_ms_median: float
    bare_rss_bytes: int
    peak_rss_bytes: int
    most_threads: int
    loaded: list[str]
    codes_bytes: int
    catalogue_bytes: int
    first_sync_bytes: int
    first_sync_over_codes_bytes: int
    first_sync_limit_bytes: int
    upload_payload_bytes: int
    upload_overhead_bytes: int
    changed_rows_bytes: int
    delta_sync_bytes: int
    delta_ratio: float
    phases: dict[str, Any]
    secure: dict[str, Any]
