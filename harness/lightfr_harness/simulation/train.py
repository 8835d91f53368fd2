"""One training run from options to record."""

from __future__ import annotations

import platform
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from lightfr import __version__, _kernel
from lightfr.errors import InvalidInputError
from lightfr.secagg.vector import evaluation_blocks
from lightfr_harness.data import CatalogueSplit, Ratings, Split, by_time_80_10_10, generate, leave_last_out, load
from lightfr_harness.data.evaluation import CatalogueMetrics, Metrics
from lightfr_harness.records import EngineFigures, Look, PrivacyLossFigures, TrainRecord
from lightfr_harness.server.artifacts import make_bitmap
from lightfr_harness.server.rules import AggregationRule, CatalogueRule, PaperRule
from lightfr_harness.simulation import paper
from lightfr_harness.simulation.accountant import Accountant
from lightfr_harness.simulation.choosing import rankings_of
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.judging import Judged, accuracy_of, judge
from lightfr_harness.simulation.options import DELTA, EVALUATIONS, FIXED_CODES, TrainOptions, survivors_of
from lightfr_harness.simulation.training import RunOptions, TrainingRun, refresh_gate

# Called with the finished rounds, parts of one included, all rounds, and the accuracy when it was just measured.
Progress = Callable[[float, int, Look | None], None]
ROUNDS_BETWEEN_LOOKS = 5


@dataclass(frozen=True)
class Trained:
    """What a run leaves behind."""

    record: TrainRecord
    server: AggregationRule
    item_ids: list[str]

    def save(self, folder: Path) -> None:
        """Write the codes as devices download them, their RoundModel and the item ids, one per line by index.

        `open_rows.bitmap` says which items have rows of their own; without that file all have.
        """
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "items.codes").write_bytes(self.server.codes.tobytes())
        if self.server.has_shared_row:
            (folder / "open_rows.bitmap").write_bytes(make_bitmap(self.server.open_rows))
        else:
            # That of an earlier model would say of this one's rows whose they are.
            (folder / "open_rows.bitmap").unlink(missing_ok=True)
        (folder / "round_model.bin").write_bytes(self.server.model().SerializeToString())
        (folder / "item_ids.txt").write_text("".join(f"{item_id}\n" for item_id in self.item_ids))


def load_split(options: TrainOptions) -> Split | CatalogueSplit:
    """Read or generate the data and split it; a prepared split is taken as it is."""
    if options.data is None:
        loaded: Ratings | Split = generate(options.synthetic, seed=options.seed)
    else:
        loaded = load(options.data, options.format, **options.data_options)
    ratings = loaded.train if isinstance(loaded, Split) else loaded
    if options.recency in ("weak", "strong") and not ratings.has_times:
        raise InvalidInputError("the ratings have no times, so none is newer than another: leave out --recency")
    if options.positives == "all":
        ratings = replace(ratings, rating=np.full(len(ratings), ratings.rating_max))
    if isinstance(loaded, Split):
        return replace(loaded, train=ratings)
    loaded = ratings
    return by_time_80_10_10(loaded) if options.split == "80-10-10" else leave_last_out(loaded)


def make_server(options: TrainOptions, train: Ratings) -> AggregationRule:
    """The aggregation rule that the options ask for. The gate's counts are given; with an epsilon devices count."""
    if options.objective == "catalogue":
        noise = options.noise(train.n_users)
        catalogue = CatalogueRule(
            train.item_counts() if noise is None else np.zeros(train.n_items, np.int64),
            options.bits,
            upload_kind=options.upload_kind,
            gate=options.gate or 0,
            max_rows=options.max_rows or 0,
            seed=options.seed,
            privacy_mode=options.privacy_mode,
            noise=noise,
        )
        if noise is not None and catalogue.gate > 1:
            refresh_gate(catalogue, Fleet.of(train, options.bits, options.seed), options.seed)
        return catalogue
    return PaperRule(
        train.item_counts(),
        options.bits,
        regularization=options.regularization,
        upload_kind=options.upload_kind,
        gate=options.gate or 0,
        max_rows=options.max_rows or 0,
        seed=options.seed,
    )


def make_run(options: TrainOptions, train: Ratings) -> TrainingRun:
    """A run before its first round. `init` has codes cut from factors on both sides; it and `random` have no rounds."""
    server, fleet = make_server(options, train), Fleet.of(train, options.bits, options.seed)
    if options.engine == "ray":
        from lightfr_harness.simulation.ray_fleet import RayFleet

        fleet = RayFleet(fleet, options.workers, options.address)
    if options.aggregate == "init":
        users, items = paper.quantised_factors(train, options.bits, options.seed)
        server.set_codes(items)
        fleet.restore(users)
    rounds = 0 if options.aggregate in FIXED_CODES else options.rounds
    plan = RunOptions(rounds, options.fraction, options.dropout, options.seed, masked=not options.unmasked)
    return TrainingRun(server, fleet, plan, options.checkpoint)


def train(options: TrainOptions, progress: Progress | None = None) -> Trained:
    """Train and judge. With `progress`, accuracy is also measured every few rounds, and the record has its history."""
    started = time.process_time()
    split = load_split(options)
    loaded = time.process_time()
    run = make_run(options, split.train)
    try:
        return _trained(
            options, split, run, {"load": loaded - started, "setup": time.process_time() - loaded}, progress
        )
    finally:
        run.fleet.close()


def _trained(
    options: TrainOptions,
    split: Split | CatalogueSplit,
    run: TrainingRun,
    before: dict[str, float],
    progress: Progress | None,
) -> Trained:
    rounds = run.options.rounds
    history: list[Look] = []
    if progress is not None and run.finished_rounds < rounds:
        history.append(_look(run.finished_rounds, judge(options, run, split)))
    if progress is not None:
        run.tell = lambda part: progress(run.finished_rounds + part, rounds, None)
    for finished in run:
        if progress is not None:
            is_due = finished % ROUNDS_BETWEEN_LOOKS == 0 and finished < rounds
            if is_due:
                history.append(_look(finished, judge(options, run, split)))
            progress(finished, rounds, history[-1] if is_due else None)
    trained = time.process_time()
    judged = Judged.of(options, run, split)
    seconds = {**before, **run.seconds, "evaluate": time.process_time() - trained}
    history.append(_look(run.finished_rounds, judged.metrics))
    return Trained(_record(options, split, run, judged, history, seconds), run.server, split.train.item_ids)


def _look(finished: int, metrics: Metrics | CatalogueMetrics) -> Look:
    first = metrics.hr if isinstance(metrics, Metrics) else metrics.recall
    return {"round": finished, "hr": first, "ndcg": metrics.ndcg}


def _record(
    options: TrainOptions,
    split: Split | CatalogueSplit,
    run: TrainingRun,
    judged: Judged,
    history: list[Look],
    seconds: dict[str, float],
) -> TrainRecord:
    device_rounds = max(1, run.traffic.device_rounds)
    round_seconds = run.seconds["devices"] + run.seconds["server"]
    return TrainRecord(
        **accuracy_of(judged.metrics),
        popularity=judged.popularity,
        by_count=judged.by_count,
        as_given=judged.as_given,
        history=history,
        up_bytes_per_device_round=run.traffic.up_bytes / max(1, device_rounds - run.traffic.dropped),
        down_bytes_per_device_round=run.traffic.down_bytes / device_rounds,
        device_rounds=run.traffic.device_rounds,
        device_rounds_per_second=_timed_device_rounds(run) / round_seconds if round_seconds else None,
        engine=_engine(run),
        dropped=run.traffic.dropped,
        abandoned_rounds=run.traffic.abandoned,
        seconds=seconds,
        data={
            "users": split.train.n_users,
            "items": split.train.n_items,
            "train_ratings": len(split.train),
            "duplicates_dropped": split.train.n_duplicates,
            "zeros_skipped": split.train.n_zeros,
            "negatives_dropped": split.n_negatives_dropped if isinstance(split, Split) else 0,
            "held_out": split.held_out,
        },
        open_rows=int(np.count_nonzero(run.server.open_rows)),
        privacy_loss=privacy_loss(run, evaluations=EVALUATIONS if options.ranking is None else 0),
        paper=paper.compare_with_stated(options, getattr(judged.metrics, "hr", None), judged.metrics.ndcg),
        options={key: str(value) if isinstance(value, Path) else value for key, value in asdict(options).items()},
        isa=_kernel.isa_name(),
        machine=platform.machine(),
        lightfr=__version__,
    )


def _timed_device_rounds(run: TrainingRun) -> int:
    """Those of this process: what a checkpoint brought was not timed here."""
    return run.traffic.device_rounds - run.resumed_device_rounds


def _engine(run: TrainingRun) -> EngineFigures:
    """Where the devices lived, and what this process and the others needed."""
    usage = run.fleet.usage()
    rate = _timed_device_rounds(run) / run.wall_seconds if run.wall_seconds else None
    return {
        "workers": len(usage),
        "device_rounds_per_wall_second": rate,
        "worker_cpu_seconds": [seconds for seconds, _ in usage],
        "worker_peak_bytes": [peak for _, peak in usage],
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def privacy_loss(run: TrainingRun, colluding: int = 0, evaluations: int = 0) -> PrivacyLossFigures | None:
    """The loss of a user who took part in every round, in a gate refresh if there was one, and in the evaluations.

    None without epsilon.

    Dropouts are those that were asked for. Of the devices that stay, the `colluding` add no noise; all the others do.
    """
    server, noise = run.server, run.server.noise
    if noise is None:
        return None
    survivors = max(1, survivors_of(len(run.cohort(0)), run.options.dropout) - colluding)
    accountant = Accountant(int(server.open_rows.sum()), server.code_bits, server.max_rows, noise, survivors)
    loss = accountant.loss(run.finished_rounds)
    if server.gate > 1:
        loss += accountant.refresh_loss(server.n_items, max(1, len(run.fleet) // 2 - colluding))
    if evaluations:
        (block,) = evaluation_blocks(len(rankings_of(server).candidates), len(run.cohort(0)), noise)
        loss += accountant.refresh_loss(block.count, survivors).times(evaluations)
    return {
        "epsilon": loss.epsilon(DELTA),
        "delta": DELTA,
        "rho": loss.rho,
        "rounds": run.finished_rounds,
        "honest_devices": survivors,
    }
