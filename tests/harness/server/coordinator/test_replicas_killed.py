"""Replicas behind a load balancer: the small versions of `make kill-replicas` and `make equal-replicas`."""

import asyncio
import os
from contextlib import suppress

import pytest

from lightfr_harness.server.coordinator.database import StorageUnavailableError
from lightfr_harness.server.coordinator.plan import Plan
from tests.harness.server.coordinator.helpers import run
from tests.harness.server.coordinator.replicas import Replicas, replicas
from tests.postgres import WANTED, Postgres

pytestmark = pytest.mark.skipif(WANTED not in os.environ, reason="PostgreSQL is tried by `make test-postgres`")


def test_killed_six_times_and_postgresql_once_they_lose_nothing_and_count_nothing_twice(tmp_path):
    from tests.campaigns import kill_replicas

    summary = kill_replicas.run(kills=6, postgres_kills=1, seed=1, base=tmp_path, replicas=2, progress=lambda _: None)
    assert summary.is_good(), summary


def test_devices_of_three_cohorts_make_the_version_of_one_coordinator_although_replicas_are_killed(tmp_path):
    from tests.campaigns import equal_replicas

    differ, kills = equal_replicas.run(
        tmp_path, devices=24, cohorts=3, rounds=1, deadline=8, replicas=2, kills=3, postgres_kills=1, pause=1.0
    )
    assert (differ, kills) == (0, 3)


def test_a_frozen_postgresql_is_given_up_and_all_goes_on_when_it_thaws(tmp_path, monkeypatch):
    """It answers nothing and hangs up on nobody, as behind a network that is lost."""
    monkeypatch.setattr("lightfr_harness.server.coordinator.postgres.SILENCE_SECONDS", 0.5)
    server = Postgres(fsync="off").start()

    async def story():
        async with replicas(tmp_path, server.database(), 1) as it:
            (device,) = it.devices(1)
            await device.check_in()
            server.freeze()
            with pytest.raises(StorageUnavailableError):
                await it.devices(1, first=1)[0].check_in()
            server.thaw()
            while True:
                with suppress(StorageUnavailableError):
                    await it.devices(1, first=2)[0].check_in()
                    break
                await asyncio.sleep(0.05)
            await device.check_in()

    try:
        run(story())
    finally:
        server.close()


def test_a_replica_ends_although_postgresql_is_frozen(tmp_path, monkeypatch):
    monkeypatch.setattr("lightfr_harness.server.coordinator.postgres.CLOSING_SECONDS", 0.5)
    server = Postgres(fsync="off").start()

    async def story():
        async with replicas(tmp_path, server.database(), 1) as it:
            await it.devices(1)[0].check_in()
            server.freeze()
            asked = asyncio.ensure_future(it.devices(1, first=1)[0].check_in())
            await asyncio.sleep(0)
        with pytest.raises(StorageUnavailableError):
            await asked

    try:
        run(story())
    finally:
        server.close()


def test_a_replica_that_starts_while_another_ends_the_round_goes_on_with_what_came_of_it(tmp_path, postgres):
    async def story():
        both = Replicas(tmp_path, postgres.database(), 2, Plan(goal=6, over_selection=1.0, minimum=2))
        first, late = both.all
        both.all = [first]
        await first.start()
        for device in await both.run_steps(both.devices(6), until="SignSurvivors"):
            await device.deliver()
        read_of = late._storage.read_of

        async def read_of_a_round_that_ends(current, ask):
            late._storage.read_of = read_of
            await both.go_on()
            return await read_of(current, ask)

        late._storage.read_of = read_of_a_round_that_ends
        try:
            await late.start()
            assert late.version.manifest.model_version == 2
            assert late.book.current.number == 2
        finally:
            await first.close()
            await late.close()

    run(story())
