"""What got worse between two records of one kind, beyond noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from statistics import mean
from typing import Any

from lightfr_harness.records import (
    AccuracyRecord,
    CostRecord,
    DemoRecord,
    DeviceRecord,
    Figure1Record,
    FindingFields,
    FitRecord,
    LoadRecord,
    MethodsPrivacyRecord,
    OpenRowsRecord,
    PaperAccuracyRecord,
    PaperCostsRecord,
    PaperFiguresRecord,
    PrivacyRecord,
    Record,
    RecordError,
    RoundsRecord,
    ScaleRealRecord,
    ScaleRecord,
    SecureLoadRecord,
    SweepRecord,
    TopkRecord,
    TrainRecord,
)

WORSE, BETTER, SAME, NEW, GONE = "worse", "better", "same", "new", "gone"
BROKEN = "broken"
# The change of a figure, as a share of it, that is noise. Bytes are counted, and move only by what TLS adds. Accuracy
# is the same for the same seed, and differs by about 1 % between seeds. The rest is timed on a shared machine: two runs
# of the same code were seen 46 % apart in a latency and 34 % in a ratio of times.
NOISE = {"bytes": 0.01, "bytes of memory": 0.05, "accuracy": 0.02, "ms": 1.0, "per second": 0.5}
NOISE |= {"times": 0.5, "times the floor": 0.5}
OTHER_NOISE = 0.1
# Figures of which more is better, by their unit.
MORE_IS_BETTER = ("times", "accuracy", "per second")


@dataclass(frozen=True)
class Change:
    """One claim in one setting, before and after."""

    claim: str
    mode: str
    unit: str
    before: FindingFields | None
    after: FindingFields | None
    what: str


def compare(before: Record, after: Record) -> list[Change]:
    """Every figure of either record, in the order of the second; what only the first has comes last."""
    if before.kind != after.kind:
        raise RecordError(
            f"a {before.kind} record cannot be compared with a {after.kind} record: name two records of one kind"
        )
    old, new = (_by_name(findings_of(record)) for record in (before, after))
    pairs = [(old.get(key), finding) for key, finding in new.items()]
    gone = [(finding, None) for key, finding in old.items() if key not in new]
    changes = []
    for one, other in [*pairs, *gone]:
        known = other or one
        if known is not None:
            changes.append(Change(known["claim"], known["mode"], known["unit"], one, other, _what(one, other)))
    return changes


def _by_name(findings: list[FindingFields]) -> dict[tuple[str, str, int], FindingFields]:
    """By claim, setting and place among those of both: two data sets may have the same name."""
    found: dict[tuple[str, str, int], FindingFields] = {}
    for each in findings:
        place = next(n for n in count() if (each["claim"], each["mode"], n) not in found)
        found[each["claim"], each["mode"], place] = each
    return found


def worse(changes: list[Change]) -> list[Change]:
    """What got worse, and what is broken and was not there before."""
    return [c for c in changes if c.what == WORSE or (c.what == NEW and c.after and c.after["verdict"] == BROKEN)]


def _what(before: FindingFields | None, after: FindingFields | None) -> str:
    old, new = (each["measured"] if each else None for each in (before, after))
    if before and after and old is None and new is None:
        return SAME
    if before is None or old is None:
        return NEW
    if after is None or new is None:
        return GONE
    if (before["verdict"] == BROKEN) != (after["verdict"] == BROKEN):
        return WORSE if after["verdict"] == BROKEN else BETTER
    share = NOISE.get(after["unit"], OTHER_NOISE)
    if abs(new - old) <= share * max(abs(old), 1e-12):
        return SAME
    one, other = before["interval"], after["interval"]
    has_width = one[0] < one[1] or other[0] < other[1]
    if has_width and one[0] <= other[1] and other[0] <= one[1]:
        return SAME
    more_is_better = after["at_least"] or after["unit"] in MORE_IS_BETTER
    return BETTER if (new > old) == more_is_better else WORSE


def findings_of(record: Record) -> list[FindingFields]:
    """An audit's findings, or the figures of another record in the same form."""
    if isinstance(record, WITH_FINDINGS):
        return record.findings
    return [_finding(*figure) for figure in FIGURES[type(record)](record)]


def _finding(claim: str, mode: str, measured: float, unit: str) -> FindingFields:
    return {
        "claim": claim,
        "source": "",
        "predicted": measured,
        "measured": measured,
        "unit": unit,
        "limit": None,
        "verdict": "for information",
        "interval": [measured, measured],
        "mode": mode,
        "at_least": False,
        "note": "",
    }


# Claim, setting, value and unit of each figure that is compared.
Figures = list[tuple[str, str, float, str]]


def _train(record: TrainRecord) -> Figures:
    name = "HR@10" if record.hr is not None else "recall@10"
    figures = [
        (name, "learned codes", record.hit_rate, "accuracy"),
        ("NDCG@10", "learned codes", record.ndcg, "accuracy"),
        *_opinions(record),
        ("a device round", "bytes up", record.up_bytes_per_device_round, "bytes"),
        ("a device round", "bytes down", record.down_bytes_per_device_round, "bytes"),
    ]
    if record.device_rounds_per_second:
        figures.append(("speed", "device rounds a CPU second", record.device_rounds_per_second, "per second"))
    if record.privacy_loss:
        figures.append(("epsilon", f"delta {record.privacy_loss['delta']:g}", record.privacy_loss["epsilon"], ""))
    return figures


def _opinions(record: TrainRecord) -> Figures:
    """Of liked items more is better. Of disliked ones less is: told as the share that is kept out of the list."""
    figures: Figures = []
    if record.liked_hr is not None:
        figures.append(("HR@10 of liked items", "learned codes", record.liked_hr, "accuracy"))
    if record.disliked_hr is not None:
        figures.append(("disliked items kept out", "learned codes", 1 - record.disliked_hr, "accuracy"))
    return figures


def _sweep(record: SweepRecord) -> Figures:
    settings = dict.fromkeys((point["panel"], point["line"], point["x"]) for point in record.points)
    figures = []
    for setting in settings:
        runs = [point for point in record.points if (point["panel"], point["line"], point["x"]) == setting]
        mode = f"{setting[0]} {setting[2]}, {setting[1]}"
        figures.append(("HR@10", mode, mean(point["hr"] for point in runs), "accuracy"))
        figures.append(("NDCG@10", mode, mean(point["ndcg"] for point in runs), "accuracy"))
    return figures


def _topk(record: TopkRecord) -> Figures:
    mode = f"{record.items:,} items, {record.bits} bits, {record.batch} at a time"
    return [
        ("faster than faiss", mode, record.faiss_ratio, "times"),
        ("faster than float64", mode, record.float64_ratio, "times"),
        ("slower than reading the codes", mode, record.floor_ratio, "times the floor"),
    ]


def _rounds(record: RoundsRecord) -> Figures:
    times = {"ratings": record.us_by_ratings, "items": record.us_by_items, "devices": record.us_by_devices}
    figures = [
        ("CPU time of a device round", f"{size} {name}", us / 1000, "ms")
        for name, by_size in times.items()
        for size, us in by_size.items()
    ]
    return [*figures, ("growth", "exponent of the ratings", record.exponent_in_ratings, "")]


def _accuracy(record: AccuracyRecord) -> Figures:
    return [
        (name, row["row"], value, "accuracy")
        for row in record.rows
        for name, value in (("HR@10", row["hr"]), ("NDCG@10", row["ndcg"]))
    ]


def _paper_accuracy(record: PaperAccuracyRecord) -> Figures:
    """Rows without figures are left out: where a method diverges now, its figure is gone."""
    return [
        (name, f"{row['protocol']}, {row['method']}, {row['settings']}", value, "accuracy")
        for row in record.rows
        for name, value in (("HR@10", row["hr"]), ("NDCG@10", row["ndcg"]))
        if value is not None
    ]


def _load(record: LoadRecord) -> Figures:
    figures: Figures = []
    for place, run in enumerate(record.units, start=1):
        mode = f"run {place}"
        figures.append(("uploads accepted", mode, run["accepted_per_second"], "per second"))
        figures.append(("uploads failed", mode, sum(run["errors"].values()), ""))
        figures += [(f"latency, {name}", mode, run["latency_ms"][name], "ms") for name in ("p50", "p95", "p99")]
        figures.append(("server CPU of an upload", mode, run["server_cpu_ms_each"], "ms"))
    return [*figures, ("memory of a kept connection", "server", 1000 * record.held["kilobytes_each"], "bytes")]


def _secure_load(record: SecureLoadRecord) -> Figures:
    figures: Figures = []
    for place, one in enumerate(record.rounds, start=1):
        mode = f"{one['server']}, round {place}"
        figures.append(("devices failed", mode, sum(one["errors"].values()), ""))
        figures.append(("latency of a delivery, p99", mode, one["latency_ms"]["p99"], "ms"))
        figures.append(("server CPU of a device", mode, one["server_cpu_ms_each"], "ms"))
        figures.append(("peak memory", mode, one["server_peak_rss_bytes"], "bytes"))
    return figures


def _device(record: DeviceRecord) -> Figures:
    return [
        ("peak memory", "session in the clear", record.peak_rss_bytes, "bytes of memory"),
        ("CPU time of import lightfr", "minimum", record.import_cpu_ms_min, "ms"),
        ("first sync", "above codes and catalogue", record.first_sync_over_codes_bytes, "bytes"),
        ("upload", "above its payload", record.upload_overhead_bytes, "bytes"),
        ("delta sync", "against the changed rows", record.delta_ratio, ""),
        ("peak memory", "secure round", record.secure["peak_rss_bytes"], "bytes of memory"),
        ("CPU time of a round", "secure round", record.secure["cpu_ms"], "ms"),
        ("bytes up", "secure round", record.secure["up_bytes"], "bytes"),
    ]


def _demo(record: DemoRecord) -> Figures:
    uploads = max(1, record.process_rounds)
    return [
        ("HR@10", "learned codes", record.accuracy[-1]["hr"], "accuracy"),
        ("NDCG@10", "learned codes", record.accuracy[-1]["ndcg"], "accuracy"),
        ("an upload", "bytes up", record.process_up_bytes / uploads, "bytes"),
        ("an upload", "bytes down", record.process_down_bytes / uploads, "bytes"),
        ("time of the demo", "all", 1000 * record.seconds["all"], "ms"),
    ]


def _scale(record: ScaleRecord) -> Figures:
    """Where no round ended, how long one takes is gone: it is not 0."""
    answer = record.answer
    return [
        ("busiest minute", "cores", answer["busiest_minute_cores"], ""),
        ("busiest minute", "database", answer["database_busy_minute"], ""),
        *([("a round", "median", 1000 * answer["round_seconds_p50"], "ms")] if answer["rounds"] else []),
        ("check-ins", "for each place", answer["check_ins_per_place"], ""),
        ("check-ins", "most over the mean of the hour", answer["peak_over_hour"], ""),
    ]


# Audits, which have figures with their verdicts already.
WITH_FINDINGS = (CostRecord, PrivacyRecord, MethodsPrivacyRecord, PaperCostsRecord, PaperFiguresRecord)
FIGURES: dict[type[Record], Callable[[Any], Figures]] = {
    TrainRecord: _train,
    SweepRecord: _sweep,
    TopkRecord: _topk,
    Figure1Record: lambda record: [each for timing in record.timings for each in _topk(TopkRecord(**timing))],
    FitRecord: lambda record: [
        ("faster than numpy", f"{record.rated} ratings, {record.bits} bits", record.numpy_ratio, "times")
    ],
    OpenRowsRecord: lambda record: [
        ("open rows against all rows", f"{record.open_items:,} of {record.items:,} items open", record.ratio, "times"),
        ("the same with a prior", f"{record.open_items:,} of {record.items:,} items open", record.prior_ratio, "times"),
    ],
    RoundsRecord: _rounds,
    AccuracyRecord: _accuracy,
    LoadRecord: _load,
    SecureLoadRecord: _secure_load,
    DeviceRecord: _device,
    DemoRecord: _demo,
    PaperAccuracyRecord: _paper_accuracy,
    ScaleRecord: _scale,
    ScaleRealRecord: lambda record: [
        ("server CPU of a device round", "real", record.real["cpu_ms_per_device_round"], "ms"),
        ("server CPU of a check-in", "real", record.constants["check_in_cpu_ms"], "ms"),
    ],
}
