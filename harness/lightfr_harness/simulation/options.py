"""What a training run is asked for, checked before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightfr.errors import InvalidInputError
from lightfr.rankings import MOST_FOURTHS, RankBy, Ranking
from lightfr.training.constants import MAX_WEIGHT, REFINE_FROM_BITS, Recency
from lightfr.v1 import model_pb2
from lightfr_harness.server.rules import PRIVACY_MODES, TERNARY_ROWS
from lightfr_harness.simulation.accountant import noise_for

OBJECTIVES = ("catalogue", "paper")
AGGREGATES = {"catalogue": ("catalogue",), "paper": ("grad", "para", "init", "random")}
# Forms of the paper's ablation in which nothing is optimised: users keep the codes that they begin with.
FIXED_CODES = ("init", "random")
UPLOADS = {"ternary": model_pb2.UPLOAD_KIND_TERNARY, "exact": model_pb2.UPLOAD_KIND_EXACT}
SPLITS = ("last-out", "80-10-10")
ENGINES = ("local", "ray")
MOST_WORKERS = 100_000
POSITIVES = ("opinions", "all")
RECENCIES = {"off": Recency.OFF, "weak": Recency.WEAK, "strong": Recency.STRONG}
GATE = 10
# Evaluation rounds whose sums are added up, as a coordinator does with its newest four.
EVALUATIONS = 4
DELTA = 1e-5


@dataclass(frozen=True)
class TrainOptions:
    """One run. `data` None means the synthetic set of that size."""

    data: Path | None = None
    format: str = "ml-100k"
    data_options: dict[str, Any] = field(default_factory=dict)
    synthetic: str = "ml-100k"
    split: str = "last-out"
    objective: str = "catalogue"
    aggregate: str = ""
    upload: str = ""
    gate: int | None = None
    max_rows: int | None = None
    # opinions: ratings below the middle of the scale are dislikes; all: every rating is a like of the same weight.
    positives: str = "opinions"
    # How to rank: the fleet's evaluation chooses, unless one of these is given. The others are then off.
    recency: str = ""
    refine: bool = False
    prior: float | None = None
    bits: int = 64
    rounds: int = 50
    fraction: float = 0.6
    dropout: float = 0.0
    regularization: float = 0.0
    privacy: str = "clear"
    # What a user who takes part in all rounds may lose at most, with delta 1e-5; mode secagg+dp only.
    epsilon: float = 0.0
    unmasked: bool = False
    # Where the devices live: in this process, or in so many actors of Ray (0: one for each CPU), at an address or here.
    engine: str = "local"
    workers: int = 0
    address: str = ""
    seed: int = 0
    checkpoint: Path | None = None

    def __post_init__(self) -> None:
        _one_of("objective", self.objective, OBJECTIVES)
        _one_of("split", self.split, SPLITS)
        paper = self.objective == "paper"
        _default(self, "aggregate", AGGREGATES[self.objective][0])
        is_noisy = self.privacy == "secagg+dp"
        _default(self, "upload", "exact" if paper or is_noisy else "ternary")
        _default(self, "gate", 0 if paper or is_noisy else GATE)
        _default(self, "max_rows", TERNARY_ROWS if self.upload == "ternary" else 0)
        _one_of("aggregate", self.aggregate, AGGREGATES[self.objective])
        _one_of("upload", self.upload, ("exact",) if paper else tuple(UPLOADS))
        _within("rounds", self.rounds, 0, 100_000)
        _within("fraction", self.fraction, 1e-9, 1)
        _within("dropout", self.dropout, 0, 0.99)
        _within("gate", self.gate or 0, 0, 2**31)
        _within("max-rows", self.max_rows or 0, 0, 2**31)
        _within("lambda", self.regularization, 0, 1e6)
        self._require_ranking()
        if self.regularization and not paper:
            raise InvalidInputError("--lambda belongs to --objective paper; the catalogue objective has no such term")
        self._require_privacy()
        self._require_engine()

    def _require_engine(self) -> None:
        _one_of("engine", self.engine, ENGINES)
        _within("workers", self.workers, 0, MOST_WORKERS)
        if self.engine == "local" and (self.workers or self.address):
            raise InvalidInputError("workers and address belong to --engine ray")
        if self.engine == "ray" and self.privacy != "clear" and not self.unmasked:
            raise InvalidInputError(
                "--engine ray adds up without masks: add --unmasked, which gives the same sums, or leave out --engine"
            )

    def _require_ranking(self) -> None:
        _one_of("positives", self.positives, POSITIVES)
        _one_of("recency", self.recency, ("", *RECENCIES))
        if self.objective == "paper" and (self.fixes_ranking or self.positives == "all"):
            raise InvalidInputError(
                "--positives, --recency, --refine and --prior belong to --objective catalogue; the paper has none"
            )
        if self.refine and self.bits < REFINE_FROM_BITS:
            raise InvalidInputError(f"--refine needs --bits of at least {REFINE_FROM_BITS}, as on devices")
        if self.prior is not None:
            _within("prior", self.prior, 0, MOST_FOURTHS / 4)

    @property
    def fixes_ranking(self) -> bool:
        return bool(self.recency or self.refine or self.prior is not None)

    @property
    def ranking(self) -> Ranking | None:
        """How all devices rank; None: the fleet's evaluation chooses."""
        if self.fixes_ranking or self.objective == "paper":
            fourths = round(4 * (self.prior or 0))
            return Ranking(RankBy.CODES, fourths, RECENCIES.get(self.recency, Recency.OFF), self.refine)
        return None

    def _require_privacy(self) -> None:
        _one_of("privacy", self.privacy, tuple(PRIVACY_MODES))
        is_noisy, kind = self.privacy == "secagg+dp", "exact" if self.privacy == "secagg+dp" else "ternary"
        if self.privacy != "clear":
            if self.objective == "paper":
                raise InvalidInputError(f"--privacy {self.privacy} needs --objective catalogue; the paper has no sums")
            if self.upload != kind:
                raise InvalidInputError(f"--privacy {self.privacy} sums {kind} rows: leave out --upload {self.upload}")
        if self.privacy == "secagg":
            _within("max-rows", self.max_rows or 0, 1, MAX_WEIGHT)
        if is_noisy:
            _within("epsilon", self.epsilon, 0.01, 1000)
        elif self.epsilon:
            raise InvalidInputError("--epsilon belongs to --privacy secagg+dp")

    @property
    def privacy_mode(self) -> int:
        return PRIVACY_MODES[self.privacy]

    def noise(self, n_users: int) -> model_pb2.Noise | None:
        """The noise that each of so many devices adds for the epsilon, which those who drop out do not."""
        if self.privacy != "secagg+dp":
            return None
        survivors = survivors_of(cohort_size(self.fraction, n_users), self.dropout)
        # Of each half of the fleet there is one gate refresh.
        counting = n_users // 2 if (self.gate or 0) > 1 else 0
        return noise_for(
            self.epsilon,
            DELTA,
            rounds=self.rounds,
            code_bits=self.bits,
            devices=survivors,
            counting_devices=counting,
            evaluations=EVALUATIONS if self.ranking is None else 0,
        )

    @property
    def upload_kind(self) -> int:
        return model_pb2.UPLOAD_KIND_CODES if self.aggregate == "para" else UPLOADS[self.upload]


def cohort_size(fraction: float, n_users: int) -> int:
    """The devices of a round."""
    return max(1, round(fraction * n_users))


def survivors_of(devices: int, dropout: float) -> int:
    """The devices of a round that do not drop out: so many exactly, since noise is planned for them."""
    return max(1, int(devices * (1 - dropout)))


def _default(options: TrainOptions, name: str, value: str | int) -> None:
    """Fill in what was not given: an empty name or None. A zero was given."""
    if getattr(options, name) in ("", None):
        object.__setattr__(options, name, value)


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidInputError(f"--{option}: unknown name '{value}', choose one of: {', '.join(known)}")


def _within(option: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise InvalidInputError(f"--{option} is {value}, expected {least:g} to {most:g}")
