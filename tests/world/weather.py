"""What a seed draws: the world's size and mode, and every fault in it.

A world begins with a storm, of a strength between none and heavy, and ends with calm weather in which all is well.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from lightfr_harness.server.coordinator.options import ItemList, Settings
from lightfr_harness.server.coordinator.plan import Plan

N_ITEMS = 24
BITS = 64
# How strong a storm is, by how often a world has it. Rates below are those of strength 1.
_STRENGTHS = ((0.0, 10), (0.5, 30), (1.5, 45), (4.0, 15))


# Of mode secagg+dp: in thousandths.
_NOISE: dict[str, Any] = {
    "privacy": "secagg+dp",
    "noise_rows_thousandths": 400_000, "noise_sums_thousandths": 300_000, "noise_counts_thousandths": 50_000,
}  # fmt: skip


@dataclass(frozen=True)
class Forecast:
    """One world, as its seed wants it."""

    seed: int
    n_devices: int
    settings: Settings
    plan: Plan
    # 0: one coordinator on SQLite; more: so many replicas on a shared database.
    replicas: int
    strength: float
    storm_seconds: float
    # Whether devices lose power when they die; else their programs are killed.
    loses_power: bool
    clocks_step: bool
    # Devices whose certificates are revoked in the storm, those near the end of theirs, and those that lie.
    n_revoked: int
    n_ageing: int
    n_hostile: int
    has_hostile_coordinator: bool
    has_counts: bool

    @property
    def is_private(self) -> bool:
        return self.settings.is_secure

    @property
    def items(self) -> ItemList:
        counts = [200 - i for i in range(N_ITEMS)] if self.has_counts else None
        return ItemList([f"thing-{i:02}-of-the-catalogue" for i in range(N_ITEMS)], counts, f"{self.seed:064x}")

    @classmethod
    def of(cls, seed: int) -> Forecast:
        draw = random.Random(f"forecast {seed}")
        mode = draw.choices(("clear", "secagg"), (45, 55))[0]
        is_masked = mode != "clear"
        n_devices = draw.choices(
            (10, draw.randint(11, 16), draw.randint(17, 40), draw.randint(41, 200)), (80, 14, 5, 1)
        )[0]
        if is_masked:
            n_devices = min(n_devices, 40)
        strength = draw.choices([s for s, _ in _STRENGTHS], [w for _, w in _STRENGTHS])[0]
        has_counts = mode == "clear" or draw.random() < 0.8
        is_lied_to = mode == "secagg" and draw.random() < 0.06
        cohorts = 2 if is_masked and draw.random() < 0.25 else 1
        # Two gate refreshes want different devices, and two cohorts as many again.
        goal = 4 if cohorts == 2 or not has_counts else draw.randint(4, 6)
        plan = Plan(
            goal=goal,
            over_selection=draw.choice((1.0, 1.25, 1.5)) if cohorts == 1 and has_counts else 1.0,
            minimum=3 if is_masked else draw.randint(1, 3),
            deadline_seconds=draw.choice((15.0, 30.0, 60.0)),
            gate_every=50,
            evaluate_every=draw.choice((0, 1, 2)),
            cohorts=cohorts,
        )
        gate = 1 if has_counts else 2
        # A draw of its own, so that the other worlds stay what they were.
        noise = _NOISE if mode == "secagg" and random.Random(f"noise {seed}").random() < 0.2 else {}
        settings = Settings(bits=BITS, gate=gate, seed=seed, integer_ids=False, **{"privacy": mode, **noise})
        return cls(
            seed, n_devices, settings, plan,
            replicas=0 if is_lied_to or draw.random() < 0.65 else draw.randint(2, 3),
            strength=strength,
            storm_seconds=draw.uniform(15, 60),
            loses_power=draw.random() < 0.4,
            clocks_step=draw.random() < 0.3,
            n_revoked=int(draw.random() < 0.2),
            n_ageing=draw.randint(1, 2) if draw.random() < 0.2 else 0,
            n_hostile=int(is_masked and not is_lied_to and draw.random() < 0.12),
            has_hostile_coordinator=is_lied_to,
            has_counts=has_counts,
        )  # fmt: skip


class Weather:
    """Draws what happens to each message, each file operation and each transaction."""

    def __init__(self, forecast: Forecast) -> None:
        self._draw = random.Random(f"weather {forecast.seed}")
        self._strength = forecast.strength
        self._base_latency = self._draw.choice((0.005, 0.03, 0.1))
        self._base_write = self._draw.choice((0.001, 0.01))

    def calm_down(self) -> None:
        """From now on all goes well."""
        self._strength = 0.0

    @property
    def is_calm(self) -> bool:
        return self._strength == 0.0

    def random(self) -> float:
        return self._draw.random()

    def uniform(self, least: float, most: float) -> float:
        return self._draw.uniform(least, most)

    def choice(self, options: list[int]) -> int:
        return options[int(self._draw.random() * len(options))]

    def _happens(self, probability: float) -> bool:
        return self._draw.random() < probability * self._strength

    # The network.

    def latency(self) -> float:
        if self._happens(0.004):
            return self._draw.uniform(1.0, 50.0)
        return self._base_latency * (0.5 + self._draw.random())

    def is_cut(self) -> bool:
        return self._happens(0.006)

    def is_silent(self) -> bool:
        return self._draw.random() < 0.3 * min(self._strength, 1.0)

    def fate_of_connection(self) -> str:
        if self._happens(0.02):
            return "silent" if self._draw.random() < 0.3 else "refused"
        return ""

    def is_repeated(self) -> bool:
        return self._happens(0.06)

    def repeat_seconds(self) -> float:
        return self._draw.choice((0.0, 0.0, 0.5, 30.0)) * self._draw.random()

    # Disks.

    def fate_of_operation(self) -> str:
        if not self._happens(0.008):
            return ""
        return self._draw.choices(("kill", "full", "slow"), (60, 20, 20))[0]

    def slow_seconds(self) -> float:
        return self._draw.uniform(0.1, 10.0)

    def write_seconds(self) -> float:
        if self._happens(0.004):
            return self._draw.uniform(0.5, 15.0)
        return self._base_write * (0.5 + self._draw.random())

    def work_seconds(self) -> float:
        return self._base_write * self._draw.random()

    def fate_of_step(self) -> str:
        """At a crash point of a coordinator."""
        if not self._happens(0.006):
            return ""
        return "kill" if self._draw.random() < 0.8 else "full"

    def fate_of_transaction(self) -> str:
        """In a shared database."""
        if not self._happens(0.006):
            return ""
        return self._draw.choices(("kill", "kill after", "away", "away after"), (25, 25, 25, 25))[0]

    # Programs.

    def restart_seconds(self) -> float:
        return self._draw.uniform(0.1, 20.0)

    def fate_of_stage(self) -> str:
        """When a device has come one stage further in a round."""
        if not self._happens(0.03):
            return ""
        return self._draw.choice(("away", "kill"))

    def clock_step(self) -> float:
        return self._draw.choice((-1, 1)) * self._draw.choice((1.0, 100.0, 4000.0, 100_000.0)) * self._draw.random()
