"""Records: what a command measured, as typed dataclasses that are written to JSON and read back. See docs/records.md.

A record is one JSON object. `format` is the number of its layout and `kind` says which class reads it; the other fields
are those of the class. A field whose default is None is left out where it has no value.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypedDict, TypeVar

from lightfr_harness.errors import CannotRunError

FORMAT = 1


class RecordError(CannotRunError):
    """A file that is not a record which this version reads."""


class Accuracy(TypedDict, total=False):
    """HR and NDCG among candidates, or recall and NDCG over the whole catalogue."""

    hr: float
    recall: float
    ndcg: float
    hr_device: float
    recall_device: float
    ndcg_device: float
    hr_optimistic: float
    recall_optimistic: float
    ndcg_optimistic: float
    n_users: int
    k: int


class AccuracyByCount(TypedDict):
    """Accuracy of the users whose number of ratings lies in one group."""

    ratings: str
    learned: Accuracy
    popularity: Accuracy


class AccuracyAsGiven(TypedDict):
    """Accuracy on the candidates of a prepared split as it lists them, users' own items among the negatives."""

    learned: Accuracy
    popularity: Accuracy


class Look(TypedDict):
    """Accuracy during training; `hr` is recall where the whole catalogue is ranked."""

    round: int
    hr: float
    ndcg: float


class DataShape(TypedDict):
    """How large the data set is."""

    users: int
    items: int
    train_ratings: int
    duplicates_dropped: int
    zeros_skipped: int
    negatives_dropped: int
    held_out: str


class PrivacyLossFigures(TypedDict):
    """What noise promises to a user who takes part in every round."""

    epsilon: float
    delta: float
    rho: float
    rounds: int
    honest_devices: int


class SweepPoint(TypedDict):
    """One run of a sweep: its panel, its line, its place on the axis, and its accuracy."""

    key: str
    panel: str
    line: str
    x: str
    seed: int
    hr: float
    ndcg: float
    popularity: Accuracy


class AccuracyRow(TypedDict):
    """One row of the accuracy table: means over the seeds, and what they must reach."""

    row: str
    hr: float
    ndcg: float
    hr_optimistic: float
    needed_hr: float
    needed_ndcg: float
    reached: bool
    is_goal: bool
    popularity: Accuracy
    device_rounds_per_second: float


class FindingFields(TypedDict):
    """One claim in one setting; see audits/finding.py."""

    claim: str
    source: str
    predicted: float
    measured: float | None
    unit: str
    limit: float | None
    verdict: str
    interval: list[float]
    mode: str
    at_least: bool
    note: str


class PrivacyRun(TypedDict):
    """One captured training run of the privacy audit."""

    mode: str
    cohort: int
    gate: int | None
    gate_only: bool
    upload_bytes: float
    open_rows: int
    accuracy: Accuracy
    privacy_loss: PrivacyLossFigures | None


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


@dataclass(frozen=True, kw_only=True)
class Record:
    """What all records have."""

    kind: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class TrainRecord(Record):
    """`lightfr-harness train`."""

    kind: ClassVar[str] = "train"

    hr: float | None = None
    recall: float | None = None
    ndcg: float
    hr_device: float | None = None
    recall_device: float | None = None
    ndcg_device: float
    hr_optimistic: float | None = None
    recall_optimistic: float | None = None
    ndcg_optimistic: float
    n_users: int
    k: int
    popularity: Accuracy
    by_count: list[AccuracyByCount]
    as_given: AccuracyAsGiven | None = None
    history: list[Look]
    up_bytes_per_device_round: float
    down_bytes_per_device_round: float
    device_rounds: int
    device_rounds_per_second: float | None
    dropped: int
    abandoned_rounds: int
    seconds: dict[str, float]
    data: DataShape
    open_rows: int
    privacy_loss: PrivacyLossFigures | None
    paper: dict[str, Any] | None
    options: dict[str, Any]
    isa: str
    machine: str
    lightfr: str

    @property
    def hit_rate(self) -> float:
        """HR, or recall where the whole catalogue was ranked."""
        return self.hr if self.hr is not None else self.recall or 0.0


@dataclass(frozen=True, kw_only=True)
class SweepRecord(Record):
    """`lightfr-harness sweep`."""

    kind: ClassVar[str] = "sweep"

    points: list[SweepPoint]
    rounds: int
    seeds: int
    data: str
    isa: str
    machine: str
    lightfr: str


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
class RoundsRecord(Record):
    """`lightfr-harness bench rounds`."""

    kind: ClassVar[str] = "rounds"

    bits: int
    us_by_ratings: dict[str, float]
    us_by_items: dict[str, float]
    us_by_devices: dict[str, float]
    exponent_in_ratings: float


@dataclass(frozen=True, kw_only=True)
class AccuracyRecord(Record):
    """`lightfr-harness bench accuracy`."""

    kind: ClassVar[str] = "accuracy"

    rows: list[AccuracyRow]
    seeds: list[int]


@dataclass(frozen=True, kw_only=True)
class LoadRecord(Record):
    """`lightfr-harness bench load`."""

    kind: ClassVar[str] = "load"

    units: list[LoadUnits]
    held: LoadHeld


@dataclass(frozen=True, kw_only=True)
class DeviceRecord(Record):
    """`lightfr-harness bench device`."""

    kind: ClassVar[str] = "device"

    items: int
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


@dataclass(frozen=True, kw_only=True)
class DemoRecord(Record):
    """`lightfr-harness demo`."""

    kind: ClassVar[str] = "demo"

    users: int
    items: int
    ratings: int
    popularity: Accuracy
    accuracy: list[dict[str, float]]
    device: dict[str, Any]
    upload: dict[str, Any]
    uploads: int
    rounds: int
    cohort: int
    minimum_cohort: int
    processes: int
    process_rounds: int
    process_up_bytes: int
    process_down_bytes: int
    codes_bytes: int
    seconds: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class CostRecord(Record):
    """`lightfr-harness audit cost`. An interrupted audit lacks the parts that it did not reach."""

    kind: ClassVar[str] = "cost"

    version: str
    seed: int
    scenario: dict[str, Any]
    profiles: list[str]
    machine: dict[str, Any]
    interrupted: bool
    findings: list[FindingFields]
    devices: dict[str, Any] | None = None
    baselines: dict[str, Any] | None = None
    training: dict[str, Any] | None = None
    inference: dict[str, Any] | None = None
    figure_1: list[dict[str, Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class PrivacyRecord(Record):
    """`lightfr-harness audit privacy`."""

    kind: ClassVar[str] = "privacy"

    options: dict[str, Any]
    findings: list[FindingFields]
    runs: list[PrivacyRun]
    masked_uploads: str
    isa: str
    machine: str
    lightfr: str


KINDS: dict[str, type[Record]] = {each.kind: each for each in Record.__subclasses__()}
AnyRecord = TypeVar("AnyRecord", bound=Record)


def to_dict(record: Record) -> dict[str, Any]:
    """The record as JSON has it."""
    optional = {field.name for field in fields(record) if field.default is None}
    values = {name: value for name, value in asdict(record).items() if value is not None or name not in optional}
    return {"format": FORMAT, "kind": record.kind, **values}


def from_dict(record_class: type[AnyRecord], values: Mapping[str, Any]) -> AnyRecord:
    """A record from its fields. Fields that this version does not know are left out."""
    known = [field for field in fields(record_class) if field.init]
    missing = [each.name for each in known if each.default is MISSING and each.name not in values]
    if missing:
        raise RecordError(f"the {record_class.kind} record has no field {', '.join(missing)}")
    return record_class(**{field.name: values[field.name] for field in known if field.name in values})


def write(record: Record, where: str | Path) -> None:
    """Write a record to a file, or, where the name is "-", print it on one line."""
    if str(where) == "-":
        sys.stdout.write(json.dumps(to_dict(record)) + "\n")
        return
    path = Path(where)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(to_dict(record), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise RecordError(f"cannot write the record {path} ({error.strerror}): name another file") from error


def read(path: Path) -> Record:
    """Read a record of any kind, or say what is wrong with the file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"cannot read {path} ({error.strerror}): name a record that --json wrote") from error
    except ValueError as error:
        raise RecordError(f"{path} is not JSON ({error}): name a record that --json wrote") from error
    if not isinstance(values, dict) or "format" not in values or "kind" not in values:
        raise RecordError(f"{path} is not a record: it has no format and kind. Name a file that --json wrote")
    if values["format"] != FORMAT:
        raise RecordError(
            f"{path} has record format {values['format']!r}; this version reads {FORMAT}. Write the record again"
        )
    record_class = KINDS.get(values["kind"]) if isinstance(values["kind"], str) else None
    if record_class is None:
        raise RecordError(f"{path} is a record of kind {values['kind']!r}; known kinds: {', '.join(KINDS)}")
    try:
        return from_dict(record_class, values)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error
