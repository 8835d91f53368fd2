"""Files that are whole or not there: keys and certificates appear under their names only when complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lightfr._files import fsync_folder

from .errors import AuthorityFolderError

PRIVATE = 0o600
PUBLIC = 0o644


def write_whole(path: Path, content: bytes, mode: int) -> None:
    """Replace a file at once; a reader sees the old content or the new one, also after a crash."""
    try:
        # mkstemp makes the file 0600, so a key is never readable by others, not even for a moment.
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            _write(descriptor, content, mode)
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)
        fsync_folder(path.parent)
    except OSError as error:
        reason = f"cannot be written ({error.strerror})"
        raise AuthorityFolderError(path, reason, "Check the disk and who may write there, then try again.") from error


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a private folder to fill; it takes its name in one rename when the block ends well.

    A process killed before that leaves only a hidden folder beside it, which nothing opens.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise _cannot_create(folder, error) from error
    try:
        yield stage
        fsync_folder(stage)
        _take_name(stage, folder)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    fsync_folder(folder.parent)


def _take_name(stage: Path, folder: Path) -> None:
    try:
        # Fails when the folder exists and holds anything, so nobody's keys are ever overwritten.
        os.rename(stage, folder)
    except OSError as error:
        raise _cannot_create(folder, error) from error


def _cannot_create(folder: Path, error: OSError) -> AuthorityFolderError:
    reason = f"cannot be made ({error.strerror})"
    return AuthorityFolderError(folder, reason, "Name a folder that does not exist yet, where you may write.")


def _write(descriptor: int, content: bytes, mode: int) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        os.fchmod(descriptor, mode)
        file.flush()
        os.fsync(descriptor)
