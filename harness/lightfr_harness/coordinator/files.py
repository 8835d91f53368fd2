"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from lightfr_harness.coordinator import steps

# No name that is kept begins so; what does is left over from a crash.
UNFINISHED = ".unfinished-"


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write beside, flush to the disk, rename over. The name is durable after flush_folder, once for many files."""
    beside = path.with_name(UNFINISHED + path.name)
    with beside.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    steps.reached("file is beside")
    beside.replace(path)
    steps.reached("file is in place")


def flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
