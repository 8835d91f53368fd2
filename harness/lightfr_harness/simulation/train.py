"""One training run from options to record."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lightfr import UserCode, __version__, _kernel
from lightfr.training import PublishedModel
from lightfr_harness.data import CatalogueSplit, Ratings, Split, by_time_80_10_10, generate, leave_last_out, load
from lightfr_harness.server.rules import AggregationRule, CatalogueRule, PaperRule
from lightfr_harness.simulation import ablation, paper_table, scoring
from lightfr_harness.simulation.accountant import Accountant
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.training import RunOptions, TrainingRun

# Called with the finished rounds, all rounds, and the accuracy (hr, ndcg) when it was just measured.
Progress = Callable[[int, int, tuple[float, float] | None], None]
ROUNDS_BETWEEN_LOOKS = 5
DELTA = 1e-5


@dataclass(frozen=True)
class Trained:
    """What a run leaves behind."""

    record: dict[str, Any]
    server: AggregationRule
    item_ids: list[str]

    def save(self, folder: Path) -> None:
        """Write the matrix as devices download it, its RoundModel and the item ids, one per line by row."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "items.codes").write_bytes(self.server.codes.tobytes())
        (folder / "round_model.bin").write_bytes(self.server.model().SerializeToString())
        (folder / "item_ids.txt").write_text("".join(f"{item_id}\n" for item_id in self.item_ids))


def load_split(options: TrainOptions) -> Split | CatalogueSplit:
    """Read or generate the data and split it; a prepared split is taken as it is."""
    if options.data is None:
        loaded: Ratings | Split = generate(options.synthetic, seed=options.seed)
    else:
        loaded = load(options.data, options.format, **options.data_options)
    if isinstance(loaded, Split):
        return loaded
    return by_time_80_10_10(loaded) if options.split == "80-10-10" else leave_last_out(loaded)


def make_server(options: TrainOptions, train: Ratings) -> AggregationRule:
    """The aggregation rule that the options ask for. Gate counts are sums over devices, as a secure sum gives them."""
    common = {
        "upload_kind": options.upload_kind,
        "gate": options.gate or 0,
        "max_rows": options.max_rows or 0,
        "seed": options.seed,
    }
    if options.objective == "catalogue":
        privacy = {"privacy_mode": options.privacy_mode, "noise": options.noise}
        return CatalogueRule(train.item_counts(), options.bits, **common, **privacy)
    server = PaperRule(train.item_counts(), options.bits, regularization=options.regularization, **common)
    if options.aggregate == "init":
        server.restore({"codes": ablation.quantised_factors(train, options.bits, options.seed)})
    return server


def train(options: TrainOptions, progress: Progress | None = None) -> Trained:
    """Run it all and return the record."""
    started = time.process_time()
    split = load_split(options)
    loaded = time.process_time()
    server, fleet = make_server(options, split.train), Fleet.of(split.train, options.bits, options.seed)
    rounds = 0 if options.aggregate in ("init", "random") else options.rounds
    plan = RunOptions(rounds, options.fraction, options.dropout, options.seed, masked=not options.unmasked)
    run = TrainingRun(server, fleet, plan, options.checkpoint)
    ready = time.process_time()
    for finished in run:
        look = finished % ROUNDS_BETWEEN_LOOKS == 0 and progress is not None
        if progress is not None:
            progress(finished, rounds, _accuracy(options, run, split) if look else None)
    trained = time.process_time()
    metrics = judge(options, run, split)
    seconds = {
        "load": loaded - started,
        "setup": ready - loaded,
        **run.seconds,
        "evaluate": time.process_time() - trained,
    }
    record = _record(options, split, run, asdict(metrics), seconds)
    return Trained(record, server, split.train.item_ids)


def codes_for_use(
    options: TrainOptions, run: TrainingRun, model: PublishedModel, users: list[int]
) -> dict[int, UserCode]:
    """The codes that the devices recommend with; `random` keeps the random ones, as the paper's ablation does."""
    if options.aggregate == "random":
        return {user: run.fleet.devices[user].code for user in users}
    devices, how = run.fleet.devices, {"recency": options.recency, "refine": options.refine}
    return {user: devices[user].code_for_use(model, **how) for user in users}


def judge(options: TrainOptions, run: TrainingRun, split: Split | CatalogueSplit) -> Any:
    model = run.published()
    codes = codes_for_use(options, run, model, scoring.users_of(split.test))
    return scoring.judge(model, codes, split.test)


def _accuracy(options: TrainOptions, run: TrainingRun, split: Split | CatalogueSplit) -> tuple[float, float]:
    metrics = asdict(judge(options, run, split))
    return metrics.get("hr", metrics.get("recall")), metrics["ndcg"]


def _record(
    options: TrainOptions,
    split: Split | CatalogueSplit,
    run: TrainingRun,
    metrics: dict[str, Any],
    seconds: dict[str, float],
) -> dict[str, Any]:
    device_rounds = max(1, run.traffic.device_rounds)
    round_seconds = run.seconds["devices"] + run.seconds["server"]
    data = {"users": split.train.n_users, "items": split.train.n_items, "train_ratings": len(split.train)}
    return {
        **metrics,
        "popularity": asdict(scoring.judge_popularity(split.train, split.test)),
        "up_bytes_per_device_round": run.traffic.up_bytes / max(1, device_rounds - run.traffic.dropped),
        "down_bytes_per_device_round": run.traffic.down_bytes / device_rounds,
        "device_rounds": run.traffic.device_rounds,
        "device_rounds_per_second": run.traffic.device_rounds / round_seconds if round_seconds else None,
        "dropped": run.traffic.dropped,
        "abandoned_rounds": run.traffic.abandoned,
        "seconds": seconds,
        "data": {**data, "duplicates_dropped": split.train.n_duplicates},
        "open_rows": int(np.count_nonzero(run.server.open_rows)),
        "privacy_loss": privacy_loss(run),
        "paper": paper_table.compare(options, metrics),
        "options": {key: str(value) if isinstance(value, Path) else value for key, value in asdict(options).items()},
        "isa": _kernel.isa_name(),
        "machine": platform.machine(),
        "lightfr": __version__,
    }


def privacy_loss(run: TrainingRun, colluding: int = 0) -> dict[str, Any] | None:
    """Of a user who took part in every round, or None without noise. Dropouts are those that were asked for.

    Of the devices that stay, the `colluding` add no noise; all the others do.
    """
    server, noise = run.server, run.server.noise
    if noise is None:
        return None
    survivors = max(1, int(len(run.cohort(0)) * (1 - run.options.dropout)) - colluding)
    accountant = Accountant(int(server.upload_rows.sum()), server.code_bits, server.max_rows, noise, survivors)
    loss = accountant.loss(run.finished_rounds)
    return {
        "epsilon": loss.epsilon(DELTA),
        "delta": DELTA,
        "rho": loss.rho,
        "rounds": run.finished_rounds,
        "honest_devices": survivors,
    }
