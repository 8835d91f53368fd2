"""The files of versions in a database, for replicas. Each has copies in a folder of its own.

A file is stored in the transaction that adds the first version with it, and deleted in the one that forgets the last:
so the database has exactly the files that its versions name, whoever crashes when. It is stored as rows of bytes, one
for each piece, since PostgreSQL holds a row in memory as a whole. Large objects would do the same, but they are not
deleted with the rows that name them, and our SQL would be that of one database.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator.folder import FolderError, keep_only
from lightfr_harness.server.coordinator.publishing import DELTAS_FROM_VERSIONS, Publisher, artifact_kinds, kept_files
from lightfr_harness.server.coordinator.storage import Storage
from lightfr_harness.server.coordinator.stored import Stored

# What one statement reads or writes, while other requests wait for the connection.
PIECE_BYTES = 2**20
_ARTIFACTS, _STATES = "artifacts/", "states/"


class Shelf:
    """The files of a database, and copies of them where a publisher has its own."""

    def __init__(self, publisher: Publisher, storage: Storage) -> None:
        self._publisher, self._storage = publisher, storage
        # A state that came from the database lies apart from those that are made here under the same version.
        self._fetched = publisher.folder / "fetched"
        # One file is fetched at a time, and once for all who want it.
        self._fetching = asyncio.Lock()

    # In a transaction that adds a version.

    def keep(self, connection: Any) -> None:
        """Store the files of the newest version, and delete those that are kept no longer."""
        stored = Stored(connection)
        manifests = _parsed(stored.manifests())
        known, version = stored.file_names(), manifests[0].model_version
        state = self._publisher.states / f"{version}.npz"
        with state.open("rb") as file:
            name = _STATES + hashlib.file_digest(file, "sha256").hexdigest()
        connection.execute("INSERT INTO states VALUES (?, ?)", (version, name))
        paths = {_ARTIFACTS + digest: self._publisher.artifacts / digest for digest in artifact_kinds(manifests[0])}
        for added, path in {**paths, name: state}.items():
            if added not in known:
                _insert(connection, added, path)
        digests, versions = kept_files(manifests, [one.model_version for one in stored.evaluations().kept])
        for old in stored.states().keys() - versions:
            connection.execute("DELETE FROM states WHERE model_version = ?", (old,))
        for unnamed in known - {_ARTIFACTS + digest for digest in digests} - set(stored.states().values()):
            connection.execute("DELETE FROM pieces WHERE name = ?", (unnamed,))

    # Into the folder.

    async def fetch_artifact(self, digest: str) -> bool:
        """Have an artifact in the folder; False if the database does not have it either."""
        path = self._publisher.artifacts / digest
        return path.exists() or await self._fetch(_ARTIFACTS + digest, path)

    async def fetch_newest(self, manifests: Sequence[bytes]) -> Path:
        """Have what the first of these versions is taken up with, and the next one made; where its state lies."""
        parsed = _parsed(manifests)
        await self.fetch_codes(parsed[: DELTAS_FROM_VERSIONS + 1])
        for digest, kind in artifact_kinds(parsed[0]).items():
            if kind != "delta":  # These are for devices, and fetched for the first that asks.
                await self._require(digest)
        return await self.fetch_state(parsed[0].model_version)

    async def fetch_codes(self, manifests: Sequence[manifest_pb2.Manifest]) -> None:
        """Have what deltas from these versions are made of."""
        for manifest in manifests:
            for digest, kind in artifact_kinds(manifest).items():
                if kind in ("codes", "open_rows"):
                    await self._require(digest)

    async def fetch_state(self, version: int) -> Path:
        """Have the state of a version; where it lies."""
        name = (await self._storage.read(lambda stored: stored.states())).get(version, "")
        path = self._fetched / name.removeprefix(_STATES)
        self._fetched.mkdir(exist_ok=True)
        if not name or not await self._fetch(name, path):
            raise FolderError(f"the database does not have the state of version {version}: restore it")
        return path

    def forget_states(self, but: Path) -> None:
        """Remove the states that were fetched, but one."""
        keep_only(self._fetched, {but.name})

    async def _require(self, digest: str) -> None:
        if not await self.fetch_artifact(digest):
            raise FolderError(f"the database does not have artifact {digest[:12]}…: restore it")

    async def _fetch(self, name: str, path: Path) -> bool:
        async with self._fetching:
            if await asyncio.to_thread(self._has, path):
                return True
            pieces: list[bytes] = []
            while True:
                piece = await self._storage.read(functools.partial(Stored.piece, name=name, number=len(pieces)))
                if piece is None:
                    return bool(pieces) and await asyncio.to_thread(self._write, path, pieces)
                pieces.append(piece)

    def _has(self, path: Path) -> bool:
        """Whether a file is there, and stays if it is named: whoever cleans up has done so, or sees what is needed."""
        with self._publisher.lock:
            return path.exists()

    def _write(self, path: Path, pieces: list[bytes]) -> bool:
        """Keep a file if it is what its name says; False if another process has deleted a part of it meanwhile."""
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
        if digest.hexdigest() != path.name:
            return False
        self._publisher.put_copy(path, pieces)
        return True


def _parsed(manifests: Sequence[bytes]) -> list[manifest_pb2.Manifest]:
    return [manifest_pb2.Manifest.FromString(manifest) for manifest in manifests]


def _insert(connection: Any, name: str, path: Path) -> None:
    """Store a file; an empty one has one piece too."""
    with path.open("rb") as file:
        number, piece = 0, file.read(PIECE_BYTES)
        while piece or number == 0:
            connection.execute("INSERT INTO pieces VALUES (?, ?, ?)", (name, number, piece))
            number, piece = number + 1, file.read(PIECE_BYTES)
