"""Two ways to see what a store leaves on a medium: the image of an ext4 file system, or every file it ever opened.

The image shows the journal and the free blocks too, but takes root, loop devices and mkfs.ext4. The open files show
each inode's last bytes, unlinked or not.
"""

import os
import re
import shutil
import struct
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lightfr import _files

_HEADER_BYTES = 42


@contextmanager
def ext4_image(_monkeypatch):
    """Yield a folder on a new ext4 file system, and a function that unmounts it and returns its image."""
    with tempfile.TemporaryDirectory() as name:
        image, folder = Path(name) / "image", Path(name) / "mounted"
        folder.mkdir()
        with image.open("wb") as file:
            file.truncate(16 * 2**20)
        _run("mkfs.ext4", "-q", "-F", image)
        _run("mount", "-o", "loop", image, folder)
        try:
            yield folder, lambda: (_run("umount", folder), image.read_bytes())[1]
        finally:
            if folder.is_mount():
                _run("umount", folder)


def can_mount():
    """Try it: root in a container may lack the devices or the right."""
    if os.geteuid() or not shutil.which("mkfs.ext4"):
        return False
    try:
        with ext4_image(None):
            return True
    except subprocess.CalledProcessError:
        return False


@contextmanager
def open_files(monkeypatch):
    """Yield a folder, and a function that returns the bytes of every file that lightfr ever opened there."""
    copies, opened = {}, _files.open_file

    def keep(path, flags):
        file = opened(path, flags)
        status = os.fstat(file)
        if (status.st_dev, status.st_ino) not in copies:
            # Opened and not duplicated, which would share the lock. While it is open, its inode is not used again.
            copies[status.st_dev, status.st_ino] = os.open(path, os.O_RDONLY)
        return file

    monkeypatch.setattr(_files, "open_file", keep)
    with tempfile.TemporaryDirectory() as name:
        try:
            yield Path(name), lambda: b"".join(os.pread(file, os.fstat(file).st_size, 0) for file in copies.values())
        finally:
            for file in copies.values():
                os.close(file)


def key_copies(data, keys):
    """Count the copies of any of these keys, raw or in hexadecimal digits."""
    return sum(data.count(key) + data.count(key.hex().encode()) for key in keys)


def readable_records(data, keys):
    """Count the records of logs, whole or not, that the keys found in the same data open."""
    found = [AESGCM(key) for key in keys if key_copies(data, [key])]
    starts = [match.start() for match in re.finditer(b"LFRSTORE", data)]
    return sum(_count_opened(data, start, cipher) for start in starts for cipher in found)


def _count_opened(data, start, cipher):
    header, at, opened = data[start : start + _HEADER_BYTES], start + _HEADER_BYTES, 0
    sequence = struct.unpack_from("<Q", header, 34)[0]
    while at + 4 <= len(data):
        sealed = data[at + 4 : at + 4 + struct.unpack_from("<I", data, at)[0]]
        try:
            cipher.decrypt(sealed[:12], sealed[12:], header + struct.pack("<Q", sequence + opened))
        except (InvalidTag, ValueError):
            break
        at, opened = at + 4 + len(sealed), opened + 1
    return opened


def _run(*command):
    subprocess.run(command, check=True, capture_output=True)
