"""What training gave: accuracy, and the records of one run, of a sweep, of the accuracy table and of the demo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from lightfr_harness.records.record import Record


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
    liked_hr: float
    liked_ndcg: float
    disliked_hr: float
    n_liked: int
    n_disliked: int
    n_users: int
    k: int


class RankingFields(TypedDict):
    """One way to rank; see sdk/lightfr/rankings.py."""

    by: str
    prior: float
    recency: str
    refine: bool


class CandidateFigures(TypedDict):
    """One candidate in one group of users: what the fleet said about it, and what it would have given in the test."""

    ranking: RankingFields
    evaluated_net: float
    test_net: float
    test_hr: float
    test_ndcg: float


class _ByCount(TypedDict):
    ratings: str
    learned: Accuracy
    popularity: Accuracy


class AccuracyByCount(_ByCount, total=False):
    """Accuracy of the users whose number of ratings lies in one group, and how they rank."""

    ranking: RankingFields
    evaluated_opinions: int
    candidates: list[CandidateFigures]


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


class EngineFigures(TypedDict):
    """Where the devices of a run lived: in `workers` processes of Ray, or, if there are none, in the run's own.

    Rounds by the clock on the wall include what a busy machine lets them wait. The memory of workers includes what they
    share.
    """

    workers: int
    device_rounds_per_wall_second: float | None
    worker_cpu_seconds: list[float]
    worker_peak_bytes: list[int]
    peak_bytes: int


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
    liked_hr: float | None = None
    liked_ndcg: float | None = None
    disliked_hr: float | None = None
    n_liked: int | None = None
    n_disliked: int | None = None
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
    engine: EngineFigures | None = None
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
class AccuracyRecord(Record):
    """`lightfr-harness bench accuracy`."""

    kind: ClassVar[str] = "accuracy"

    rows: list[AccuracyRow]
    seeds: list[int]


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
