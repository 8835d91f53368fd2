"""The coordinator's folder: one process holds it, and its files are there whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from lightfr.errors import LightFRError

# Called with the name of a step between two durable writes. Crash tests pass one that raises there.
CrashPoint = Callable[[str], None]


def no_crash(step: str) -> None:
    """Go on: what a coordinator does at every crash point outside of tests."""


# No name that is kept begins so; what does is left over from a crash.
UNFINISHED = ".unfinished-"


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
    beside = path.with_name(UNFINISHED + path.name)
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
