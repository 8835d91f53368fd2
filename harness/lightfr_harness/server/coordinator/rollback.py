"""Going back: an older version is published once more, as the newest. Of a folder, or of replicas while they run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator.folder import CrashPoint, FolderError, NextCatalogue, lock_folder, no_crash
from lightfr_harness.server.coordinator.publishing import DELTAS_FROM_VERSIONS, Publisher, not_kept
from lightfr_harness.server.coordinator.replica import lock_number
from lightfr_harness.server.coordinator.runner import PUBLISHING
from lightfr_harness.server.coordinator.shelf import Shelf
from lightfr_harness.server.coordinator.storage import Storage

# How long a replica that is publishing is waited for.
_PATIENCE_SECONDS, _LOOK_SECONDS = 60.0, 0.2


def roll_back(folder: Path, version: int, number: int | None = None, crash_point: CrashPoint = no_crash) -> int:
    """Publish a remembered version anew, for a coordinator that is stopped; the new version's number.

    That is the next one unless told. A round that is open is abandoned, since it answers another version.
    """
    if not (folder / "coordinator.sqlite").exists():
        raise FolderError(f"{folder} is not the folder of a coordinator: it has no coordinator.sqlite")
    with lock_folder(folder):
        return asyncio.run(_in_folder(folder, version, number, crash_point))


async def _in_folder(folder: Path, version: int, number: int | None, crash_point: CrashPoint) -> int:
    storage = Storage.in_file(folder / "coordinator.sqlite", lambda _: None, crash_point)
    try:
        publisher = Publisher(folder, crash_point=crash_point)
        older = await _older(storage)
        # A list of items that was taken up as the process ended is not to be taken up again.
        changes = await storage.read(lambda stored: stored.catalogue_changes())
        NextCatalogue(folder).recover(changes[-1].model_version)
        number = _number(older, number)
        return await _publish(storage, version, number, publisher.republish(older, version, number, time.time()))
    finally:
        await storage.close()


def roll_back_replicas(database: str, version: int, number: int | None = None) -> int:
    """As above, for replicas, which may run: each goes over to the new version as if another one had published it."""
    return asyncio.run(_in_database(database, version, number))


async def _in_database(database: str, version: int, number: int | None) -> int:
    storage = Storage.in_postgres(database, lambda: None)
    try:
        async with _alone(storage):
            older = await _older(storage)
            number = _number(older, number)
            states = await storage.read(lambda stored: stored.states())
            if version not in states:
                raise not_kept(version, states)
            with TemporaryDirectory() as folder:
                publisher = Publisher(Path(folder))
                storage.files = shelf = Shelf(publisher, storage)
                wanted = [one for one in older if one.model_version == version]
                await shelf.fetch_codes([*wanted, *older[:DELTAS_FROM_VERSIONS]])
                state = await shelf.fetch_state(version)
                manifest = publisher.republish(older, version, number, time.time(), state)
                return await _publish(storage, version, number, manifest)
    finally:
        await storage.close()


async def _older(storage: Storage) -> list[manifest_pb2.Manifest]:
    manifests = await storage.read(lambda stored: stored.manifests())
    if not manifests:
        raise FolderError("there is no version yet: there is nothing to go back to")
    return [manifest_pb2.Manifest.FromString(manifest) for manifest in manifests]


def _number(older: list[manifest_pb2.Manifest], wanted: int | None) -> int:
    newest = older[0].model_version
    if wanted is not None and wanted <= newest:
        raise FolderError(f"--number {wanted} is not above {newest}, the newest version here: devices would refuse it")
    return wanted or newest + 1


async def _publish(storage: Storage, version: int, number: int, manifest: bytes) -> int:
    if not await storage.roll_back(number, manifest, version, time.time()):
        raise FolderError(f"a replica has published version {number} meanwhile: look at it, and try again")
    return number


@asynccontextmanager
async def _alone(storage: Storage) -> AsyncIterator[None]:
    """While no replica publishes: of two versions with the same number one would be lost, and its work."""
    for _ in range(int(_PATIENCE_SECONDS / _LOOK_SECONDS)):
        if await storage.database.try_lock(lock_number(PUBLISHING)):
            break
        await asyncio.sleep(_LOOK_SECONDS)
    else:
        raise FolderError("a replica has been publishing a version for a minute: try again when it is done")
    yield  # The lock goes with the connection.
