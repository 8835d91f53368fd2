"""Going back to an older version makes a new one of it."""

import shutil
import sqlite3
from contextlib import closing, suppress

import numpy as np
import pytest
from typer.testing import CliRunner

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2
from lightfr_harness.cli import app
from lightfr_harness.server.coordinator import rollback
from lightfr_harness.server.coordinator.database import StorageError
from lightfr_harness.server.coordinator.folder import FolderError
from lightfr_harness.server.coordinator.refusals import Refusal
from tests.harness.server.coordinator.helpers import Crash, body_keys, is_in_files, run, small, upload_request
from tests.harness.server.coordinator.secure import secure
from tests.harness.server.coordinator.test_crashes import CrashAt


async def train(folder, rounds, first=0):
    """Finish rounds; the state after each."""
    states = []
    async with small(folder, goal=1) as it:
        for n in range(first, first + rounds):
            await it.upload("a", upload_request(await it.assignment("a"), n))
            assert await it.coordinator.end_due_round()
            states.append({name: value.copy() for name, value in it.coordinator._rule.state().items()})
    return states


def test_an_older_version_becomes_the_newest_and_training_goes_on_from_it(tmp_path):
    states = run(train(tmp_path, 5))  # versions 2 to 6

    async def look():
        async with small(tmp_path, goal=1) as it:
            manifest, server = it.coordinator.version.manifest, it.coordinator._rule
            assert manifest.model_version == 7
            assert all(np.array_equal(value, server.state()[name]) for name, value in states[2].items())
            assert np.array_equal(np.frombuffer(manifest.model.mean_user, "<i2"), server.mean_user)
            await it.upload("a", upload_request(await it.assignment("a"), 9))
            assert await it.coordinator.end_due_round()
            assert it.coordinator.version.manifest.model_version == 8

    assert (
        CliRunner().invoke(app, ["rollback", str(tmp_path), "--to", "4"]).output
        == "Version 7 is published; it repeats version 4.\n"
    )
    run(look())


def test_a_version_that_is_not_remembered_is_named_with_those_that_are(tmp_path):
    run(train(tmp_path, 6))
    for version in (3, 8, 0):
        with pytest.raises(FolderError, match=f"version {version} is not kept here; choose one of 4, 5, 6, 7"):
            rollback.roll_back(tmp_path, version)


def test_a_folder_in_use_or_without_a_coordinator_is_refused(tmp_path):
    with pytest.raises(FolderError, match="no coordinator"):
        rollback.roll_back(tmp_path, 1)

    async def story():
        async with small(tmp_path):
            with pytest.raises(FolderError, match="another coordinator"):
                rollback.roll_back(tmp_path, 1)

    run(story())


def test_an_open_round_on_the_version_that_is_left_is_abandoned_and_forgotten(tmp_path):
    async def before():
        async with secure(tmp_path) as it:
            devices = await it.run_steps(it.devices(6), "SignSurvivors")
            await devices[0].deliver()
            return devices[0]

    async def after(device):
        async with secure(tmp_path) as it:
            status = await it.status(device.name, device.place.round_id)
            assert status.state == pb.ROUND_STATE_ABANDONED
            assert it.coordinator.book.current.model_version == 2
            assert not it.coordinator.book.current.assigned

    device = run(before())
    (key,) = body_keys(tmp_path)
    assert rollback.roll_back(tmp_path, 1) == 2
    assert not is_in_files(tmp_path, key)
    run(after(device))


def test_a_backup_goes_on_under_a_number_above_all_that_devices_have_seen_and_without_its_open_round(tmp_path):
    """Its roster may have been signed after the backup, and nobody may sign another one for the same round."""
    origin, copy = tmp_path / "origin", tmp_path / "copy"

    async def before():
        async with secure(origin, goal=4, minimum=2) as it:
            devices = it.devices(4)
            for device in devices:
                await device.check_in()
            await devices[0].deliver()
            back_up(origin, copy)
            for device in devices[1:]:
                await device.deliver()
            await it.go_on()
            assert (await devices[0].step()).share.signature
            return devices[0]

    async def after(device):
        async with secure(copy, goal=4, minimum=2) as it:
            assert it.coordinator.version.manifest.model_version == 40
            status = await it.status(device.name, device.place.round_id)
            assert status.state == pb.ROUND_STATE_ABANDONED
            device._call = it.call
            with pytest.raises(Refusal) as refused:
                await device.step()
            assert refused.value.reason == error_pb2.ERROR_REASON_ROUND_CLOSED
            await it.run_steps(it.devices(4))
            assert it.coordinator.version.manifest.model_version == 41

    device = run(before())
    refused = CliRunner().invoke(app, ["rollback", str(copy), "--to", "1", "--number", "1"])
    assert refused.exit_code == 2
    output = CliRunner().invoke(app, ["rollback", str(copy), "--to", "1", "--number", "40"]).output
    assert output == "Version 40 is published; it repeats version 1.\n"
    with pytest.raises(FolderError, match="--number 40 is not above 40, the newest version here"):
        rollback.roll_back(copy, 40, 40)
    run(after(device))


def back_up(folder, to):
    """As docs/operating.md says."""
    to.mkdir()
    with (
        closing(sqlite3.connect(folder / "coordinator.sqlite")) as source,
        closing(sqlite3.connect(to / "coordinator.sqlite")) as target,
    ):
        source.backup(target)
    for name in ("artifacts", "states"):
        shutil.copytree(folder / name, to / name)


def test_a_crash_on_the_way_leaves_the_old_version_or_the_new_one(tmp_path):
    run(train(tmp_path / "origin", 2))
    crash = CrashAt()
    versions = []
    for after in range(8):
        folder = tmp_path / str(after)
        shutil.copytree(tmp_path / "origin", folder)
        crash.arm(after)
        with suppress(Crash, StorageError):
            rollback.roll_back(folder, 2, crash_point=crash)
        crash.left = None
        versions.append(run(version_of(folder)))
    assert set(versions) == {3, 4}
    assert versions == sorted(versions)


async def version_of(folder):
    async with small(folder, goal=1) as it:
        return it.coordinator.version.manifest.model_version
