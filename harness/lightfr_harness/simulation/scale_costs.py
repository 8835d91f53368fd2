"""What a day of a fleet costs: cores of coordinators, database, bytes. Arithmetic on simulated events and constants."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lightfr_harness.errors import CannotRunError
from lightfr_harness.records import ScaleAnswer, ScaleHour
from lightfr_harness.server.coordinator.phases import PHASES, UPLOADING
from lightfr_harness.simulation.scale import DAY, Events, Scenario

Floats = npt.NDArray[np.float64]
# A core of a coordinator is kept busy for at most this share of the time, so that queues stay short.
BUSY = 0.7
# Ten seconds: short enough to see a herd, long enough that chance does not look like one.
HERD_SECONDS = 10
# No constant is larger: sums of a day stay finite.
MOST = 1e12


@dataclass(frozen=True)
class Constants:
    """What was measured; docs/scale.md says how. CPU is that of the coordinator, for one device."""

    # A new TLS connection with a check-in that is turned away.
    check_in_cpu_ms: float = 3.45
    # All deliveries and polls of a device, by phase; adding up and unmasking is in the last.
    phase_cpu_ms: tuple[float, ...] = (2.0, 2.2, 1.2, 1.2, 3.0, 1.2, 1.2)
    # Bytes of a device's request, by phase.
    phase_bytes: tuple[int, ...] = (258, 6_300, 100, 84, 176_200, 84, 2_400)
    # With so many open rows of so many bits: the upload grows with both.
    open_rows: int = 2000
    code_bits: int = 64
    # Durable inserts a second of PostgreSQL, by bytes of a row.
    inserts_per_second: tuple[tuple[int, float], ...] = ((2_700, 4_950.0), (105_000, 1_600.0), (180_000, 1_220.0))
    # Of a version's codes, what a device fetches that has the version before.
    delta_share: float = 0.23

    @classmethod
    def read(cls, path: Path) -> Constants:
        """From a JSON object with some of these fields, or from a record that has it as `constants`."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            given: dict[str, Any] = values.get("constants", values)
            known = {field.name for field in fields(cls)}
            unknown = set(given) - known
            if unknown:
                raise CannotRunError(f"{path} has constants that are not known: {', '.join(sorted(unknown))}")
            constants = cls(**{name: _as_tuple(value) for name, value in given.items()})
            constants.require_sound()
            return constants
        except OSError as error:
            raise CannotRunError(f"cannot read the constants {path} ({error.strerror}): name a JSON file") from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise CannotRunError(f"{path} is not a JSON object of constants: see docs/scale.md") from error

    def require_sound(self) -> None:
        """Raise ValueError or TypeError unless costs can be reckoned with these."""
        sizes, rates = zip(*self.inserts_per_second, strict=True)
        divisors = [self.open_rows, self.code_bits, *sizes, *rates]
        costs = [self.check_in_cpu_ms, self.delta_share, *self.phase_cpu_ms, *self.phase_bytes]
        is_whole = len(self.phase_cpu_ms) == len(self.phase_bytes) == len(PHASES) and len(set(sizes)) > 1
        within = all(1 / MOST <= each <= MOST for each in divisors) and all(0 <= each <= MOST for each in costs)
        if not is_whole or not within:
            raise ValueError("a constant is missing, negative, too large, or zero where it is divided by")

    def insert_seconds(self, size: float) -> float:
        """Of the database, for one row: between the measured sizes on a line, beyond them on the nearest line."""
        points = sorted(self.inserts_per_second)
        sizes, seconds = np.array([bytes_ for bytes_, _ in points]), np.array([1 / rate for _, rate in points])
        at = min(max(int(np.searchsorted(sizes, size)), 1), len(sizes) - 1)
        slope = (seconds[at] - seconds[at - 1]) / (sizes[at] - sizes[at - 1])
        return float(max(seconds[at - 1] + slope * (size - sizes[at - 1]), 0.0))

    def of_rows(self, open_rows: int, code_bits: int) -> Constants:
        """The same for another matrix: the upload's bytes and CPU grow with its numbers."""
        factor = open_rows * code_bits / (self.open_rows * self.code_bits)
        cpu, sizes, at = list(self.phase_cpu_ms), list(self.phase_bytes), UPLOADING - 1
        cpu[at], sizes[at] = cpu[at] * factor, round(sizes[at] * factor)
        changed = {
            "phase_cpu_ms": tuple(cpu),
            "phase_bytes": tuple(sizes),
            "open_rows": open_rows,
            "code_bits": code_bits,
        }
        return Constants(**{**asdict(self), **changed})


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(each) for each in value) if isinstance(value, list) else value


def answer(scenario: Scenario, events: Events, constants: Constants) -> ScaleAnswer:
    """What the last day, or all of a shorter time, says. Of rounds those count that began in it."""
    first = max(0, scenario.horizon - DAY)
    arrivals = events.check_ins[first:].astype(np.float64)
    deliveries = events.deliveries[:, first:].astype(np.float64)
    cpu = _cores(arrivals, deliveries, constants)
    inserts = sum(
        (constants.insert_seconds(size) * deliveries[phase - 1] for phase, size in _sizes(constants)), np.zeros(1)
    )
    lengths = [seconds for began, seconds, _ in events.rounds if began >= first] or [0.0]
    waits = [wait for began, wait in events.waits if began >= first] or [0.0]
    up = sum((size * deliveries[phase - 1] for phase, size in _sizes(constants)), np.zeros(1))
    busiest = float(_means(cpu, 60).max())
    codes = constants.open_rows * constants.code_bits / 8
    uploads = float(deliveries[UPLOADING - 1].sum())
    return {
        "device_rounds": int(deliveries[-1].sum()),
        "check_ins": int(arrivals.sum()),
        "check_ins_per_place": float(arrivals.sum() / max(1.0, deliveries[0].sum())),
        "rounds": len([1 for began, _, _ in events.rounds if began >= first]),
        "round_seconds_p50": float(np.percentile(lengths, 50)),
        "round_seconds_p95": float(np.percentile(lengths, 95)),
        "cohorts": sum(summed for began, _, summed in events.rounds if began >= first),
        "abandoned_cohorts": events.abandoned_cohorts,
        "wait_seconds_p50": float(np.percentile(waits, 50)),
        "wait_seconds_p95": float(np.percentile(waits, 95)),
        "mean_check_ins_per_second": float(arrivals.mean()),
        "peak_check_ins_per_second": float(_means(arrivals, HERD_SECONDS).max()),
        "peak_over_hour": peak_over_hour(arrivals),
        "mean_cores": float(cpu.mean()),
        "busiest_minute_cores": busiest,
        "replicas": ceil(busiest / BUSY),
        "database_busy_mean": float(inserts.mean()),
        "database_busy_minute": float(_means(inserts, 60).max()),
        "inserts_per_second": float(deliveries.sum() / len(arrivals)),
        "up_bytes_per_second": float(up.mean()),
        "up_bytes_per_device_round": float(up.sum() / max(1.0, uploads)),
        "down_bytes_whole": float(codes),
        "down_bytes_delta": float(codes * constants.delta_share),
        "hours": _hours(arrivals, deliveries, cpu, inserts),
    }


def _sizes(constants: Constants) -> list[tuple[int, int]]:
    return list(zip(PHASES, constants.phase_bytes, strict=True))


def _cores(arrivals: Floats, deliveries: Floats, constants: Constants) -> Floats:
    """CPU seconds of coordinators in each second."""
    steps = np.array(constants.phase_cpu_ms) @ deliveries
    return (constants.check_in_cpu_ms * arrivals + steps) / 1000


def _means(values: Floats, seconds: int) -> Floats:
    """Over pieces of so many seconds; of a shorter time there is one."""
    pieces = max(1, len(values) // seconds)
    return np.array([piece.mean() for piece in np.array_split(values, pieces)])


def peak_over_hour(arrivals: Floats) -> float:
    """The most that came in ten seconds, over the mean of the hour around it: what is left without the rhythm.

    Hours in which fewer than one device a second comes say more about chance than about herds, and do not count.
    """
    hours = np.array_split(arrivals, max(1, len(arrivals) // 3600))
    return max(
        (float(_means(hour, HERD_SECONDS).max() / hour.mean()) for hour in hours if hour.mean() >= 1), default=0.0
    )


def _hours(arrivals: Floats, deliveries: Floats, cpu: Floats, inserts: Floats) -> list[ScaleHour]:
    """The day as a page draws it."""
    pieces = max(1, len(arrivals) // 3600)
    columns = (np.array_split(column, pieces) for column in (arrivals, deliveries[-1], cpu, inserts))
    return [
        {
            "check_ins": float(a.mean()),
            "device_rounds": float(d.mean()),
            "cores": float(c.mean()),
            "database": float(i.mean()),
        }
        for a, d, c, i in zip(*columns, strict=True)
    ]
