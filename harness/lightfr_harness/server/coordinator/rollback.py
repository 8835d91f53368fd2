"""Going back to an older version: what it published becomes the newest version. For a coordinator that is stopped."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator.files import FolderError, lock_folder
from lightfr_harness.server.coordinator.publishing import Publisher
from lightfr_harness.server.coordinator.rounds import ABANDONED, FINISHED, Round
from lightfr_harness.server.coordinator.storage import Storage


def roll_back(folder: Path, version: int) -> int:
    """Publish a remembered version anew; the new version's number. An open round is abandoned: it was on another."""
    if not (folder / "coordinator.sqlite").exists():
        raise FolderError("there is no coordinator's folder here")
    with lock_folder(folder):
        return asyncio.run(_roll_back(folder, version))


async def _roll_back(folder: Path, version: int) -> int:
    storage = Storage(folder / "coordinator.sqlite", lambda _: None)
    try:
        older = [manifest_pb2.Manifest.FromString(manifest) for manifest in storage.manifests()]
        if not older:
            raise FolderError("the folder has no version: there is nothing to go back to")
        manifest = Publisher(folder).republish(older, version, time.time())
        number, ended = older[0].model_version + 1, _abandoned(storage.rounds()[-1])
        storage.start()
        await storage.roll_back(number, manifest, ended)
        return number
    finally:
        await storage.close()


def _abandoned(last: Round) -> Round | None:
    if last.state in (FINISHED, ABANDONED):
        return None
    last.state, last.ended_at = ABANDONED, time.time()
    return last
