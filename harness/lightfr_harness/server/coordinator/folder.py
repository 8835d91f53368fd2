"""The coordinator's folder: one process holds it, and its files are there whole or not at all."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from lightfr._files import fsync_folder
from lightfr.errors import LightFRError

# Called with the name of a step between two durable writes. Crash tests pass one that raises there.
CrashPoint = Callable[[str], None]


def no_crash(step: str) -> None:
    """Go on: what a coordinator does at every crash point outside of tests."""


# No name that is kept begins so; what does is left over from a crash.
UNFINISHED = ".unfinished-"
_OFFERED = "catalogue.next.tsv"


class FolderError(LightFRError):
    """A coordinator's folder that lacks something or was changed: restore it, or begin a new one."""


def lock_folder(folder: Path) -> BinaryIO:
    """Hold the folder until the file is closed or the process dies."""
    file = (folder / "lock").open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise FolderError("another coordinator is using this folder: stop it first") from error
    return file


def write_atomically(path: Path, write: Callable[[BinaryIO], object], crash_point: CrashPoint = no_crash) -> None:
    """Write beside, flush to the disk, rename over. The name is durable after fsync_folder, once for many files."""
    # Replicas may write the same file at the same time.
    beside = path.with_name(f"{UNFINISHED}{secrets.token_hex(4)}-{path.name}")
    with beside.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    crash_point("file is beside")
    beside.replace(path)
    crash_point("file is in place")


def keep_only(folder: Path, names: Iterable[str]) -> None:
    """Remove everything that is not named."""
    kept = set(names)
    for path in folder.iterdir():
        if path.name in kept:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def put_next_catalogue(folder: Path, content: bytes) -> None:
    """Keep a list of items for the coordinator of a folder, durably."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)  # Against others who do the same now.
        write_atomically(folder / _OFFERED, lambda file: file.write(content))
        fsync_folder(folder)
    finally:
        os.close(held)


class NextCatalogue:
    """A list of items that waits in a folder for the coordinator. A later one takes its place."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._offered = folder, folder / _OFFERED
        self._taken: Path | None = None

    @property
    def is_there(self) -> bool:
        """Whether a list waits, or is being taken up."""
        return self._taken is not None or self._offered.exists()

    def is_same(self, sha256: str) -> bool:
        """Whether the list that waits has this digest."""
        return self._offered.exists() and hashlib.sha256(self._offered.read_bytes()).hexdigest() == sha256

    async def put(self, content: bytes) -> None:
        """Keep a list, durably."""
        await asyncio.to_thread(put_next_catalogue, self._folder, content)

    async def take(self, version: int) -> bytes:
        """The list that waits, which shall make this version. It stays in the folder until it is dropped."""
        self._taken = self._folder / f"catalogue.taken-{version}.tsv"
        self._offered.replace(self._taken)
        return self._taken.read_bytes()

    async def drop(self) -> None:
        """Forget the list that was taken: it has made its version, or cannot."""
        if self._taken is not None:
            self._taken.unlink()
        self._taken = None

    def recover(self, newest: int) -> None:
        """After a crash: a list that was on its way waits again, but not the one that has made this version."""
        for taken in self._folder.glob("catalogue.taken-*.tsv"):
            if taken.name == f"catalogue.taken-{newest}.tsv" or self._offered.exists():
                taken.unlink()
            else:
                taken.replace(self._offered)
