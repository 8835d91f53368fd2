"""The demo, scene by scene."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lightfr import __version__, _kernel
from lightfr._wire.channel import Channel
from lightfr.cohorts import DEFAULT_MINIMUM_COHORT
from lightfr.errors import InvalidInputError
from lightfr.model.folder import LoadedModel
from lightfr.rankings import GROUPS
from lightfr.training import PublishedModel
from lightfr_harness.data import Split
from lightfr_harness.data.evaluation import Metrics
from lightfr_harness.demo import device as device_script
from lightfr_harness.demo import upload
from lightfr_harness.demo.data import Material, generated, own
from lightfr_harness.demo.page import write_page
from lightfr_harness.demo.shown import sentences, show
from lightfr_harness.devices.link import Link, Loop
from lightfr_harness.records import DemoRecord, from_dict
from lightfr_harness.reports.pages import save
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess, ServerFailedError
from lightfr_harness.simulation.choosing import Users
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.remote import RemoteFleet
from lightfr_harness.simulation.scoring import figures, judge_popularity, means, users_of

_TRAINING_SECONDS_AT_MOST = 1800
# On a busy machine a step of 264 devices takes longer than it would among real ones, which do not share two cores.
_STEP_SECONDS_AT_MOST = 120
INTERRUPTED_EXIT = 130
# Between two offers to take part while there is no place for the fleet.
_PAUSE_SECONDS = 0.3
# What a device process says when it fails, in its folder.
ERRORS = "errors.txt"


@dataclass(frozen=True)
class Scene:
    """How large the demo is."""

    # Eight genres of 70 titles: few enough for the codes to learn which titles go together while somebody waits.
    synthetic: str = "943x560x60000"
    # Somebody's own ratings and titles instead.
    data: Path | None = None
    titles: Path | None = None
    rounds: int = 8
    processes: int = 16
    # Places in a round; half of the processes fill some of them, and the fleet the rest.
    cohort: int = 264
    # What every device insists on; its default is what real apps have.
    minimum_cohort: int = DEFAULT_MINIMUM_COHORT
    seed: int = 0

    @property
    def users_at_least(self) -> int:
        """The fleet must be able to fill a round beside half of the processes."""
        return self.cohort + (self.processes + 1) // 2

    def material(self) -> Material:
        """Generate the ratings, or read them; InvalidInputError when they do not make a round."""
        made = own(self.data, self.titles) if self.data else generated(self.synthetic, self.seed)
        users, least = made.split.train.n_users, self.users_at_least
        if users < least or not len(made.split.test):
            raise InvalidInputError(
                f"the demo needs the ratings of at least {least} users, some with three or more, but there are {users} "
                f"users: no device takes part in a round of fewer than {self.minimum_cohort}"
            )
        return made


@dataclass
class Outcome:
    """What came of it so far; in the end a DemoRecord has the same fields."""

    users: int
    items: int
    ratings: int
    popularity: dict[str, float]
    accuracy: list[dict[str, float]] = field(default_factory=list)
    device: dict[str, Any] = field(default_factory=dict)
    upload: dict[str, Any] = field(default_factory=dict)
    uploads: int = 0
    rounds: int = 0
    cohort: int = 0
    minimum_cohort: int = 0
    processes: int = 0
    process_rounds: int = 0
    process_up_bytes: int = 0
    process_down_bytes: int = 0
    codes_bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


def main(report: Path, json_file: str | None = None, scene: Scene | None = None) -> int:
    """Run the demo for the command line; the exit code. Ctrl-C ends everything that it started, and says so."""

    def interrupt(number: int, frame: object) -> None:
        # Once is enough: a second Ctrl-C must not disturb the end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    # A record that goes to standard output is alone there.
    console = Console(stderr=json_file == "-")
    try:
        run(console, report, json_file, scene)
    except KeyboardInterrupt:
        shutil.rmtree(report / "work", ignore_errors=True)
        console.print("Interrupted: the demo has ended, and with it the coordinator and all devices.")
        return INTERRUPTED_EXIT
    return 0


def run(console: Console, report: Path, json_file: str | None = None, scene: Scene | None = None) -> None:
    """Generate, serve, enrol, train, show, and write the record and its page."""
    scene = scene or Scene()
    console.print(f"[bold]lightfr {__version__}[/] on {_kernel.isa_name()}: 64-bit codes, everything made here\n")
    with console.status("making users, items and ratings"):
        material = scene.material()
    train = material.split.train
    console.print(escape(material.source), highlight=False)
    console.print(f"{train.n_users:,} users, {train.n_items:,} items, {len(train):,} ratings")
    outcome = Outcome(train.n_users, train.n_items, len(train), asdict(judge_popularity(train, material.split.test)))
    work = report / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    with ExitStack() as stack:
        with console.status("starting the coordinator"):
            authority = stack.enter_context(closing(Authority.init(work / "authority", ["localhost"])))
            counts = zip(train.item_ids, train.item_counts().tolist(), strict=True)
            (work / "items.tsv").write_text("".join(f"{item}\t{count}\n" for item, count in counts))
            how: dict[str, Any] = {"host": "localhost", "privacy": "secagg", "rounds": scene.rounds}
            how |= {"goal": scene.cohort, "over_selection": 1.0, "minimum": scene.minimum_cohort}
            # One evaluation by so few devices is never sure, and would leave everybody with popularity.
            how |= {"evaluate_every": 0}
            how["deadline_seconds"] = _STEP_SECONDS_AT_MOST
            process = CoordinatorProcess(work / "coordinator", authority.folder, work / "items.tsv", **how)
            coordinator = stack.enter_context(process)
        console.print(f"coordinator with its own CA: {coordinator.addresses['server']}")
        console.print(f"watch it while it trains:    {coordinator.addresses['operations']}")
        _perform(console, scene, material, authority, coordinator, work, outcome)
        page = urllib.request.urlopen(coordinator.addresses["operations"]).read()
        (report / "status.html").write_bytes(page)
    record = from_dict(DemoRecord, asdict(outcome))
    show(console, record)
    models, trust = work / "device0" / "data" / "models", work / "device0" / "trust.pem"
    write_page(report / "play.html", models, trust, material.titles, *sentences(record))
    matrix = _keep_matrix(work, report)
    save(record, json_file, report)
    play, about, data, codes = (
        escape(str(path)) for path in (report / "play.html", report / "demo.html", report / "demo.json", matrix)
    )
    console.print(f"\n[bold]play with it:        {play}[/] (open it in a browser: nothing leaves the page)")
    console.print(f"the report:          {about}")
    console.print(f"the record:          {data}")
    console.print(f"the learned matrix:  {codes} ({record.codes_bytes:,} bytes, memory-mapped by devices)")


def _perform(
    console: Console, scene: Scene, material: Material, authority: Authority, coordinator: CoordinatorProcess,
    work: Path, outcome: Outcome,
) -> None:  # fmt: skip
    started, split = time.monotonic(), material.split
    server = coordinator.addresses["server"]
    fleet = Fleet.of(split.train, 64, scene.seed)
    with (
        Loop() as loop,
        Link(loop, ("localhost", int(server.rsplit(":", 1)[1]))) as link,
        _device_processes() as processes,
    ):
        with console.status(f"enrolling {scene.processes} device processes and a fleet of {len(fleet):,} beside them"):
            invited = {"server": f"https://localhost:{link.port}", "enrollment": coordinator.addresses["enrollment"]}
            for number in range(scene.processes):
                folder = work / f"device{number}"
                processes.append(_start_device(folder, authority, invited, split, number, scene.minimum_cohort))
            devices = fleet.devices[scene.processes :]
            remote = RemoteFleet(devices, authority, server, work / "fleet", minimum_cohort=scene.minimum_cohort)
        outcome.seconds["enrol"] = time.monotonic() - started
        try:
            _train(console, scene, split, fleet, remote, coordinator, processes, outcome)
        finally:
            remote.close()
        with console.status("waiting for the device processes to end"):
            _gather(processes, work, material, outcome)
        outcome.process_up_bytes, outcome.process_down_bytes = link.counts()
    outcome.seconds["all"] = time.monotonic() - started


@contextmanager
def _device_processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Device processes, none of which outlives the demo."""
    processes: list[subprocess.Popen[str]] = []
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


def _start_device(
    folder: Path, authority: Authority, invited: dict[str, str], split: Split, user: int, minimum_cohort: int
) -> subprocess.Popen[str]:
    """Give a process its user's ratings and an invitation; the rest it does by itself."""
    folder.mkdir()
    invitation = authority.invite(invited["server"], invited["enrollment"], 600)
    (folder / "invitation.json").write_text(json.dumps(invitation))
    train = split.train
    order = train.chronological_order()
    mine = order[train.user_index[order] == user]
    rated = zip(train.item_index[mine].tolist(), train.rating[mine].tolist(), strict=True)
    ratings = [(train.item_ids[item], rating) for item, rating in rated]
    scale = [train.rating_min, train.rating_max]
    (folder / "ratings.json").write_text(json.dumps({"scale": scale, "ratings": ratings}))
    command = [sys.executable, device_script.__file__, str(folder), str(minimum_cohort)]
    with (folder / ERRORS).open("w") as errors:
        # A session of its own: Ctrl-C is for the demo, which then ends its devices.
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)


def _train(
    console: Console, scene: Scene, split: Split, fleet: Fleet, remote: RemoteFleet, coordinator: CoordinatorProcess,
    processes: list[subprocess.Popen[str]], outcome: Outcome,
) -> None:  # fmt: skip
    """Take part until the device processes have ended, which they do when the coordinator says that all is over."""
    rng = np.random.default_rng(scene.seed)
    started = time.monotonic()
    columns = (TextColumn("training with secure aggregation"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[accuracy]}"), console=console, transient=True) as progress:
        task = progress.add_task("training", total=scene.rounds, accuracy="")
        model = remote.sync()
        _look(split, fleet, model, coordinator, outcome)
        # The last device takes part in every round, since its uploads are looked at.
        watched, others = remote.devices[-1], len(remote.devices) - 1
        recorder = upload.UploadRecorder(watched.channel)
        watched.channel = cast("Channel", recorder)
        size = min(scene.cohort - scene.processes // 2 - 1, others)
        while any(process.poll() is None for process in processes):
            if time.monotonic() - started > _TRAINING_SECONDS_AT_MOST:
                raise ServerFailedError(f"{scene.rounds} rounds were not finished in half an hour on this machine")
            chosen = rng.choice(others, size, replace=False)
            uploads = remote.take_part([others, *chosen.tolist()])
            if not uploads:
                time.sleep(_PAUSE_SECONDS)
                continue
            outcome.uploads += uploads
            model = _next_version(remote, model)
            _look(split, fleet, model, coordinator, outcome)
            shown = f"HR@10 {outcome.accuracy[-1]['hr']:.3f}"
            done = model.manifest.model_version - 1
            progress.update(task, completed=done, accuracy=shown)
    outcome.upload = upload.compare(recorder.upload, watched.device, model)
    outcome.rounds, outcome.cohort, outcome.minimum_cohort = scene.rounds, scene.cohort, scene.minimum_cohort
    outcome.codes_bytes = model.manifest.message.codes.size_bytes
    outcome.seconds["train"] = time.monotonic() - started


def _next_version(remote: RemoteFleet, old: LoadedModel) -> LoadedModel:
    """Wait for the version that comes of the round, or for its deadline to pass."""
    version, ends = old.manifest.model_version, time.monotonic() + 20
    while (model := remote.sync()).manifest.model_version == version and time.monotonic() < ends:
        time.sleep(0.05)
    return model


def _look(split: Split, fleet: Fleet, model: LoadedModel, coordinator: CoordinatorProcess, outcome: Outcome) -> None:
    """Accuracy on each user's next item, ranked as the manifest says; also told to the coordinator's status page."""
    version = model.manifest.model_version
    if outcome.accuracy and outcome.accuracy[-1]["model_version"] == version:
        return
    # A copy, since the fleet's model must not be fitted from two places at a time.
    published = PublishedModel(model.codes, model.manifest.message.model)
    rankings = model.manifest.rankings
    users = Users(published, fleet, rankings, users_of(split.test))
    ways = users.chosen_ways([rankings.for_user(opinions) for opinions in GROUPS])
    metrics = means(figures(published, ways, split.test), split.test)
    if not isinstance(metrics, Metrics):
        raise TypeError("the demo needs a leave-last-out split")
    outcome.accuracy.append({"model_version": version, "hr": metrics.hr, "ndcg": metrics.ndcg})
    body = {"model_version": version, "users": len(ways), "hit_rate": metrics.hr, "ndcg": metrics.ndcg}
    request = urllib.request.Request(
        coordinator.addresses["operations"] + "/accuracy",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request).close()


def _gather(processes: list[subprocess.Popen[str]], work: Path, material: Material, outcome: Outcome) -> None:
    told = [(process.communicate()[0], process.returncode) for process in processes]
    failed = [number for number, (_, code) in enumerate(told) if code != 0]
    if failed:
        where = work / f"device{failed[0]}" / ERRORS
        raise ServerFailedError(f"{len(failed)} of {len(processes)} device processes failed; see {where}")
    facts = [json.loads(output) for output, _ in told]
    outcome.device = _one_device(facts, material)
    outcome.processes = len(facts)
    outcome.process_rounds = sum(fact["rounds"] for fact in facts)


def _one_device(facts: list[dict[str, Any]], material: Material) -> dict[str, Any]:
    """What is shown of one device: the first that recommends its user's held-out item, or else the first of all."""
    train, test = material.split.train, material.split.test
    held_out = {
        user: train.item_ids[item] for user, item in zip(test.user_index.tolist(), test.positives.tolist(), strict=True)
    }
    hits = [user for user, fact in enumerate(facts) if held_out.get(user) in fact["after"]]
    user = hits[0] if hits else 0
    mine = [row for row in train.chronological_order() if train.user_index[row] == user]
    middle = (train.rating_min + train.rating_max) / 2
    liked = [train.item_ids[train.item_index[row]] for row in reversed(mine) if train.rating[row] > middle]
    fact = facts[user]
    lists = {"liked": liked[: len(fact["after"])], "before": fact["before"], "after": fact["after"]}
    return {
        **{name: [str(material.title(item)) for item in items] for name, items in lists.items()},
        "held_out": str(material.title(held_out[user])) if user in held_out else "",
        "found": len(hits),
        "rounds": fact["rounds"],
    }


def _keep_matrix(work: Path, report: Path) -> Path:
    """Keep the codes of one device; the rest of the work folder goes."""
    models = work / "device0" / "data" / "models"
    current = max((file for file in models.iterdir() if file.name != "current"), key=lambda file: file.stat().st_mtime)
    shutil.copy(current, report / "items.codes")
    shutil.rmtree(work, ignore_errors=True)
    return report / "items.codes"
