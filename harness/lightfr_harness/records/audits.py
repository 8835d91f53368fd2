"""What audits found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from lightfr_harness.records.record import Record
from lightfr_harness.records.training import Accuracy, PrivacyLossFigures


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
    search: dict[str, Any] | None = None
    figure_1: list[dict[str, Any]] | None = None
    energy: dict[str, Any] | None = None


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


@dataclass(frozen=True, kw_only=True)
class MethodsPrivacyRecord(Record):
    """`lightfr-harness audit privacy --method`."""

    kind: ClassVar[str] = "privacy-methods"

    options: dict[str, Any]
    findings: list[FindingFields]
    beside: list[FindingFields]
    beside_options: dict[str, Any] | None
    machine: str
    lightfr: str
