"""Every file operation on which the store and its keys depend, each small enough to fail alone.

Tests replace these functions to refuse any one of them, or to end the program there.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from lightfr.errors import LightFRError, StoreLockedError, StoreWriteError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READ = os.O_RDONLY
CHANGE = os.O_RDWR
CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL


def open_file(path: Path, flags: int) -> int:
    """Open a file; one that is made can be read by its owner alone."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def write(file: int, data: memoryview, offset: int) -> int:
    """Write at an offset, perhaps less than all; return how many bytes."""
    return os.pwrite(file, data, offset)


def read(file: int, count: int, offset: int) -> bytes:
    """Read at an offset; less than asked for only at the end of the file."""
    return os.pread(file, count, offset)


def fsync(file: int) -> None:
    """Wait until what was written to the file is on the medium."""
    os.fsync(file)


def truncate(file: int, length_bytes: int) -> None:
    """Cut the file off."""
    os.ftruncate(file, length_bytes)


def replace(source: Path, target: Path) -> None:
    """Rename over whatever stands there, in one step."""
    os.replace(source, target)


def remove(path: Path) -> None:
    """Remove a file that may be absent."""
    path.unlink(missing_ok=True)


def remove_folder_if_empty(path: Path) -> None:
    """Remove a folder unless something is in it."""
    try:
        path.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def make_folder(path: Path) -> None:
    """Make one folder that only its owner may enter."""
    path.mkdir(mode=0o700)


def fsync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the medium."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def lock(path: Path) -> int:
    """Take the lock that a file stands for until the returned descriptor is closed; StoreLockedError if it is taken.

    Whoever holds the lock may remove the file.
    """
    while True:
        file = open_file(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A file that was removed between these two steps excludes nobody: the next one gets another file.
            if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
                return file
        except BlockingIOError:
            os.close(file)
            raise StoreLockedError from None
        except BaseException:
            os.close(file)
            raise
        os.close(file)


# What follows is made of the operations above.


@contextmanager
def step(name: str) -> Iterator[None]:
    """Turn a refusal of the file system into a StoreWriteError that names the step."""
    try:
        yield
    except LightFRError:  # some are an OSError too
        raise
    except OSError as error:
        raise StoreWriteError(name, error) from error


def write_all(file: int, data: bytes, offset: int) -> None:
    """Write everything at an offset."""
    view = memoryview(data)
    while view:
        written = write(file, view, offset)
        view, offset = view[written:], offset + written


def require_folder(path: Path) -> None:
    """Make a folder and its parents where they are absent, each on the medium before the next."""
    if path.is_dir():
        return
    require_folder(path.parent)
    with suppress(FileExistsError):  # another process was faster
        make_folder(path)
    fsync_folder(path.parent)


def overwrite(file: int) -> None:
    """Put zeros in the place of an open file's content, as far as the medium allows that."""
    write_all(file, bytes(os.fstat(file).st_size), 0)
    fsync(file)


def overwrite_and_remove(path: Path) -> None:
    """Remove a file that may be absent, after its content was overwritten."""
    with suppress(FileNotFoundError):
        file = open_file(path, CHANGE)
        try:
            overwrite(file)
        finally:
            os.close(file)
    remove(path)


def temporary_of(path: Path) -> Path:
    """Return the name beside a file under which its next version is written."""
    return path.with_name(path.name + ".new")


def create_temporary(path: Path) -> int:
    """Open an empty file for the next version of a file, instead of one that a crash has left."""
    remove(temporary_of(path))
    return open_file(temporary_of(path), CREATE)


def install_temporary(path: Path) -> None:
    """Put the next version, already on the medium, in the place of a file."""
    replace(temporary_of(path), path)
    fsync_folder(path.parent)


def discard_temporary(path: Path) -> None:
    """Remove the next version after a failure, if the file system lets us; the next attempt removes it otherwise."""
    with suppress(OSError):
        remove(temporary_of(path))


def save(path: Path, data: bytes) -> None:
    """Put data in the place of a file: wholly and on the medium, or not at all."""
    file = create_temporary(path)
    try:
        try:
            write_all(file, data, 0)
            fsync(file)
        finally:
            os.close(file)
        install_temporary(path)
    except BaseException:
        with suppress(OSError):
            overwrite_and_remove(temporary_of(path))
        raise


def save_secret(path: Path, data: bytes) -> None:
    """Do as save() does, and overwrite the file that stood there, and what a crash has left of an earlier attempt.

    Should the program end between the two, the old content stays in free blocks of the medium.
    """
    overwrite_and_remove(temporary_of(path))
    try:
        old = open_file(path, CHANGE)
    except FileNotFoundError:
        save(path, data)
        return
    try:
        save(path, data)
        overwrite(old)
    finally:
        os.close(old)
