"""Rounds of many cohorts: they run at the same time, fail alone, and make one version together."""

import asyncio

import pytest

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.server.coordinator import runner
from lightfr_harness.server.coordinator.options import SettingsError
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.rounds import ABANDONED, AGGREGATING, FINISHED
from tests.harness.server.coordinator.helpers import Clock, Small, run
from tests.harness.server.coordinator.secure import CHECK_IN, STEPS, secure

N = 4


def codes_of(it):
    return it.coordinator.version.manifest.codes.sha256


async def seat(it, devices):
    for device in devices:
        await device.check_in()


async def step_all(it, devices, steps=STEPS):
    for _ in steps:
        await asyncio.gather(*(device.deliver() for device in devices))
        await it.go_on()


def one_cohort_of(n):
    """The codes that the same devices make in one cohort."""

    async def story(folder):
        async with secure(folder, goal=n, evaluate_every=0) as it:
            await it.run_steps(it.devices(n))
            return codes_of(it)

    return story


def test_cohorts_of_one_round_make_one_version_of_all_their_devices(tmp_path):
    async def story():
        expected = await one_cohort_of(2 * N)(tmp_path / "one")
        async with secure(tmp_path / "many", goal=N, cohorts=2, evaluate_every=0) as it:
            devices = it.devices(2 * N)
            await seat(it, devices)
            ids = [device.place.round_id for device in devices]
            assert [len(set(ids[first : first + N])) for first in range(0, 2 * N, N)] == [1, 1]
            assert len(set(ids)) == 2
            refused = pb.CheckInResponse.FromString(await it.call("late", "CheckIn", CHECK_IN))
            assert refused.retry_window.reason == pb.RETRY_REASON_ROUND_FULL
            await step_all(it, devices)
            assert codes_of(it) == expected
            assert it.coordinator.book.current.number == 2
            assert {(await it.status("x", one)).state for one in ids} == {FINISHED}
            (past,) = it.coordinator.history
            assert (past.number, past.upload_count) == (1, 2 * N)

    run(story())


def test_a_cohort_that_is_added_up_waits_for_the_others(tmp_path):
    async def story():
        async with secure(tmp_path, goal=N, cohorts=2, evaluate_every=0) as it:
            first, second = it.devices(N), it.devices(N, N)
            await seat(it, first)
            await step_all(it, first)
            assert it.coordinator.version.manifest.model_version == 1
            status = await it.status(first[0].name, first[0].place.round_id)
            assert (status.state, status.has_your_upload) == (AGGREGATING, True)
            again = pb.CheckInResponse.FromString(await it.call(first[0].name, "CheckIn", CHECK_IN))
            assert again.retry_window.reason == pb.RETRY_REASON_ALREADY_UPLOADED
            await seat(it, second)
            await step_all(it, second)
            assert it.coordinator.version.manifest.model_version == 2

    run(story())


def test_a_cohort_fails_alone_and_its_devices_may_come_again(tmp_path):
    async def story():
        expected = await one_cohort_of(2 * N)(tmp_path / "one")
        async with secure(tmp_path / "many", goal=N, cohorts=2, evaluate_every=0) as it:
            first, second = it.devices(N), it.devices(N, N)
            await seat(it, [*first, *second])
            await step_all(it, first)
            it.clock.now += 60  # Nobody of the second one has sent its keys.
            await it.go_on()
            assert (await it.status("x", second[0].place.round_id)).state == ABANDONED
            with pytest.raises(Refusal):
                await second[0].deliver()
            await seat(it, second)
            await step_all(it, second)
            assert codes_of(it) == expected

    run(story())


def test_at_the_end_of_its_time_a_round_goes_on_with_the_cohorts_that_it_has(tmp_path):
    async def story():
        expected = await one_cohort_of(N)(tmp_path / "one")
        async with secure(tmp_path / "many", goal=N, cohorts=3, evaluate_every=0) as it:
            devices = it.devices(N)
            await seat(it, devices)
            await step_all(it, devices)
            it.clock.now += 7 * 60 - 1
            await it.go_on()
            assert it.coordinator.version.manifest.model_version == 1
            it.clock.now += 1
            await it.go_on()
            assert codes_of(it) == expected

    run(story())


@pytest.mark.parametrize("until", STEPS)
def test_all_cohorts_are_resumed_where_they_stand(tmp_path, until):
    async def story():
        expected = await one_cohort_of(2 * N)(tmp_path / "one")
        clock = Clock()
        async with secure(tmp_path / "many", clock=clock, goal=N, cohorts=2, evaluate_every=0) as it:
            first, second = it.devices(N), it.devices(N, N)
            await seat(it, [*first, *second])
            # One is ahead of the other; in the end it is added up already.
            await step_all(it, first, STEPS[: STEPS.index(until) + 1])
            await step_all(it, second, STEPS[: STEPS.index(until)])
        async with secure(tmp_path / "many", clock=clock, goal=N, cohorts=2, evaluate_every=0) as again:
            for device in (*first, *second):
                device._call = again.call
            await step_all(again, first, STEPS[STEPS.index(until) + 1 :])
            await step_all(again, second, STEPS[STEPS.index(until) :])
            assert codes_of(again) == expected

    run(story())


def test_in_the_clear_a_round_has_one_cohort(tmp_path):
    with pytest.raises(SettingsError, match="--cohorts needs secure aggregation"):
        Small(tmp_path, Clock(), Plan(goal=1, cohorts=2))


def test_suspects_outlast_a_cohort_that_fails_alone(tmp_path):
    async def story():
        async with secure(tmp_path, goal=N, cohorts=2, minimum=2, evaluate_every=0) as it:
            it.coordinator.standing._suspects.spoilt([f"suspect-{i}" for i in range(5)])
            devices = it.devices(N + 1)
            await seat(it, devices)
            it.clock.now += it.coordinator.plan.deadline_seconds / 2
            await step_all(it, devices[:N], STEPS[:1])
            it.clock.now += it.coordinator.plan.deadline_seconds / 2
            await it.go_on()
            assert [one.state == ABANDONED for one in it.coordinator.book.cohorts] == [False, True]
            kept = await it.coordinator._storage.read(lambda stored: stored.suspects())
            assert kept == it.coordinator.standing.suspects
            assert "suspect-3" in kept

    run(story())


def test_a_round_that_waits_for_more_cohorts_looks_again_at_its_own_deadline(tmp_path, monkeypatch):
    """No cohort is open whose deadline would wake it, and it does not count on looking now and then."""
    monkeypatch.setattr(runner, "LOOK_SECONDS", 3600.0)

    async def story():
        clock = Clock()
        async with secure(tmp_path, goal=N, cohorts=2, evaluate_every=0, clock=clock) as it:
            devices = it.devices(N)
            await seat(it, devices)
            await step_all(it, devices)
            book = it.coordinator.book
            assert (len(book.cohorts), book.is_due(clock.now)) == (1, False)
            clock.now = book.deadline - 0.1
            # The bound is for a machine that is busy, and far below an hour.
            await asyncio.wait_for(it.coordinator._wait(asyncio.Event()), 120)
            clock.now = book.deadline
            await it.go_on()
            assert it.coordinator.version.manifest.model_version == 2

    run(story())
