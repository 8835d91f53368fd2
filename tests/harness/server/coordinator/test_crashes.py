"""A crash at any step, in any order of events: nothing acknowledged is lost, nothing counts twice, nothing is torn."""

import asyncio
import shutil
import sqlite3
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.server.coordinator import database
from lightfr_harness.server.coordinator.database import StorageError
from lightfr_harness.server.coordinator.phases import UPLOADING
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.rounds import ABANDONED
from lightfr_harness.server.coordinator.storage import RoundEnd
from tests.harness.server.coordinator.helpers import (
    Clock,
    Crash,
    Small,
    body_keys,
    feed,
    is_in_files,
    oracle,
    run,
    same_state,
    small,
    upload_request,
)

PLAN = Plan(goal=3, over_selection=1.4, minimum=2, deadline_seconds=60)
DEVICES = "abcdef"


class CrashAt:
    """Strikes once, at the n-th step from when it is armed."""

    def __init__(self):
        self.left = None
        self.struck = ""

    def arm(self, after):
        self.left, self.struck = after, ""

    def __call__(self, step):
        if self.left is None:
            return
        if self.left == 0:
            self.left, self.struck = None, step
            raise Crash(step)
        self.left -= 1


class Story:
    """A coordinator that is crashed and restarted, and what its devices were promised."""

    def __init__(self, folder, crash):
        self.folder, self.crash, self.clock = folder, crash, Clock()
        self.expected = oracle()
        self.places, self.kept = {}, {}
        self.seed = 0
        self.round_id = None

    async def start(self):
        while True:
            self.it = Small(self.folder, self.clock, PLAN, crash_point=self.crash)
            try:
                await self.it.coordinator.start()
                break
            except (Crash, StorageError):
                await self.it.crash()
        if self.round_id is None:
            self._note_round()

    async def restart(self):
        await self.it.crash()
        await self.start()
        await self._settle_unanswered()
        await self.check_ended()

    def _note_round(self):
        current = self.it.coordinator.book.current
        if current.round_id != self.round_id:
            self.round_id, self.places, self.kept = current.round_id, {}, {}

    async def _settle_unanswered(self):
        """An upload without an answer may be in or out, but status and receipt must agree on it."""
        for device, (body, answered) in list(self.kept.items()):
            status = await self.it.status(device, self.round_id)
            assert status.has_your_upload or not answered
            if status.has_your_upload:
                self.kept[device] = (body, True)
            else:
                del self.kept[device]

    async def do(self, action, device):
        try:
            await getattr(self, action)(device)
            await self.end_due()
        except (Crash, StorageError):
            await self.restart()
            await self.end_due()

    async def check_in(self, device):
        answer = await self.it.check_in(device)
        if answer.HasField("assignment"):
            assert answer.assignment.round_id == self.round_id
            self.places[device] = answer.assignment
        else:
            assert device not in self.places or device in self.kept

    async def upload(self, device):
        if device not in self.places or device in self.kept:
            return
        self.seed += 1
        body = upload_request(self.places[device], self.seed)
        self.kept[device] = (body, False)
        await self.it.upload(device, body)
        self.kept[device] = (body, True)

    async def repeat(self, device):
        if device in self.kept:
            body, _ = self.kept[device]
            await self.it.upload(device, body)

    async def conflict(self, device):
        if device in self.kept:
            with pytest.raises(Refusal) as refused:
                await self.it.upload(device, upload_request(self.places[device], 10**9))
            assert refused.value.name == "upload_conflict"

    async def wait(self, _):
        self.clock.now += 61

    async def restart_now(self, _):
        await self.restart()

    async def arm(self, device):
        self.crash.arm(3 * DEVICES.index(device))

    async def end_due(self):
        while await self.it.coordinator.end_due_round():
            await self.check_ended()

    async def check_ended(self):
        """If the round of our promises has ended, its version is exactly what the rule makes of them."""
        if self.it.coordinator.book.current.round_id != self.round_id:
            status = await self.it.status("a", self.round_id)
            bodies = [body for body, answered in self.kept.values() if answered]
            assert status.upload_count == len(bodies)
            if status.state == pb.ROUND_STATE_FINISHED:
                feed(self.expected, bodies)
            else:
                assert status.state == pb.ROUND_STATE_ABANDONED
                assert len(bodies) < PLAN.minimum
        self._note_round()
        assert same_state(self.it.coordinator._rule, self.expected) or self._is_aggregating()

    def _is_aggregating(self):
        return self.it.coordinator.book.current.state == pb.ROUND_STATE_AGGREGATING


ACTIONS = st.tuples(
    st.sampled_from(
        ["check_in", "check_in", "upload", "upload", "upload", "repeat", "conflict", "wait", "restart_now", "arm"]
    ),
    st.sampled_from(DEVICES),
)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.lists(ACTIONS, min_size=10, max_size=60))
def test_any_sequence_with_crashes_gives_exactly_the_acknowledged_sums(actions):
    async def story(folder, crash):
        it = Story(folder, crash)
        await it.start()
        for device in DEVICES[:4]:
            await it.do("check_in", device)
        for action, device in actions:
            await it.do(action, device)
        await it.it.coordinator.close()

    crash = CrashAt()
    with tempfile.TemporaryDirectory() as folder:
        run(story(Path(folder) / "f", crash))


@pytest.mark.parametrize("first", range(0, 48, 12))
def test_a_crash_at_each_step_of_a_whole_round_is_survived(tmp_path, first):
    """From an empty folder to version 2, once per step: 42 steps, 12 to a test."""
    crash = CrashAt()

    async def story(after):
        it = Story(tmp_path / str(after), crash)
        crash.arm(after)
        await it.start()
        for _ in range(2):
            for device in "abc":
                await it.do("check_in", device)
                await it.do("upload", device)
        await it.do("check_in", "d")
        assert it.it.coordinator.version.manifest.model_version >= 2
        assert same_state(it.it.coordinator._rule, it.expected)
        await it.it.coordinator.close()
        names = {path.name for path in (tmp_path / str(after)).rglob("*")}
        assert not [name for name in names if name.startswith(".unfinished")]
        crash.left = None

    for after in range(first, first + 12):
        run(story(after))


def test_uploads_are_gone_from_every_file_once_their_round_has_ended(tmp_path):
    """Bodies are user data: no file ever holds them in the clear, nor afterwards what could decrypt them."""

    async def story():
        it = Small(tmp_path / "f", Clock(), PLAN)
        await it.coordinator.start()
        places = [await it.assignment(device) for device in "abc"]
        bodies = [upload_request(place, n) for n, place in enumerate(places)]
        for device, body in zip("abc", bodies, strict=True):
            await it.upload(device, body)
        planes = [pb.UploadRequest.FromString(body).row_update.ternary.nonzero for body in bodies]
        longest = max(planes, key=len)
        assert len(longest) >= 8
        assert not is_in_files(tmp_path / "f", longest)
        (key,) = body_keys(tmp_path / "f")
        assert is_in_files(tmp_path / "f", key)
        assert await it.coordinator.end_due_round()
        await it.coordinator.close()
        assert not is_in_files(tmp_path / "f", key)
        assert key not in body_keys(tmp_path / "f")

    run(story())


def test_a_backup_that_is_being_made_as_a_round_ends_keeps_nothing_in_the_log_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "_LOG_SECONDS", 0.05)

    async def story():
        async with small(tmp_path / "f", goal=1) as it:
            await it.upload("a", upload_request(await it.assignment("a"), 1))
            (key,) = body_keys(tmp_path / "f")
            with closing(sqlite3.connect(tmp_path / "f" / "coordinator.sqlite", isolation_level=None)) as reader:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM rounds").fetchone()  # As a backup reads, page after page.
                assert await it.coordinator.end_due_round()
                assert key not in body_keys(tmp_path / "f")
                assert is_in_files(tmp_path / "f", key)
                # Nobody waits for the backup.
                await it.upload("b", upload_request(await it.assignment("b"), 2))
            while is_in_files(tmp_path / "f", key):
                await asyncio.sleep(0.05)

    run(story())


def test_what_a_killed_process_left_in_the_log_goes_with_the_next_start(tmp_path):
    async def story():
        folder, killed = tmp_path / "f", tmp_path / "killed"
        async with small(folder, goal=1) as it:
            await it.upload("a", upload_request(await it.assignment("a"), 1))
            (key,) = body_keys(folder)
            with closing(sqlite3.connect(folder / "coordinator.sqlite", isolation_level=None)) as reader:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM rounds").fetchone()
                assert await it.coordinator.end_due_round()
                shutil.copytree(folder, killed)
        assert is_in_files(killed, key)
        async with small(killed, goal=1) as it:
            await it.check_in("a")
            await it.coordinator._storage.settled()
            while is_in_files(killed, key):
                await asyncio.sleep(0.05)

    run(story())


def test_an_upload_is_written_twice_and_not_once_more_to_be_forgotten(tmp_path):
    """To the database's log and to the database; overwriting it when the round ends would be twice again."""

    def written_bytes():
        return int(Path("/proc/self/io").read_text().split("wchar:")[1].split()[0])

    async def story():
        it = Small(tmp_path / "f", Clock(), PLAN)
        await it.coordinator.start()
        storage, current, size = it.coordinator._storage, it.coordinator.book.current, 500_000
        current.goal = 4
        before = written_bytes()
        for number in range(4):
            await storage.deliver(current, UPLOADING, f"device-{number}", bytes(32), bytes(size), bytes(16))
        current.state, current.ended_at = ABANDONED, 1.0
        await storage.end_round(RoundEnd([current], None, None, [], frozenset()))
        await it.coordinator.close()
        assert 2 * 4 * size < written_bytes() - before < 2.5 * 4 * size

    run(story())


def test_a_crowd_shares_transactions(tmp_path):
    async def story():
        transactions = []
        it = Small(tmp_path / "f", Clock(), Plan(goal=500), crash_point=transactions.append)
        await it.coordinator.start()
        transactions.clear()
        await asyncio.gather(*(it.assignment(f"device-{n}") for n in range(300)))
        await it.coordinator.close()
        assert 0 < transactions.count("transaction is durable") < 30

    run(story())


def test_a_failing_disk_is_answered_by_errors_and_ends_the_coordinator(tmp_path):
    is_full = threading.Event()

    async def story():
        it = Small(tmp_path / "f", Clock(), PLAN, crash_point=failing)
        await it.coordinator.start()
        place = await it.assignment("a")
        is_full.set()
        with pytest.raises(StorageError):
            await it.upload("a", upload_request(place, 1))
        is_full.clear()
        assert it.coordinator.failed.is_set()
        with pytest.raises(StorageError):
            await it.assignment("b")
        with pytest.raises(StorageError):
            await it.assignment("a")
        await it.coordinator.close()
        assert "storage_failed" in it.log.getvalue()

    def failing(step):
        if is_full.is_set() and step == "transaction ends":
            raise sqlite3.OperationalError("database or disk is full")

    run(story())
