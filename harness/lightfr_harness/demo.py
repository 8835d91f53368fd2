"""make demo: train on a generated catalogue and watch one device's recommendations become its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from lightfr import UserCode, __version__, _kernel, recommend
from lightfr_harness.datasets import Split
from lightfr_harness.fleet import Fleet, RunOptions, TrainingRun
from lightfr_harness.runs.options import TrainOptions
from lightfr_harness.runs.scoring import judge_popularity
from lightfr_harness.runs.train import judge, load_split, make_server

OPTIONS = TrainOptions(rounds=30, recency=True)
SHOWN = 5


def run(console: Console, out: Path) -> None:
    """Generate, train, show, save."""
    console.print(f"[bold]lightfr {__version__}[/] on {_kernel.isa_name()}: 64-bit codes, everything generated here\n")
    split = load_split(OPTIONS)
    if not isinstance(split, Split):
        raise TypeError("the demo needs a leave-last-out split")
    train = split.train
    console.print(f"synthetic catalogue: {train.n_users:,} devices, {train.n_items:,} items, {len(train):,} ratings")
    server, fleet = make_server(OPTIONS, train), Fleet.of(train, OPTIONS.bits, OPTIONS.seed)
    training = TrainingRun(server, fleet, RunOptions(OPTIONS.rounds, OPTIONS.fraction, 0.0, OPTIONS.seed))
    before, untrained = _recommendations(training), judge(OPTIONS, training, split)
    _train(training, split, console)
    trained, popular = judge(OPTIONS, training, split), judge_popularity(train, split.test)
    console.print(_accuracy(untrained, popular, trained))
    console.print(_before_and_after(before, _recommendations(training), train.item_ids))
    _explain_bytes(training, console)
    out.mkdir(parents=True, exist_ok=True)
    (out / "items.codes").write_bytes(server.codes.tobytes())
    console.print(
        f"the learned matrix: {out / 'items.codes'} ({server.codes.nbytes:,} bytes, memory-mapped by ItemCodes.open)"
    )


def _train(training: TrainingRun, split: Split, console: Console) -> None:
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[accuracy]}"), console=console, transient=True) as progress:
        task = progress.add_task("training", total=training.options.rounds, accuracy="")
        for finished in training:
            if finished % 5 == 0:
                metrics = judge(OPTIONS, training, split)
                progress.update(task, accuracy=f"HR@10 {metrics.hr:.3f}")
            progress.update(task, completed=finished)


def _recommendations(training: TrainingRun) -> list[int]:
    """What the first device would show now: fitted and ranked on the device, its own ratings left out."""
    model, device = training.published(), training.fleet.devices[0]
    code: UserCode = device.code_for_use(model, recency=OPTIONS.recency)
    rated = device.interactions.arrays()[0]
    return [ranked.item_index for ranked in recommend(code, model.codes, SHOWN, rated=rated)]


def _accuracy(untrained: Any, popular: Any, trained: Any) -> Table:
    table = Table("", "HR@10", "NDCG@10", title="finding each user's next item among 50")
    for name, metrics in (("random item codes", untrained), ("popularity list", popular), ("learned codes", trained)):
        table.add_row(name, f"{metrics.hr:.3f}", f"{metrics.ndcg:.3f}")
    return table


def _before_and_after(before: list[int], after: list[int], item_ids: list[str]) -> Table:
    table = Table("", "before training", "after training", title="one device's recommendations")
    for place, (old, new) in enumerate(zip(before, after, strict=True), start=1):
        table.add_row(str(place), item_ids[old], item_ids[new])
    return table


def _explain_bytes(training: TrainingRun, console: Console) -> None:
    traffic = training.traffic
    up, down = traffic.up_bytes / traffic.device_rounds, traffic.down_bytes / traffic.device_rounds
    rate = traffic.device_rounds / sum(training.seconds.values())
    console.print(
        f"a device round: {up:,.0f} bytes up, {down:,.0f} bytes down; {rate:,.0f} device rounds per CPU second\n"
        "uploads in this demo are in the clear, which is not private: see README, Privacy"
    )
