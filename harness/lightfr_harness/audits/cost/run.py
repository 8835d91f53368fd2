"""From options to a cost record: emulated devices, the baseline, and timings; then the findings.

A record that was interrupted holds what was measured until then, and the same options continue it. With the same seed
two records differ in times, in memory and in what follows from them.
"""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from lightfr import ItemCodes, OpenRows, UserCode, __version__, _kernel, rank
from lightfr.errors import InvalidInputError
from lightfr_harness import devices
from lightfr_harness.audits.cost import energy, findings
from lightfr_harness.audits.cost.speed import FIGURE_1_BITS, FIGURE_1_RATED
from lightfr_harness.audits.finding import bootstrap_median_ratio
from lightfr_harness.bench import fit, topk
from lightfr_harness.bench.timing import interleave_samples
from lightfr_harness.devices import Plan, Profile, Scenario
from lightfr_harness.simulation.baselines import fcf

FORMAT = 1
FIGURE_1_ITEMS = (10**3, 10**4, 10**5, 10**6, 10**7)
# Real-valued factors of more items are gigabytes; the formula alone stands then.
MOST_BASELINE_ITEMS = 1_000_000
# CPU seconds for timing one size, and turns of each contender at least; the largest size takes seconds a turn.
TIMING_SECONDS, TURNS = 0.1, 1
TOP = 10

Record = dict[str, Any]
# Called with what is being done and the share of all work that is done.
Progress = Callable[[str, float], None]
Share = Callable[[float], None]


@dataclass(frozen=True)
class CostOptions:
    """What a cost audit is asked for."""

    scenario: Scenario
    profiles: tuple[Profile, ...]
    plan: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        # Findings know a profile by its name, and judge all devices of that name by one profile's figures.
        figures = {profile.name: profile for profile in self.profiles}
        for profile in self.profiles:
            if figures[profile.name] != profile:
                raise InvalidInputError(f"--profile: two different profiles are called '{profile.name}': rename a file")


@dataclass(frozen=True)
class _Part:
    """A part of the record: how long it takes beside the others, about, and how it is measured."""

    name: str
    weight: float
    measure: Callable[[CostOptions, Record | None, Share], Any]


def run(options: CostOptions, progress: Progress = lambda what, share: None, earlier: Record | None = None) -> Record:
    """Measure and judge. What `earlier`, an interrupted record of the same options, has is not measured again."""
    record, done = _begun(options), 0.0
    earlier = earlier if earlier is not None and continues(earlier, options) else {}
    whole = sum(part.weight for part in PARTS)
    try:
        for part in PARTS:

            def tell(share: float, part: _Part = part, done: float = done) -> None:
                progress(part.name.replace("_", " "), (done + share * part.weight) / whole)

            tell(0.0)
            known = earlier.get(part.name)
            is_known = known is not None and _is_whole(known)
            record[part.name] = known if is_known else part.measure(options, known, tell)
            if not _is_whole(record[part.name]):
                raise KeyboardInterrupt
            done += part.weight
            tell(1.0)
    except KeyboardInterrupt:
        record["interrupted"] = True
    record["energy"] = energy.estimates(record.get("devices", {}).get("devices", []))
    record["findings"] = [finding.record() for finding in findings.audit(record)]
    return record


def continues(earlier: Record, options: CostOptions) -> bool:
    """Whether an earlier record is the interrupted beginning of this audit. A profile may have got other figures."""
    begun, figures = _begun(options), [profile.record() for profile in options.profiles]
    return (
        bool(earlier.get("interrupted"))
        and all(
            earlier.get(name) == begun[name] for name in ("format", "kind", "version", "seed", "scenario", "profiles")
        )
        and all(device["profile"] in figures for device in earlier.get("devices", {}).get("devices", []))
    )


def _begun(options: CostOptions) -> Record:
    return {
        "format": FORMAT,
        "kind": "cost",
        "version": __version__,
        "seed": options.plan.seed,
        "scenario": options.scenario.record(),
        "profiles": [profile.name for profile in options.profiles],
        "machine": {"isa": _kernel.isa_name(), "python": platform.python_version()},
        "interrupted": False,
    }


def _is_whole(measured: Any) -> bool:
    return not (isinstance(measured, dict) and measured.get("interrupted"))


def _baselines(options: CostOptions, earlier: Record | None, tell: Share) -> Record:
    scenario = options.scenario
    if scenario.items > MOST_BASELINE_ITEMS:
        return {}
    rated, published = (
        fcf.cost(scenario.items, scenario.ratings, options.plan.seed, unrated_weight=weight) for weight in (0.0, 1.0)
    )
    return {
        "fcf": {
            "storage_bytes": rated.storage_bytes,
            "round_bytes": rated.down_bytes + rated.up_bytes,
            "published_round_bytes": published.down_bytes + published.up_bytes,
        }
    }


def _figure_1(options: CostOptions, earlier: Record | None, tell: Share) -> list[Record]:
    points = []
    for items in FIGURE_1_ITEMS:
        points.append(figure_1_point(items, options.plan.seed))
        tell(len(points) / len(FIGURE_1_ITEMS))
    return points


def figure_1_point(items: int, seed: int) -> Record:
    """All three panels of the paper's Figure 1 at one number of items."""
    sizes = {
        "storage_bytes": topk.storage_bytes(items, FIGURE_1_BITS),
        "communication_bytes": topk.communication_bytes(items, FIGURE_1_RATED, FIGURE_1_BITS),
    }
    return _timed(items, FIGURE_1_BITS, seed) | sizes


def _timed(items: int, bits: int, seed: int) -> Record:
    """How many times faster a top 10 from codes is than one from real values."""
    samples = topk.against_real_values(items, bits, seed, TIMING_SECONDS, TURNS)
    real, codes = samples["real values"], samples["codes"]
    return {
        "items": items,
        "bits": bits,
        "codes_ns": statistics.median(codes),
        "real_ns": statistics.median(real),
        "ratio": statistics.median(real) / statistics.median(codes),
        "ratio_interval": bootstrap_median_ratio(real, codes),
    }


def open_and_every_row(scenario: Scenario, seed: int) -> tuple[ItemCodes, ItemCodes]:
    """The same random codes twice: the closed items share one row, or have one each."""
    rng, n_open = np.random.default_rng(seed), scenario.open_rows or scenario.items
    rows = rng.integers(0, 256, (n_open + 1, scenario.bits // 8), dtype=np.uint8)
    full = rows[np.minimum(np.arange(scenario.items), n_open)]
    bitmap = np.packbits(np.arange(scenario.items) < n_open, bitorder="little").tobytes()
    opened = ItemCodes(rows.tobytes(), scenario.bits, OpenRows(bitmap, scenario.items))
    return opened, ItemCodes(full.tobytes(), scenario.bits)


def _search(scenario: Scenario, seed: int) -> Record:
    """How many times faster a top 10 is when the closed items are one row, and not one each."""
    (opened, full), user = open_and_every_row(scenario, seed), UserCode.random(scenario.bits)
    contenders: dict[str, Callable[[], object]] = {
        "open rows": partial(rank, user, opened, TOP),
        "every item": partial(rank, user, full, TOP),
    }
    samples = interleave_samples(contenders, TIMING_SECONDS, TURNS)
    every, own = samples["every item"], samples["open rows"]
    return {
        "rows": (scenario.open_rows or scenario.items) + 1,
        "items": scenario.items,
        "open_rows_ns": statistics.median(own),
        "every_item_ns": statistics.median(every),
        "ratio": statistics.median(every) / statistics.median(own),
        "ratio_interval": bootstrap_median_ratio(every, own),
    }


PARTS = (
    _Part(
        "devices",
        12,
        lambda asked, earlier, tell: devices.run(
            asked.scenario, asked.profiles, lambda what, share: tell(share), asked.plan, resume=earlier
        ),
    ),
    _Part("baselines", 1, _baselines),
    _Part("training", 4, lambda asked, earlier, tell: fit.scaling(asked.plan.seed, tell)),
    _Part(
        "inference",
        1,
        lambda asked, earlier, tell: _timed(asked.scenario.items, asked.scenario.bits, asked.plan.seed),
    ),
    _Part("search", 1, lambda asked, earlier, tell: _search(asked.scenario, asked.plan.seed)),
    _Part("figure_1", 8, _figure_1),
)
