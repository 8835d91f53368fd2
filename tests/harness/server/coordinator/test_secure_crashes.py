"""A crash at any step of a round of secure aggregation: one roster, one of each set, one sum."""

import asyncio
import sqlite3
import threading

import pytest

from lightfr_harness.server.coordinator.database import StorageError
from lightfr_harness.server.coordinator.folder import FolderError
from lightfr_harness.server.coordinator.plan import Plan
from tests.harness.server.coordinator.helpers import Clock, Crash, oracle, run, same_state
from tests.harness.server.coordinator.secure import STEPS, SecureDevice, SecureSmall, secure, update_of
from tests.harness.server.coordinator.test_crashes import CrashAt

PLAN = Plan(goal=4, over_selection=1.0, minimum=2)
# Of what a step says, the part that must be the same for everybody; an inbox is for one device.
COMMON = ("share", "included", "upload", "survivors", "reveal")


class StubbornDevice(SecureDevice):
    """Sends the same bytes until they are answered, and writes down what it is told about the round."""

    def __init__(self, seed, call, told):
        super().__init__(seed, call)
        self.told, self.pending, self.is_done = told, None, False

    async def turn(self):
        if self.pending:
            await self.call(self.pending, self.sent[self.pending])
            self.pending = None
        elif not hasattr(self, "place"):
            await self.check_in()
        elif not self.sent:
            await self.deliver()
        else:
            await self.next_step()

    async def next_step(self):
        step = await self.step()
        name = step.WhichOneof("step")
        self.is_done = name == "done"
        if name in COMMON:
            self.told.add((self.place.round_id, name, step.SerializeToString()))
        if name not in ("done", "wait_ms"):
            await self.deliver(step)

    async def send(self, method, request):
        self.pending = method
        await super().send(method, request)
        self.pending = None


class Story:
    def __init__(self, folder, crash):
        self.folder, self.crash, self.clock = folder, crash, Clock()
        self.told = set()
        self.devices = [StubbornDevice(seed, self.call, self.told) for seed in range(4)]

    async def call(self, device, method, body):
        return await self.it.call(device, method, body)

    async def start(self):
        while True:
            self.it = SecureSmall(self.folder, self.clock, PLAN, crash_point=self.crash)
            try:
                return await self.it.coordinator.start()
            except (Crash, StorageError):
                await self.it.crash()

    async def run(self):
        await self.start()
        while not all(device.is_done for device in self.devices):
            outcomes = await asyncio.gather(*(d.turn() for d in self.devices), return_exceptions=True)
            failures = [outcome for outcome in outcomes if outcome is not None]
            try:
                assert all(isinstance(failure, StorageError) for failure in failures), failures
                await self.it.go_on()
            except (Crash, StorageError):
                failures.append("")
            if failures:
                await self.it.crash()
                await self.start()
        await self.finish()

    async def finish(self):
        """The crash may strike in what follows the last answer."""
        while self.it.coordinator.version.manifest.model_version == 1:
            try:
                await self.it.go_on()
            except (Crash, StorageError):
                await self.it.crash()
                await self.start()


@pytest.mark.parametrize("first", range(0, 90, 10))
def test_a_crash_at_each_step_of_a_whole_round_leads_to_the_same_roster_and_sum(tmp_path, first):
    crash = CrashAt()
    expected = oracle()
    for seed in range(4):
        expected.add(update_of(seed).SerializeToString())
    expected.finish_round()

    async def story(after):
        it = Story(tmp_path / str(after), crash)
        crash.arm(after)
        await it.run()
        # One roster, one of each set and of its signers, whatever was lost in between.
        assert len(it.told) == len(COMMON)
        assert same_state(it.it.coordinator._rule, expected)
        await it.it.coordinator.close()
        crash.left = None

    for after in range(first, first + 10):
        run(story(after))


def test_nobody_hears_of_a_roster_before_it_is_durable(tmp_path):
    may_write = threading.Event()
    may_write.set()

    async def story():
        async with secure(tmp_path, crash_point=lambda step: may_write.wait(20)) as it:
            devices = it.devices(6)
            for device in devices:
                await device.check_in()
                await device.deliver()
            may_write.clear()
            going_on = asyncio.create_task(it.go_on())
            asked = asyncio.create_task(devices[0].step(max_wait_ms=20_000))
            await asyncio.sleep(0.05)
            assert (await devices[1].step()).HasField("wait_ms")
            assert not asked.done()
            may_write.set()
            assert (await asked).HasField("share")
            await going_on

    run(story())


@pytest.mark.parametrize("until", STEPS[:-1])
def test_each_phase_is_resumed_with_its_roster_and_its_time(tmp_path, until):
    async def story():
        clock = Clock()
        async with secure(tmp_path, clock=clock) as it:
            devices = await it.run_steps(it.devices(6), until, absent={until: [3]})
            before = it.coordinator.book.current
            step = await devices[0].step()
            assert not step.HasField("wait_ms")
        async with secure(tmp_path, clock=clock) as again:
            after = again.coordinator.book.current
            assert after.cohort.settled == before.cohort.settled
            assert (after.deadline, after.first_place_at) == (before.deadline, before.first_place_at)
            devices[0]._call = again.call
            assert await devices[0].step() == step

    run(story())


@pytest.mark.parametrize(
    ("until", "sql"),
    [
        ("AdvertiseKeys", "DELETE FROM deliveries WHERE rowid = 1"),
        ("AcknowledgeShares", "DELETE FROM deliveries WHERE phase = 2 AND device = 'device-0'"),
        ("AcknowledgeShares", "DELETE FROM deliveries WHERE phase = 3 AND device = 'device-0'"),
        ("SignIncluded", "DELETE FROM deliveries WHERE phase = 4 AND device IN ('device-0', 'device-1', 'device-2')"),
        ("Upload", "DELETE FROM deliveries WHERE phase = 5 AND device = 'device-0'"),
        ("Upload", "UPDATE deliveries SET body = x'ff' WHERE phase = 5 AND device = 'device-0'"),
        ("Upload", "UPDATE deliveries SET body = zeroblob(length(body)) WHERE phase = 5 AND device = 'device-0'"),
        ("Upload", "DELETE FROM body_keys"),
    ],
)
def test_a_folder_that_would_lead_to_another_set_than_was_signed_is_refused(tmp_path, until, sql):
    async def story():
        async with secure(tmp_path) as it:
            await it.run_steps(it.devices(6), until)
        with sqlite3.connect(tmp_path / "coordinator.sqlite") as connection:
            connection.execute(sql)
        connection.close()
        with pytest.raises(FolderError):
            async with secure(tmp_path):
                pass

    run(story())
