"""`rollback` and `catalogue update` for replicas, while they run and while they are stopped."""

import asyncio

import numpy as np
import pytest
from typer.testing import CliRunner

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.cli import app
from lightfr_harness.server.coordinator import rollback
from lightfr_harness.server.coordinator.catalogue_update import offer_to_replicas
from lightfr_harness.server.coordinator.database import StorageUnavailableError
from lightfr_harness.server.coordinator.folder import FolderError
from lightfr_harness.server.coordinator.options import SettingsError
from lightfr_harness.server.coordinator.replica import lock_number
from lightfr_harness.server.coordinator.rollback import roll_back_replicas
from lightfr_harness.server.coordinator.runner import PUBLISHING
from tests.harness.server.coordinator.by_item import ids_of, tsv
from tests.harness.server.coordinator.helpers import CHECK_IN, ITEMS, N_ITEMS, SETTINGS, run
from tests.harness.server.coordinator.replicas import replicas
from tests.harness.server.coordinator.test_replicas_files import train

FIRST = dict(zip(ITEMS.ids, ITEMS.device_counts, strict=True))
CLEAR = {"settings": SETTINGS, "goal": 1, "minimum": 1}


def state_of(replica):
    return {name: value.copy() for name, value in replica._rule.state().items()}


def is_same(state, other):
    return all(np.array_equal(value, other[name]) for name, value in state.items())


def test_replicas_that_run_go_back_and_go_on_from_there(tmp_path, postgres):
    async def story():
        database = postgres.database()
        async with replicas(tmp_path, database, 2, **CLEAR) as it:
            one, other = it.all
            for seed in range(2):
                await train(it.all[seed % 2], seed)
            await one.catch_up()
            expected = state_of(one)  # of version 3
            for seed in range(2, 4):
                await train(one, seed)
            left = pb.CheckInResponse.FromString(await it.call("b", "CheckIn", CHECK_IN)).assignment
            assert await asyncio.to_thread(roll_back_replicas, database, 3) == 6
            for replica in it.all:
                await replica.catch_up()
                assert replica.version.manifest.model_version == 6
                assert is_same(expected, state_of(replica))
                assert replica.book.current.model_version == 6
                assert not replica.book.current.assigned
            ask = pb.GetRoundStatusRequest(round_id=left.round_id).SerializeToString()
            status = pb.GetRoundStatusResponse.FromString(await it.call("b", "GetRoundStatus", ask))
            assert status.state == pb.ROUND_STATE_ABANDONED
            await train(other, 9)
            assert other.version.manifest.model_version == 7

    run(story())


def test_the_command_goes_back_while_replicas_are_stopped(tmp_path, postgres):
    database = postgres.database()

    async def before():
        async with replicas(tmp_path, database, 1, **CLEAR) as it:
            for seed in range(3):
                await train(it.all[0], seed)

    async def after():
        async with replicas(tmp_path, database, 2, **CLEAR) as it:
            assert {replica.version.manifest.model_version for replica in it.all} == {5}

    run(before())
    command = ["rollback", database, "--to", "2"]
    assert CliRunner().invoke(app, command).output == "Version 5 is published; it repeats version 2.\n"
    run(after())


def test_a_version_that_is_not_kept_is_named_with_those_that_are(tmp_path, postgres):
    database = postgres.database()

    async def story():
        async with replicas(tmp_path, database, 1, **CLEAR) as it:
            for seed in range(6):
                await train(it.all[0], seed)

    with pytest.raises(FolderError, match="there is nothing to go back to"):
        roll_back_replicas(database, 1)
    run(story())
    for version in (3, 8):
        with pytest.raises(FolderError, match=f"version {version} is not kept here; choose one of 4, 5, 6, 7"):
            roll_back_replicas(database, version)


def test_going_back_waits_for_a_replica_that_is_publishing(tmp_path, postgres, monkeypatch):
    monkeypatch.setattr(rollback, "_PATIENCE_SECONDS", 0.4)

    async def story():
        database = postgres.database()
        async with replicas(tmp_path, database, 1, **CLEAR) as it:
            locks = it.all[0]._storage.database
            assert await locks.try_lock(lock_number(PUBLISHING))
            with pytest.raises(FolderError, match="has been publishing a version for a minute"):
                await asyncio.to_thread(roll_back_replicas, database, 1)
            await locks.unlock(lock_number(PUBLISHING))
            assert await asyncio.to_thread(roll_back_replicas, database, 1) == 2

    run(story())


def test_replicas_that_run_take_up_a_list_once_and_between_two_rounds(tmp_path, postgres):
    async def story():
        database = postgres.database()
        async with replicas(tmp_path, database, 2, **CLEAR) as it:
            one, other = it.all
            await train(one, 1)
            listed = tsv({**FIRST, "new": 30})
            change = await asyncio.to_thread(offer_to_replicas, database, listed)
            assert str(change).startswith("1 items join, 0 leave")
            for replica in it.all:
                await replica.catch_up()
                assert replica.awaits_catalogue
            await it.go_on()
            for replica in it.all:
                await replica.catch_up()
                assert not replica.next_catalogue.is_there
                assert replica.version.manifest.model_version == 3
                assert ids_of(replica.version.manifest, replica.artifacts) == [*ITEMS.ids, "new"]
            await train(other, 2)
            assert other.version.manifest.model_version == 4

    run(story())


def test_the_command_leaves_a_list_for_replicas_that_are_stopped(tmp_path, postgres):
    database, items = postgres.database(), tmp_path / "items.tsv"

    async def before():
        async with replicas(tmp_path, database, 1, **CLEAR) as it:
            await train(it.all[0], 1)

    async def after():
        async with replicas(tmp_path / "other", database, 1, **CLEAR) as it:
            await it.go_on()
            assert it.all[0].version.manifest.model.item_count == N_ITEMS + 1

    run(before())
    items.write_bytes(tsv({**FIRST, "new": 3}))
    output = CliRunner().invoke(app, ["catalogue", "update", database, str(items)]).output
    assert output.startswith("By now: 1 items join, 0 leave, 0 return")
    run(after())


def test_a_list_that_is_none_is_refused_and_a_later_one_takes_the_place_of_one_that_waits(tmp_path, postgres):
    database = postgres.database()
    with pytest.raises(FolderError, match="has not begun"):
        offer_to_replicas(database, b"a\t1\n")

    async def story():
        async with replicas(tmp_path, database, 1, **CLEAR) as it:
            with pytest.raises(SettingsError, match="begun with counts"):
                await asyncio.to_thread(offer_to_replicas, database, b"a\nb\n")
            await it.all[0].offer_catalogue(tsv({**FIRST, "one": 1}))
            await it.all[0].offer_catalogue(tsv({**FIRST, "other": 1}))
            await it.go_on()
            ids = ids_of(it.all[0].version.manifest, it.all[0].artifacts)
            assert ids == [*ITEMS.ids, "other"]

    run(story())


def test_a_list_survives_the_replica_that_was_taking_it_up(tmp_path, postgres):
    async def story():
        async with replicas(tmp_path, postgres.database(), 2, **CLEAR) as it:
            one, other = it.all
            await one.offer_catalogue(tsv({**FIRST, "new": 1}))
            await one.catch_up()
            change = one._storage.change_catalogue

            async def lost(*arguments):
                raise StorageUnavailableError("the database is away")

            one._storage.change_catalogue = lost
            with pytest.raises(StorageUnavailableError):
                await one.end_due_round()
            assert await other.end_due_round()
            assert other.version.manifest.model_version == 2
            one._storage.change_catalogue = change
            await one.catch_up()
            assert not await one.end_due_round()
            assert one.version.manifest.model_version == 2

    run(story())


def test_a_list_that_comes_too_late_for_its_check_is_dropped_and_named(tmp_path, postgres):
    async def story():
        async with replicas(tmp_path, postgres.database(), 1, **CLEAR) as it:
            (replica,) = it.all
            await replica._storage.offer_catalogue(b"a\nb\n")
            await replica.catch_up()
            assert await replica.end_due_round()
            assert not replica.next_catalogue.is_there
            await replica.catch_up()
            assert not await replica.end_due_round()

    run(story())
