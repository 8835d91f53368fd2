import os
import tempfile
from pathlib import Path

import pytest

from lightfr import _files
from lightfr.keys import FileKey


@pytest.fixture(autouse=True)
def fast_medium(monkeypatch):
    """Flush nothing: no power is lost in a test, and faults.Files keeps its own account of what was flushed."""
    for name in ("fsync", "fsync_folder"):
        monkeypatch.setattr(_files, name, lambda _: None)


@pytest.fixture
def tmp_path():
    """A folder in memory where there is such a place: file systems flush some renames of their own accord."""
    memory = "/dev/shm"  # noqa: S108 - the folder made in it is the owner's alone
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


@pytest.fixture
def keys(tmp_path):
    return FileKey(tmp_path / "key")
