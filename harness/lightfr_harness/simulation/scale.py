"""A day of a large fleet, event by event: who comes when, which cohorts fill, how long rounds take, what it all costs.

Devices come by a daily rhythm. Each is given a place or told when to come back, by the coordinator's own Plan, Round
and Pace. A round has many cohorts; a cohort goes through the seven phases of secure aggregation, and a phase ends when
all have delivered or at its deadline. A device is an entry of two arrays, and time goes in seconds, so that ten million
devices take minutes and some hundred megabytes. What is not simulated: the queue in front of a busy server. The costs
say how many cores keep it short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lightfr.errors import OutOfRangeError
from lightfr.secagg.views import quorum
from lightfr_harness.server.coordinator.book import Pace
from lightfr_harness.server.coordinator.phases import PHASES
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.rounds import Round

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
DAY = 86_400
# Devices that are due within so many seconds are sorted together.
BIN_SECONDS = 600
_NEVER = np.iinfo(np.int32).max
# Spread of the time that devices take for a step, as the deviation of its logarithm.
_STEP_SPREAD = 0.5
# When devices offer themselves again whose cohort was abandoned, in seconds: what the SDK says to the app.
_AFTER_ABANDONED = (1.0, 10.0)


@dataclass(frozen=True)
class Scenario:
    """The fleet, its habits, and the coordinator's plan."""

    devices: int = 10_000_000
    # In each period every device comes with this chance. 12 rounds in 30 days is what a device gives at most.
    period_seconds: int = DAY
    periods: int = 2
    coming: float = 12 / 30
    # How far the rhythm swings around its mean, and when it is highest.
    swing: float = 0.8
    peak_hour: float = 2.0
    # How long a device stays charged, on Wi-Fi and unused, on average: it comes back only within this time.
    stays_seconds: float = 4 * 3600.0
    # Share of the devices with a place that leave before one of the seven steps, each as often as the others.
    dropout: float = 0.1
    # Half of the devices take less for a step.
    step_seconds: float = 3.0
    # From the last cohort's end to the next version.
    publish_seconds: float = 5.0
    cohorts: int = 64
    goal: int = 512
    over_selection: float = 1.3
    minimum: int = 256
    deadline_seconds: float = 60.0
    # Simulated seconds; 0: all periods.
    seconds: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        limits = {
            "devices": (1, 100_000_000), "period_seconds": (1, DAY), "periods": (1, 30), "coming": (0, 1),
            "swing": (0, 1), "peak_hour": (0, 24), "stays_seconds": (1, 30 * DAY), "dropout": (0, 0.9),
            "step_seconds": (0.001, 3600), "publish_seconds": (0, 3600), "cohorts": (1, 4096), "seconds": (0, 30 * DAY),
        }  # fmt: skip
        for name, (least, most) in limits.items():
            if not least <= getattr(self, name) <= most:
                raise OutOfRangeError(name, getattr(self, name), least, most)
        self.plan.require_cohort()

    @property
    def plan(self) -> Plan:
        return Plan(self.goal, self.over_selection, self.minimum, self.deadline_seconds)

    @property
    def horizon(self) -> int:
        return self.seconds or self.periods * self.period_seconds


@dataclass
class Events:
    """What happened in each second, and of each round and cohort that ended."""

    check_ins: Ints
    # By phase.
    deliveries: Ints
    # Devices whose cohort was unmasked.
    settled: Ints
    placed: int = 0
    gave_up: int = 0
    # When it began, how long it lasted, and its cohorts that were summed.
    rounds: list[tuple[int, float, int]] = field(default_factory=list)
    abandoned_cohorts: int = 0
    # Of each cohort, when it began and the mean time that its devices waited for the roster.
    waits: list[tuple[int, float]] = field(default_factory=list)
    contributions: int = 0

    @classmethod
    def of(cls, seconds: int) -> Events:
        return cls(np.zeros(seconds, np.int64), np.zeros((len(PHASES), seconds), np.int64), np.zeros(seconds, np.int64))


@dataclass
class _Cohort:
    """Who got a place when, until the roster is closed; then when it ends, and whether it has a sum."""

    # Seconds, and the devices that got their places then.
    places: list[tuple[int, Ints]] = field(default_factory=list)
    taken: int = 0
    ends: float | None = None
    is_summed: bool = False

    def take(self, devices: Ints, now: int) -> None:
        self.places.append((now, devices))
        self.taken += len(devices)


class Simulation:
    """One fleet and one coordinator. `spread` says where in its retry window each of n devices comes back, 0 to 1."""

    def __init__(self, scenario: Scenario, spread: Callable[[np.random.Generator, int], Floats] | None = None) -> None:
        self._scenario, self._plan = scenario, scenario.plan
        self._random = np.random.default_rng([scenario.seed, 17])
        self._spread = spread or (lambda random, n: random.random(n))
        self._next = np.full(scenario.devices, _NEVER, np.int32)
        self._until = np.zeros(scenario.devices, np.int32)
        self._events = Events.of(scenario.horizon)
        # Devices that come back within the bin that is being simulated, by second, and where that ends.
        self._again: dict[int, list[int]] = defaultdict(list)
        self._bin_end = 0
        self._pace = Pace()
        self._number = 0
        self._open_round(0)

    def run(self, tell: Callable[[float], None] = lambda _: None) -> Events:
        """Simulate all seconds. `tell` hears now and then what share of them is over."""
        scenario = self._scenario
        for start in range(0, scenario.horizon, BIN_SECONDS):
            # A bin ends where a period does, whose devices are drawn before it begins.
            for first in sorted({start, *_starts(start, scenario)}):
                if first % scenario.period_seconds == 0 and first // scenario.period_seconds < scenario.periods:
                    self._draw_arrivals(first)
            self._run_bin(start, min(start + BIN_SECONDS, scenario.horizon))
            tell(min(start + BIN_SECONDS, scenario.horizon) / scenario.horizon)
        return self._events

    def _draw_arrivals(self, first: int) -> None:
        """When in this period each device comes, if it does, and until when it can come back."""
        scenario, random = self._scenario, self._random
        seconds = np.arange(scenario.period_seconds + 1)
        angle = 2 * np.pi * (seconds / scenario.period_seconds - scenario.peak_hour / 24)
        rates = 1 + scenario.swing * np.cos(angle)
        shares = np.cumsum(rates) / rates.sum()
        for block in np.array_split(np.arange(scenario.devices), -(-scenario.devices // 1_000_000)):
            comes = (random.random(len(block)) < scenario.coming) & (self._next[block] == _NEVER)
            who = block[comes]
            at = first + np.interp(random.random(len(who)), shares, seconds).astype(np.int32)
            self._next[who] = at
            self._until[who] = at + random.exponential(scenario.stays_seconds, len(who))

    def _run_bin(self, start: int, end: int) -> None:
        due = np.flatnonzero((self._next >= start) & (self._next < end))
        due = due[np.argsort(self._next[due], kind="stable")]
        bounds = np.searchsorted(self._next[due], np.arange(start, end + 1))
        self._bin_end = end
        for now in range(start, end):
            self._advance(now)
            arrived = due[bounds[now - start] : bounds[now - start + 1]]
            if back := self._again.pop(now, None):
                arrived = np.concatenate([arrived, np.array(back, np.int64)])
            if len(arrived):
                self._check_in(arrived, now)

    def _check_in(self, arrived: Ints, now: int) -> None:
        self._events.check_ins[now] += len(arrived)
        for device in map(str, arrived.tolist()):
            self._pace.asked(device)
        placed = 0
        while placed < len(arrived) and (cohort := self._filling(now)) is not None:
            some = arrived[placed : placed + self._plan.places - cohort.taken]
            cohort.take(some, now)
            placed += len(some)
        self._events.placed += placed
        self._next[arrived[:placed]] = _NEVER
        earliest, latest = (ms / 1000 for ms in self._pace.window_ms(self._round, now))
        self._send_away(arrived[placed:], now + earliest, now + latest)

    def _send_away(self, devices: Ints, earliest: float, latest: float) -> None:
        """They come back between these two seconds, if they can by then."""
        back = np.ceil(earliest + self._spread(self._random, len(devices)) * (latest - earliest)).astype(np.int64)
        stays = back <= self._until[devices]
        self._next[devices] = np.where(stays, back, _NEVER)
        self._events.gave_up += int(np.count_nonzero(~stays))
        soon = stays & (back < self._bin_end)
        for device, second in zip(devices[soon].tolist(), back[soon].tolist(), strict=True):
            self._again[second].append(device)

    # The coordinator.

    def _open_round(self, now: int) -> None:
        self._number += 1
        self._round = Round.new(self._number, self._number, b"", self._plan, now)
        self._round.cohorts = self._scenario.cohorts
        self._cohorts: list[_Cohort] = []
        self._publishes_at: float | None = None

    def _filling(self, now: int) -> _Cohort | None:
        """The cohort that takes the next device; a new one, where the round may still have one."""
        cohort = self._cohorts[-1] if self._cohorts else None
        if cohort is not None and cohort.ends is None and cohort.taken < self._plan.places:
            return cohort
        if self._publishes_at is not None or self._is_late(now) or len(self._alive()) >= self._scenario.cohorts:
            return None
        if self._round.deadline is None:
            self._round.first_place_at, self._round.deadline = now, now + self._plan.deadline_seconds
        self._cohorts.append(_Cohort())
        return self._cohorts[-1]

    def _alive(self) -> list[_Cohort]:
        return [cohort for cohort in self._cohorts if cohort.ends is None or cohort.is_summed]

    def _is_late(self, now: float) -> bool:
        """Whether the round begins no more cohorts: one that began at once has had all its phases."""
        first = self._round.first_place_at
        return first is not None and now >= first + len(PHASES) * self._plan.deadline_seconds

    def _advance(self, now: int) -> None:
        """Close rosters that are full or late, combine the cohorts of a round that is over, and open the next."""
        for cohort in self._cohorts:
            if cohort.ends is None and (
                cohort.taken >= self._plan.places or now >= cohort.places[0][0] + self._plan.deadline_seconds
            ):
                self._walk(cohort)
        if self._publishes_at is not None:
            if now >= self._publishes_at:
                self._end_round(now)
        elif self._is_over(now):
            self._publishes_at = now + self._scenario.publish_seconds

    def _is_over(self, now: int) -> bool:
        """Whether all cohorts have ended and no more begin."""
        if not self._cohorts or (len(self._alive()) < self._scenario.cohorts and not self._is_late(now)):
            return False
        return all(cohort.ends is not None and now >= cohort.ends for cohort in self._cohorts)

    def _end_round(self, now: int) -> None:
        seconds = now - self._round.started_at
        self._events.rounds.append((int(self._round.started_at), seconds, sum(one.is_summed for one in self._cohorts)))
        self._pace.ended(seconds)
        self._open_round(now)

    def _walk(self, cohort: _Cohort) -> None:
        """All phases of a cohort, with the devices that leave before each."""
        scenario, random, deadline = self._scenario, self._random, self._plan.deadline_seconds
        began, n = cohort.places[0][0], cohort.taken
        devices = np.concatenate([some for _, some in cohort.places])
        ready = np.concatenate([np.full(len(some), float(at)) for at, some in cohort.places])
        placed_at = ready.mean()
        leaves_before = np.where(random.random(n) < scenario.dropout, random.integers(1, len(PHASES) + 1, n), _NEVER)
        ends, needed = began + deadline, scenario.minimum
        for phase in PHASES:
            times = ready + random.lognormal(np.log(scenario.step_seconds), _STEP_SPREAD, len(ready))
            stays = (leaves_before > phase) & (times <= ends)
            expected = self._plan.places if phase == PHASES[0] else len(ready)
            devices, leaves_before, delivered = devices[stays], leaves_before[stays], times[stays]
            self._count(self._events.deliveries[phase - 1], delivered)
            ends = float(delivered.max()) if len(delivered) >= expected else ends
            if phase == PHASES[0]:
                self._events.waits.append((began, ends - placed_at))
                needed = max(scenario.minimum, quorum(len(delivered)))
            if len(delivered) < needed:
                cohort.ends = ends
                self._events.abandoned_cohorts += 1
                self._send_away(devices, *(np.ceil(ends) + after for after in _AFTER_ABANDONED))
                return
            ready, ends = np.full(len(delivered), ends), ends + deadline
        cohort.ends, cohort.is_summed = float(ready[0]), True
        self._events.contributions += len(ready)
        self._count(self._events.settled, ready)

    def _count(self, seconds: Ints, times: Floats) -> None:
        within = times[times < len(seconds)].astype(np.int64)
        np.add.at(seconds, within, 1)


def _starts(start: int, scenario: Scenario) -> list[int]:
    """Where periods begin within a bin."""
    first = -(-start // scenario.period_seconds) * scenario.period_seconds
    return list(range(first, min(start + BIN_SECONDS, scenario.horizon), scenario.period_seconds))
