"""Downloads of artifacts: resumed at the byte where they broke, and kept only when their digest is right."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from lightfr import _files
from lightfr.errors import (
    ArtifactError,
    IdentityRefusedError,
    ProtocolError,
    ServerNotTrustedError,
    ServerUnavailableError,
)

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from pathlib import Path
    from types import TracebackType
    from typing import BinaryIO, Self

    from lightfr._wire.channel import Channel
    from lightfr.v1 import manifest_pb2

_CHUNK_BYTES = 65_536
_TRIES_WITHOUT_PROGRESS = 3
# A cache that is silent for so long is done without: a round does not wait for the device.
_CACHE_TIMEOUT_SECONDS = 10.0
# Whatever is wrong with a cache, the coordinator may still be right. A fault of this device's own disk would remain.
_FAULTS_OF_A_CACHE = (ServerUnavailableError, ServerNotTrustedError, IdentityRefusedError, ProtocolError)


class Sources:
    """Where the artifacts of a manifest come from: the address that it names, if any, else the coordinator.

    A cache that failed once is not asked again; the coordinator goes on at the byte where the cache broke off.
    """

    def __init__(self, coordinator: Channel, artifacts_address: str) -> None:
        self._coordinator = coordinator
        self._cache = coordinator.to(artifacts_address, _CACHE_TIMEOUT_SECONDS) if artifacts_address else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._cache is not None:
            self._cache.close()

    def download(self, artifact: manifest_pb2.Artifact, folder: Path) -> Path:
        """Return the artifact's file in the folder, fetched if need be. It is whole and checked."""
        if self._cache is None:
            return download(self._coordinator, artifact, folder)
        try:
            return download(self._cache, artifact, folder, tries=1)
        except _FAULTS_OF_A_CACHE as error:
            import logging

            logging.getLogger("lightfr.downloads").warning(
                "the cache %s failed (%s): the coordinator is asked instead", self._cache.host, type(error).__name__
            )
            self._cache.close()
            self._cache = None
        try:
            return download(self._coordinator, artifact, folder)
        except ArtifactError:
            # The bytes before those of the coordinator were the cache's. They have been thrown away.
            return download(self._coordinator, artifact, folder)


def download(
    channel: Channel, artifact: manifest_pb2.Artifact, folder: Path, tries: int = _TRIES_WITHOUT_PROGRESS
) -> Path:
    """Return the artifact's file in the folder, fetched if need be. A file of that name is always whole and checked.

    `tries` in a row that bring nothing are given up.
    """
    final = folder / artifact.sha256.hex()
    if not final.exists():
        part = folder / part_of(final.name)
        _complete(channel, final.name, artifact.size_bytes, part, tries)
        keep(part, final)
    return final


def part_of(name: str) -> str:
    """Return the name of a file while it is not whole."""
    return f"{name}.part"


def keep(part: Path, final: Path) -> None:
    """Give a finished file its name if that is its digest; else throw it away and raise ArtifactError."""
    with part.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != final.name:
        with _files.step("throw a download away"):
            _files.remove(part)
        raise ArtifactError("a download has another digest than the signed manifest says; it was thrown away")
    install(part, final)


def install(part: Path, final: Path) -> None:
    """Put a file that is ready in its place, on the medium."""
    with _files.step("keep a download"):
        file = _files.open_file(part, _files.CHANGE)
        try:
            _files.fsync(file)
        finally:
            os.close(file)
        _files.replace(part, final)
        _files.fsync_folder(final.parent)


def _complete(channel: Channel, name: str, size_bytes: int, part: Path, tries: int) -> None:
    idle_tries = 0
    while True:
        before = _size(part)
        try:
            return _go_on(channel, name, size_bytes, part)
        except ServerUnavailableError:
            idle_tries = 0 if _size(part) > before else idle_tries + 1
            if idle_tries == tries:
                raise


def _go_on(channel: Channel, name: str, size_bytes: int, part: Path) -> None:
    """Fetch what is missing, from the first missing byte on."""
    with _files.step("open a download"):
        opened = os.fdopen(_files.open_file(part, _files.CHANGE | os.O_CREAT), "rb+", buffering=0)
    with opened as file:
        have = os.fstat(file.fileno()).st_size
        if have > size_bytes:
            _empty(file)
            have = 0
        if have == size_bytes:
            return
        headers = {"Range": f"bytes={have}-", "If-Range": f'"{name}"'} if have else {}
        with channel.get(f"/artifacts/{name}", headers, size_bytes) as response:
            if not _continues(response, have):
                _empty(file)
                have = 0
            if response.status == 416:
                # A page, which is no content. What is left of a long one is not read: the connection is given up.
                response.read(_CHUNK_BYTES)
            while response.status != 416 and (chunk := response.read(_CHUNK_BYTES)):
                if have + len(chunk) > size_bytes:
                    raise ArtifactError(f"a download is longer than the {size_bytes} bytes of the signed manifest")
                with _files.step("write a download"):
                    _files.write_all(file.fileno(), chunk, have)
                have += len(chunk)
    if have < size_bytes:
        raise ServerUnavailableError(f"a download broke off at {have} of {size_bytes} bytes; sync() goes on from there")


def _continues(response: HTTPResponse, have: int) -> bool:
    """Whether the answer goes on where the file ends; otherwise it is the whole, or nothing (416)."""
    return response.status == 206 and (response.headers["Content-Range"] or "").startswith(f"bytes {have}-")


def _empty(file: BinaryIO) -> None:
    with _files.step("begin a download anew"):
        _files.truncate(file.fileno(), 0)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
