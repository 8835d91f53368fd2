"""Stands in for the file operations of lightfr._files: counts them, refuses one, or ends the program there."""

import os
import shutil
from contextlib import suppress

from lightfr import _files

OPERATIONS = (
    "open_file",
    "write",
    "read",
    "fsync",
    "truncate",
    "replace",
    "remove",
    "make_folder",
    "fsync_folder",
    "lock",
)


class CrashError(BaseException):
    """The program ends here: no handler of the store catches it, and no operation works any more."""


class Files:
    """Counts operations from 1 and does `fault` at number `at`.

    Faults: "refuse" (before anything happened), "short" (half of a write happens), "late" (it happens, and is refused),
    "lasting" (refused from there on), "crash" (ends the program), "torn" (the same, after half of a write). Flushing
    only keeps a copy of what a loss of power leaves, see `lose_power`.
    """

    def __init__(self, monkeypatch):
        self.count, self.at, self.fault, self.errno = 0, 0, "refuse", 0
        self.log = []
        self._open = set()
        self._synced, self._names = {}, {}
        for name in OPERATIONS:
            monkeypatch.setattr(_files, name, self._wrap(name, getattr(_files, name)))

    def arm(self, at, fault, errno=0):
        self.count, self.at, self.fault, self.errno = 0, at, fault, errno
        self.log = []

    def heal(self):
        self.at = 0

    def end_program(self):
        """Close what a program that has ended no longer has open, its lock included."""
        self.heal()
        for file in self._open:
            with suppress(OSError):
                os.close(file)
        self._open.clear()

    def lose_power(self, base):
        """Leave under `base` only what was flushed: contents by fsync, names by fsync of their folder."""
        for entry in sorted(base.iterdir()):
            if entry.is_dir() and entry.name in self._names.get(base, {}):
                self.lose_power(entry)
            elif entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        for name, inode in self._names.get(base, {}).items():
            if not (base / name).exists():
                (base / name).write_bytes(self._synced.get(inode, b""))
                (base / name).chmod(0o600)

    def _wrap(self, name, original):
        def operation(*arguments):
            self.count += 1
            self.log.append(name)
            if self.at and (
                self.count == self.at or (self.count > self.at and self.fault not in ("refuse", "short", "late"))
            ):
                self._fail(name, original, arguments)
            return self._do(name, original, arguments)

        return operation

    def _fail(self, name, original, arguments):
        if name == "write" and self.fault in ("short", "torn") and self.count == self.at:
            file, data, offset = arguments
            original(file, data[: len(data) // 2], offset)
        if self.fault == "late":
            result = self._do(name, original, arguments)
            if name in ("open_file", "lock"):
                os.close(result)
        if self.fault in ("crash", "torn"):
            raise CrashError
        raise OSError(self.errno, os.strerror(self.errno))

    def _do(self, name, original, arguments):
        if name == "fsync":
            self._synced[os.fstat(arguments[0]).st_ino] = _content(arguments[0])
            return None
        if name == "fsync_folder":
            self._names[arguments[0]] = {entry.name: entry.stat().st_ino for entry in arguments[0].iterdir()}
            return None
        result = original(*arguments)
        if name == "open_file":
            self._open.add(result)
            if arguments[1] & os.O_EXCL:
                self._synced.pop(os.fstat(result).st_ino, None)  # inode numbers come back
        return result


def _content(file):
    return os.pread(file, os.fstat(file).st_size, 0)
