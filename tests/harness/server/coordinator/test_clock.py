"""Somebody sets the system's clock: rounds go on."""

import asyncio

import pytest

from lightfr_harness.server.coordinator.clock import SteadyClock
from tests.harness.server.coordinator.helpers import Clock, run, small, upload_request
from tests.harness.server.coordinator.secure import STEPS, secure

HOUR = 3600.0


class Machine:
    """The two clocks of a machine; the one on the wall can be set."""

    def __init__(self):
        self.monotonic, self.wall = Clock(500.0), Clock()

    def pass_time(self, seconds):
        self.monotonic.now += seconds
        self.wall.now += seconds

    def clock(self):
        return SteadyClock(self.wall, self.monotonic)


def test_a_steady_clock_begins_with_the_time_of_day_and_goes_on_by_itself():
    machine = Machine()
    clock = machine.clock()
    assert clock() == machine.wall.now
    machine.pass_time(10)
    machine.wall.now -= HOUR
    assert clock() == machine.wall.now + HOUR
    assert machine.clock()() == machine.wall.now


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_round_ends_at_its_deadline_whatever_is_done_to_the_clock(tmp_path, step):
    async def story():
        machine = Machine()
        async with small(tmp_path, machine.clock(), deadline_seconds=60) as it:
            for version in (2, 3):
                assignment = await it.assignment("a")
                await it.upload("a", upload_request(assignment, version))
                machine.wall.now += step
                machine.pass_time(59)
                assert not await it.coordinator.end_due_round()
                machine.pass_time(1)
                assert await it.coordinator.end_due_round()
                assert it.coordinator.version.manifest.model_version == version
                assert it.coordinator.history[0].seconds == 60

    run(story())


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_versions_keep_coming_while_the_clock_is_wrong_and_after_it_was_set_right(tmp_path, step):
    """With the loop that waits for deadlines, which once slept for an hour too long."""

    async def story():
        wall = Clock()
        async with small(tmp_path, SteadyClock(wall), deadline_seconds=0.5) as it, asyncio.timeout(20):
            rounds = asyncio.create_task(it.coordinator.run())
            for version, wrong in ((2, step), (3, -step), (4, 0.0)):
                await it.upload("a", upload_request(await it.assignment("a"), version))
                wall.now += wrong
                while it.coordinator.version.manifest.model_version < version:
                    await asyncio.sleep(0.005)
            rounds.cancel()

    run(story())


@pytest.mark.parametrize("step", [-HOUR, -30, 30])
def test_a_restart_with_another_time_waits_no_longer_than_a_round_may_take(tmp_path, step):
    async def story():
        machine = Machine()
        async with small(tmp_path, machine.clock(), deadline_seconds=60) as it:
            await it.upload("a", upload_request(await it.assignment("a"), 1))
            machine.pass_time(20)
        machine.wall.now += step
        async with small(tmp_path, machine.clock(), deadline_seconds=60) as it:
            # 40 seconds were left.
            left = min(40 - step, 60)
            machine.pass_time(left - 1)
            assert not await it.coordinator.end_due_round()
            machine.pass_time(1)
            assert await it.coordinator.end_due_round()
            assert it.coordinator.version.manifest.model_version == 2
            assert it.coordinator.history[0].seconds >= 0

    run(story())


def test_a_restart_an_hour_later_ends_the_round_at_once(tmp_path):
    async def story():
        machine = Machine()
        async with small(tmp_path, machine.clock()) as it:
            await it.upload("a", upload_request(await it.assignment("a"), 1))
        machine.wall.now += HOUR
        async with small(tmp_path, machine.clock()) as it:
            assert await it.coordinator.end_due_round()
            assert it.coordinator.version.manifest.model_version == 2

    run(story())


def test_the_length_of_a_round_is_never_below_zero(tmp_path):
    async def story():
        machine = Machine()
        for _ in range(3):
            async with small(tmp_path, machine.clock(), goal=1) as it:
                assert all(past.seconds >= 0 for past in it.coordinator.history)
                assignment = await it.assignment("a")
            machine.wall.now -= HOUR
            async with small(tmp_path, machine.clock(), goal=1) as it:
                await it.upload("a", upload_request(assignment, 1))
                assert await it.coordinator.end_due_round()
                assert it.coordinator.history[0].seconds == 0

    run(story())


@pytest.mark.parametrize("until", STEPS[:-1])
def test_a_phase_that_is_resumed_an_hour_earlier_has_its_whole_time_and_no_more(tmp_path, until):
    async def story():
        clock = Clock()
        async with secure(tmp_path, clock=clock) as it:
            await it.run_steps(it.devices(6), until, absent={until: [3]})
        clock.now -= HOUR
        async with secure(tmp_path, clock=clock) as it:
            current = it.coordinator.book.current
            assert current.deadline == clock.now + current.deadline_seconds
            clock.now += current.deadline_seconds
            assert await it.coordinator.end_due_round()

    run(story())
