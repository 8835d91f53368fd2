"""Which runs an audit of privacy makes: one for each mode and cohort, and two that only show what the gate does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightfr.errors import InvalidInputError
from lightfr_harness.simulation.options import TrainOptions

MODES: dict[str, dict[str, Any]] = {
    "paper": {"objective": "paper"},
    "paper-para": {"objective": "paper", "aggregate": "para"},
    "clear-exact": {"upload": "exact"},
    "clear": {"upload": "ternary"},
    "secagg": {"upload": "ternary", "privacy": "secagg"},
    "secagg+dp": {"privacy": "secagg+dp"},
}
SECURE_MODES = ("secagg", "secagg+dp")
# The other side of the gate, for what the published matrices say.
GATE_ONLY = {"paper": 10, "secagg": 0}
MOST_CLEAR_ROUNDS = 10
# What a device takes part in at most while the attacker watches: what every round adds, adds up.
ROUNDS_PER_DEVICE = 12
# Rounds of training before each evaluation, as a coordinator has them.
EVALUATE_EVERY = 10
DEFAULT_FRACTION = 0.6
SMALL_COHORTS = (1, 2, 3, 5, 10, 50, 256)


@dataclass(frozen=True)
class AuditOptions:
    """What an audit is asked for. An empty `cohorts` means 60 % of the devices."""

    modes: tuple[str, ...] = tuple(MODES)
    data: Path | None = None
    format: str = "ml-100k"
    data_options: dict[str, Any] = field(default_factory=dict)
    synthetic: str = "small"
    rounds: int = 200
    rounds_per_device: int = ROUNDS_PER_DEVICE
    cohorts: tuple[int, ...] = ()
    minimum_cohort: int = 256
    bits: int = 64
    # Of mode secagg+dp.
    epsilon: float = 8.0
    seed: int = 0

    def __post_init__(self) -> None:
        unknown = [mode for mode in self.modes if mode not in MODES]
        if unknown or not self.modes:
            raise InvalidInputError(f"--mode: unknown mode {', '.join(unknown)!r}, choose among: {', '.join(MODES)}")
        for name in ("rounds", "rounds_per_device"):
            if getattr(self, name) < 1:
                raise InvalidInputError(f"--{name.replace('_', '-')} is {getattr(self, name)}, expected at least 1")
        if any(cohort < 1 for cohort in self.cohorts):
            raise InvalidInputError(f"a cohort of {min(self.cohorts)} devices, expected at least 1")

    def training(self, mode: str, gate: int | None) -> TrainOptions:
        """The run behind a scenario."""
        is_noisy = mode == "secagg+dp"
        # An epsilon counts a device in every round; what is sent in the clear says everything at once.
        most = self.rounds_per_device if is_noisy else self.rounds if mode in SECURE_MODES else MOST_CLEAR_ROUNDS
        return TrainOptions(
            data=self.data,
            format=self.format,
            data_options=self.data_options,
            synthetic=self.synthetic,
            seed=self.seed,
            rounds=min(self.rounds, most),
            bits=self.bits,
            gate=gate,
            epsilon=self.epsilon if is_noisy else 0.0,
            # With an epsilon, the evaluations that are captured have to be paid for with noise.
            recency="" if is_noisy or MODES[mode].get("objective") == "paper" else "off",
            **MODES[mode],
        )


@dataclass(frozen=True)
class Scenario:
    """One run: a mode, its cohort size, and whether only the gate is looked at."""

    name: str
    mode: str
    cohort: int
    gate: int | None = None
    gate_only: bool = False


def scenarios(options: AuditOptions, n_users: int) -> list[Scenario]:
    """Clear modes once, with the largest cohort; those with secure sums for every cohort."""
    asked = options.cohorts or (max(1, round(DEFAULT_FRACTION * n_users)),)
    cohorts = sorted({min(cohort, n_users) for cohort in asked})
    plan = []
    for mode in dict.fromkeys(options.modes):
        sizes = cohorts if mode in SECURE_MODES else cohorts[-1:]
        names = [f"{mode}, cohort {size}" if mode in SECURE_MODES else mode for size in sizes]
        plan += [Scenario(name, mode, size) for name, size in zip(names, sizes, strict=True)]
        if mode in GATE_ONLY:
            gate = GATE_ONLY[mode]
            name = f"{names[-1]}, gate {gate or 'off'}"
            plan.append(Scenario(name, mode, cohorts[-1], gate, gate_only=True))
    return plan
