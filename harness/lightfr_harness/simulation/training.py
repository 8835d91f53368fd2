"""Rounds of training over a fleet: sampled, with dropout, checkpointed, deterministic for a seed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from lightfr.errors import InvalidInputError
from lightfr.training import PublishedModel
from lightfr.v1 import model_pb2
from lightfr_harness.server.artifacts import make_bitmap
from lightfr_harness.server.rules import AggregationRule, CatalogueRule
from lightfr_harness.simulation.asking import Counting, ModelBytes, Training
from lightfr_harness.simulation.collecting import Cohort, Collected, collect_masked, count_clear, count_unmasked
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.options import cohort_size, survivors_of


@dataclass(frozen=True)
class RunOptions:
    """What decides a run, beside the data and the server.

    `masked` False adds up without masks where the server asks for them: the same sums in a fraction of the time. With
    noise it is then drawn once, for the sum.
    """

    rounds: int = 50
    fraction: float = 0.6
    dropout: float = 0.0
    seed: int = 0
    masked: bool = True


@dataclass
class Traffic:
    """Bytes inside messages, by direction, and how many device rounds they belong to.

    `dropped` devices never uploaded; `abandoned` rounds lost too many devices to be unmasked, and moved nothing.
    """

    device_rounds: int = 0
    dropped: int = 0
    abandoned: int = 0
    up_bytes: int = 0
    down_bytes: int = 0


@dataclass
class TrainingRun:
    """A run in progress; iterate over it to train. The same seed gives the same matrices, resumed or not."""

    server: AggregationRule
    fleet: Fleet
    options: RunOptions
    checkpoint: Path | None = None
    finished_rounds: int = 0
    traffic: Traffic = field(default_factory=Traffic)
    # CPU time of all processes; and how long the rounds took by the clock on the wall.
    seconds: dict[str, float] = field(default_factory=lambda: {"devices": 0.0, "server": 0.0})
    wall_seconds: float = 0.0
    # Device rounds of a checkpoint that was gone on with: `seconds` and `wall_seconds` are of those after them.
    resumed_device_rounds: int = 0
    # Hears during a round what share of its devices has answered.
    tell: Callable[[float], None] = lambda _: None

    def __post_init__(self) -> None:
        if self.checkpoint is not None and self.checkpoint.exists():
            self._resume(self.checkpoint)

    def __iter__(self) -> Iterator[int]:
        """Train round by round; yields the number of finished rounds."""
        while self.finished_rounds < self.options.rounds:
            started = time.monotonic()
            self._round(self.finished_rounds)
            self.wall_seconds += time.monotonic() - started
            self.finished_rounds += 1
            if self.checkpoint is not None:
                self._save(self.checkpoint)
            yield self.finished_rounds

    def published(self) -> PublishedModel:
        """The current model as a device has it after download: encoded, decoded and checked."""
        return ModelBytes.of(self.server).published()

    def cohort(self, round_index: int) -> npt.NDArray[np.int64]:
        """Devices of a round, drawn without replacement, those that drop out included."""
        size = cohort_size(self.options.fraction, len(self.fleet))
        return np.sort(self.random(round_index, 1).choice(len(self.fleet), size, replace=False))

    def drops(self, round_index: int) -> npt.NDArray[np.bool_]:
        """Which devices of the cohort drop out before they upload."""
        devices = len(self.cohort(round_index))
        return self.random(round_index, 2).permutation(devices) >= survivors_of(devices, self.options.dropout)

    def random(self, round_index: int, purpose: int) -> np.random.Generator:
        """What is random in a round, by purpose: reproducible for a seed."""
        return np.random.default_rng([self.options.seed, round_index, purpose])

    def _round(self, round_index: int) -> None:
        users, drops = self.cohort(round_index), self.drops(round_index)
        question = Training(
            ModelBytes.of(self.server), self.options.seed, round_index, len(users), frozenset(users[drops].tolist())
        )
        random = self.random(round_index, 5)
        if self.server.privacy_mode != model_pb2.PRIVACY_MODE_CLEAR and self.options.masked:
            collected = self._masked(question, users, drops, random)
        else:
            share = self.fleet.ask(question, users, self.tell)
            is_clear = self.server.privacy_mode == model_pb2.PRIVACY_MODE_CLEAR
            collected = (
                count_clear(self.server, share) if is_clear else count_unmasked(self.server, share, len(users), random)
            )
        started = time.process_time()
        if collected.abandoned:
            self.server.begin_round()
        else:
            self.server.finish_round()
        self.seconds["server"] += time.process_time() - started
        self._account(collected, drops)

    def _masked(
        self,
        question: Training,
        users: npt.NDArray[np.int64],
        drops: npt.NDArray[np.bool_],
        random: np.random.Generator,
    ) -> Collected:
        """Let the devices of this process walk through all steps of secure aggregation."""
        started, model = time.process_time(), question.model.published()
        updates = [self.fleet.devices[user].update(model, question.stream(user)) for user in users.tolist()]
        self.seconds["devices"] += time.process_time() - started
        silent = self.random(question.round_index, 4).random(len(users)) < self.options.dropout / 3
        return collect_masked(self.server, Cohort(model, updates, drops, silent, random))

    def _account(self, collected: Collected, drops: npt.NDArray[np.bool_]) -> None:
        download = download_bytes(self.server)
        self.traffic.device_rounds += len(drops)
        self.traffic.dropped += int(drops.sum())
        self.traffic.abandoned += collected.abandoned
        self.traffic.up_bytes += collected.up_bytes
        self.traffic.down_bytes += collected.down_bytes + download * len(drops)
        self.seconds["devices"] += collected.device_seconds
        self.seconds["server"] += collected.server_seconds

    def _save(self, path: Path) -> None:
        """Write the state beside the old one and rename it over, so that a kill leaves one of the two whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp.npz")
        counts = np.array([self.finished_rounds, *asdict(self.traffic).values()], np.int64)
        devices, state = self.fleet.codes(), self.server.state()
        with temporary.open("wb") as file:
            # mypy takes the names of the state's arrays for numpy's own option.
            np.savez(file, options=self._fingerprint(), counts=counts, devices=devices, **state)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

    def _resume(self, path: Path) -> None:
        advice = "remove it or name another file"
        try:
            with path.open("rb") as file, np.load(file) as saved:
                state = dict(saved)
            options = state.pop("options")
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            raise InvalidInputError(f"{path} is no checkpoint ({type(error).__name__}); {advice}") from error
        if not np.array_equal(options, self._fingerprint()):
            raise InvalidInputError(f"{path} belongs to a run with other options or data; {advice}")
        finished, *traffic = state.pop("counts").tolist()
        if finished > self.options.rounds:
            raise InvalidInputError(
                f"{path} is {finished} rounds old, more than the {self.options.rounds} asked for; {advice}"
            )
        self.finished_rounds, self.traffic = finished, Traffic(*traffic)
        self.resumed_device_rounds = self.traffic.device_rounds
        self.fleet.restore(state.pop("devices"))
        self.server.restore(state)

    def _fingerprint(self) -> npt.NDArray[np.float64]:
        """What must agree for a checkpoint to be taken up; more rounds may be asked for than before."""
        options = {**asdict(self.options), "rounds": 0}
        model = self.server.model()
        shape = (
            self.fleet.checksum,
            model.item_count,
            model.code_bits,
            model.objective,
            model.upload_kind,
            model.balance,
        )
        noise = (model.noise.rows_thousandths, model.noise.sums_thousandths, model.noise.counts_thousandths)
        privacy = (model.privacy_mode, *noise)
        return np.array([*options.values(), *shape, self.server.gate, self.server.max_rows, *privacy], np.float64)


def download_bytes(server: AggregationRule) -> int:
    """What a device fetches that has nothing: the codes, the model's message, and which items are open."""
    bitmap = len(make_bitmap(server.open_rows)) if server.has_shared_row else 0
    return server.codes.nbytes + server.model().ByteSize() + bitmap


def refresh_gate(server: CatalogueRule, fleet: Fleet, seed: int) -> None:
    """Let each half of the fleet count who rates what, with its noise: a pair of gate refreshes, without masks."""
    model, users = ModelBytes.of(server), np.random.default_rng([seed, 6]).permutation(len(fleet))
    for index, half in enumerate(np.array_split(users, 2)):
        counts = fleet.ask(Counting(model, seed, index, len(half)), half).sums["counts"]
        server.set_gate(counts.astype(np.int64), seed, len(half))
