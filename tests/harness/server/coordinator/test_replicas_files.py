"""Replicas have no folder in common: their files lie in PostgreSQL, and in a copy that each of them has."""

import hashlib
import shutil
from contextlib import suppress

from aiohttp.test_utils import TestClient, TestServer

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.server.coordinator import browsers
from lightfr_harness.server.coordinator.browsers import FOR_BROWSERS
from lightfr_harness.server.coordinator.database import StorageError
from lightfr_harness.server.coordinator.limits import Connections
from lightfr_harness.server.coordinator.options import ItemList
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.publishing import artifact_kinds, kept_files
from lightfr_harness.server.coordinator.service import CoordinatorService
from lightfr_harness.server.coordinator.storage import REMEMBERED_VERSIONS
from tests.harness.server.coordinator.helpers import CHECK_IN, SETTINGS, Clock, Crash, Small, run, upload_request
from tests.harness.server.coordinator.replicas import Replicas, replicas
from tests.harness.server.coordinator.test_crashes import CrashAt

# So many that a delta is smaller than the codes.
ITEMS = ItemList([f"item-{i}" for i in range(400)], [60] * 400, "0" * 64)
CLEAR = {"settings": SETTINGS, "items": ITEMS, "goal": 1, "minimum": 1}


async def train(replica, seed):
    """One round of one device, at one replica or coordinator alone."""
    service = CoordinatorService(replica)
    answer = pb.CheckInResponse.FromString(await service.check_in("a", CHECK_IN))
    await service.upload("a", upload_request(answer.assignment, seed))
    while await replica.end_due_round():
        pass


async def answers(replica, digest):
    made = browsers.application(replica, "", Connections(FOR_BROWSERS), FOR_BROWSERS)
    async with TestClient(TestServer(made)) as client:
        answer = await client.get(f"/artifacts/{digest}")
        return answer.status, await answer.read()


def names_in(folder):
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_a_replica_answers_for_what_another_one_has_just_published(tmp_path, postgres):
    async def story():
        async with replicas(tmp_path, postgres.database(), 2, **CLEAR) as it:
            one, other = it.all
            for seed in range(2):
                await train(one, seed)
            assert other.version.manifest.model_version == 1
            kinds = artifact_kinds(one.version.manifest)
            assert "delta" in kinds.values()
            for digest in kinds:
                status, body = await answers(other, digest)
                assert (status, hashlib.sha256(body).hexdigest()) == (200, digest)
            state = (await one._storage.read(lambda stored: stored.states()))[3]
            for unknown in ("0" * 64, state.removeprefix("states/")):
                assert (await answers(other, unknown))[0] == 404

    run(story())


def test_while_the_data_base_is_away_a_download_is_to_be_tried_again_and_copies_are_still_served(tmp_path, postgres):
    async def story():
        async with replicas(tmp_path, postgres.database(), 2, **CLEAR) as it:
            one, other = it.all
            before = other.version.manifest.codes.sha256.hex()
            await train(one, 1)
            await other._storage.close()
            assert (await answers(other, one.version.manifest.codes.sha256.hex()))[0] == 503
            assert (await answers(other, before))[0] == 200

    run(story())


def test_replicas_that_take_turns_make_the_manifests_of_one_coordinator(tmp_path, postgres):
    """Deltas from older versions are among them, so each has to have the codes that others published."""

    def facts(coordinator):
        manifest = coordinator.version.manifest
        manifest.ClearField("created_unix_seconds")
        return manifest

    async def story():
        expected = []
        one = Small(tmp_path / "one", Clock(), Plan(goal=1, over_selection=1), SETTINGS, ITEMS).coordinator
        await one.start()
        for seed in range(6):
            await train(one, seed)
            expected.append(facts(one))
        await one.close()
        async with replicas(tmp_path / "many", postgres.database(), 3, **CLEAR) as it:
            for seed in range(6):
                await train(it.all[seed % 3], seed)
                assert facts(it.all[seed % 3]) == expected[seed]

    run(story())


def test_a_replica_with_an_empty_folder_goes_on_with_what_others_left(tmp_path, postgres):
    async def story():
        database = postgres.database()
        async with replicas(tmp_path / "first", database, 1, **CLEAR) as it:
            for seed in range(3):
                await train(it.all[0], seed)
            expected = it.all[0]._rule.state()
        shutil.rmtree(tmp_path / "first")
        async with replicas(tmp_path / "second", database, 1, **CLEAR) as it:
            (again,) = it.all
            assert again.version.manifest.model_version == 4
            assert all((value == again._rule.state()[name]).all() for name, value in expected.items())
            await train(again, 3)
            assert len(again.version.manifest.codes_deltas) > 1

    run(story())


def test_neither_the_data_base_nor_a_copy_keeps_what_no_version_names(tmp_path, postgres):
    async def story():
        async with replicas(tmp_path, postgres.database(), 2, **CLEAR) as it:
            one, other = it.all
            for seed in range(REMEMBERED_VERSIONS + 2):
                await train(one, seed)
            await other.catch_up()
            manifests = [one.version.manifest.FromString(manifest) for manifest in one._manifests]
            digests, versions = kept_files(manifests, [])
            stored = await one._storage.read(lambda stored: (stored.file_names(), stored.states()))
            assert stored[0] == {f"artifacts/{digest}" for digest in digests} | set(stored[1].values())
            assert stored[1].keys() == versions
            assert names_in(one.artifacts) == digests
            assert names_in(other.artifacts) < digests
            assert names_in(one.folder / "states") == {f"{version}.npz" for version in versions}
            assert names_in(other.folder / "states") == set()
            assert len(names_in(other.folder / "fetched")) == 1

    run(story())


def test_a_replica_that_crashes_at_any_step_leaves_the_old_version_or_the_new_one(tmp_path, postgres):
    """Another one, which has nothing of it, goes on; what comes of the round is the same."""
    crash, versions, codes = CrashAt(), [], set()

    async def story(after):
        folder, database = tmp_path / str(after), postgres.database()
        async with replicas(folder / "a", database, 1, **CLEAR) as it:
            await train(it.all[0], 1)
        it = Replicas(folder / "b", database, 1, Plan(goal=1), SETTINGS, ITEMS, crash_point=crash)
        await it.all[0].start()
        crash.arm(after)
        with suppress(Crash, StorageError):
            await train(it.all[0], 2)
        was_struck, crash.left = bool(crash.struck), None
        await it.all[0].close()
        async with replicas(folder / "c", database, 1, **CLEAR) as it:
            (third,) = it.all
            versions.append(third.version.manifest.model_version)
            while await third.end_due_round():
                pass
            assert third.version.manifest.model_version == 3
            codes.add(third.version.manifest.codes.sha256)
        return was_struck

    after = 0
    while run(story(after)):
        after += 1
    assert after > 5
    assert set(versions) == {2, 3}
    assert versions == sorted(versions)
    assert len(codes) == 1
