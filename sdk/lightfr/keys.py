"""Where the key ring of a store lives: a private file, an OS keystore, or a file sealed with a passphrase.

A provider keeps one opaque secret and one opaque anchor, which is no secret, and knows nothing of the store. The anchor
moves with every change of the store, the secret only when the key is made or rotated.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lightfr import _arguments, _files, _slots
from lightfr._secret import secret
from lightfr.errors import InvalidInputError, StoreError, StoreKeyError, StoreVersionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# No file of a key or an anchor is larger, whichever release wrote it.
_MAX_FILE_BYTES = 64 * 1024


@secret
class Kept(NamedTuple):
    """What the providers below keep. The anchor is empty beside a secret of an earlier format."""

    secret: bytes
    anchor: bytes

    def __repr__(self) -> str:
        return "<Kept>"


class KeyProvider(Protocol):
    """Keeps a secret of a few hundred bytes, and an anchor of a hundred."""

    def load(self) -> tuple[bytes, bytes] | None:
        """Return secret and anchor, or None when no secret is kept."""

    def save(self, secret: bytes, anchor: bytes) -> None:
        """Replace both, durably; whenever the program ends, each is wholly the old or the new one, the anchor first."""

    def destroy(self) -> None:
        """Make the secret unrecoverable; afterwards load() returns None. Destroying twice is fine."""


class FileKey:
    """A file that only its owner may read. Whoever can read it can read the store: the key is not encrypted.

    The key is written once, and again when it is rotated; the anchor has its own file beside it, NAME.anchor. Before a
    key goes, zeros are written over it, in place. On ext4, and on other file systems that write in place, nothing of it
    is left then. Flash controllers, file systems that copy on write (btrfs, f2fs, APFS, ZFS), a journal of data,
    snapshots and backups may keep the old block all the same, and no program can reach it there. So prefer the
    system's keystore, with CallbackKey, or a disk that the system encrypts.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = _arguments.file("path", path)
        self._anchor_path = self._path.with_name(self._path.name + ".anchor")

    def load(self) -> Kept | None:
        """Return what the files hold. Raises StoreKeyError if others may read the key, or if it cannot be read."""
        content = self._read(self._path)
        if content is None or not any(content):  # zeros: destroy() was interrupted
            return None
        anchor = self._read(self._anchor_path) or b""
        if len(content) != _slots.FILE_BYTES:
            # The secret alone, as an earlier version wrote it. The next save() replaces the file.
            return Kept(content, anchor)
        slot = _slots.newest(content)
        if slot is None:
            raise StoreKeyError(f"the key file {self._path} is damaged: put a backup of it back, or discard the store")
        if not _slots.is_clean(content, slot):
            with _files.step(f"finish saving the key file {self._path}"), self._opened() as file:
                _slots.clear(file, slot.other_offset)
        return Kept(slot.secret, anchor)

    def save(self, secret: bytes, anchor: bytes) -> None:
        """Replace the anchor; write the secret if it is new, in a folder that is made if it is missing.

        Raises StoreWriteError, and then each of the two is mostly the old one.
        """
        if len(secret) > _slots.MAX_SECRET_BYTES:
            raise InvalidInputError(f"a secret has {len(secret)} bytes, at most {_slots.MAX_SECRET_BYTES} fit")
        with _files.step(f"save the key file {self._path}"):
            _files.require_folder(self._path.parent)
            _files.save(self._anchor_path, anchor)
            content = self._read(self._path) or b""
            slot = _slots.newest(content) if len(content) == _slots.FILE_BYTES else None
            if slot is None:
                _files.save_secret(self._path, _slots.new_file(secret))
            elif slot.secret != secret:
                with self._opened() as file:
                    _slots.save(file, slot, secret)

    def destroy(self) -> None:
        """Overwrite and remove the key, and what an interrupted save may have left of it; then remove the anchor."""
        if not self._path.parent.exists():
            return
        with _files.step(f"remove the key file {self._path}"):
            _files.overwrite_and_remove(self._path)
            _files.overwrite_and_remove(_files.temporary_of(self._path))
            _files.remove(self._anchor_path)
            _files.remove(_files.temporary_of(self._anchor_path))
            _files.fsync_folder(self._path.parent)

    def _read(self, path: Path) -> bytes | None:
        try:
            file = _files.open_file(path, _files.READ)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreKeyError(f"the key file {path} cannot be opened: {error.strerror}") from error
        try:
            mode = os.fstat(file).st_mode & 0o777
            if mode & 0o077:
                raise StoreKeyError(
                    f"the key file {path} has mode {mode:03o}, so others may use it: change the mode to 600, "
                    "then rotate the key"
                )
            content = _files.read(file, _MAX_FILE_BYTES + 1, 0)
        except OSError as error:
            raise StoreKeyError(f"the key file {path} cannot be read: {error.strerror}") from error
        finally:
            os.close(file)
        if len(content) > _MAX_FILE_BYTES:
            raise StoreKeyError(
                f"the key file {path} has more than {_MAX_FILE_BYTES} bytes, so lightfr did not write it"
            )
        return content

    @contextmanager
    def _opened(self) -> Iterator[int]:
        file = _files.open_file(self._path, _files.CHANGE)
        try:
            yield file
        finally:
            os.close(file)


class CallbackKey:
    """Three functions of the app, for a keystore of the system: Keychain, Android Keystore, Secret Service.

    They keep secret and anchor as one piece of a few hundred bytes, which is saved after every change of the store.
    """

    def __init__(
        self, load: Callable[[], bytes | None], save: Callable[[bytes], None], destroy: Callable[[], None]
    ) -> None:
        self._load = load
        self._save = save
        self._destroy = destroy

    def load(self) -> Kept | None:
        """Call the app's load."""
        with _calling("load"):
            kept = self._load()
        if kept is None:
            return None
        if not isinstance(kept, bytes):
            raise StoreKeyError(f"load returned {type(kept).__name__}, not the bytes that save was given")
        secret, _, anchor = kept.partition(b"\n")
        return Kept(secret, anchor)

    def save(self, secret: bytes, anchor: bytes) -> None:
        """Call the app's save, which must be durable and atomic."""
        with _calling("save"):
            self._save(secret + b"\n" + anchor)

    def destroy(self) -> None:
        """Call the app's destroy."""
        with _calling("destroy"):
            self._destroy()


@contextmanager
def _calling(name: str) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        raise StoreKeyError(f"the keystore's {name} failed with {type(error).__name__}") from error


# The sealed file: this header in the clear, which is also the associated data; then nonce and ciphertext with tag.
# Magic, version, the cost n, r, p of scrypt (RFC 7914), salt.
_HEADER = struct.Struct("<8sHIII16s")
_MAGIC = b"LFRKEYPW"
_VERSION = 1
_COST = (2**14, 8, 1)  # 128 n r = 16 MiB
# A file may ask for more than today's cost, but not for all memory or for hours.
_MAX_MEMORY_BYTES = 256 * 2**20
_MAX_PARALLEL = 16
_NONCE_BYTES = 12


@secret
class PassphraseKey:
    """A file sealed with AES-256-GCM under a passphrase. Keeps the derived key in memory, not the passphrase.

    Making one takes 16 MiB and some tens of milliseconds. A wrong passphrase shows when the key is loaded.
    """

    def __init__(self, path: str | os.PathLike[str], passphrase: str) -> None:
        self._path = _arguments.file("path", path)
        self._file = FileKey(path)
        self._lock = threading.Lock()
        kept = self._file.load()
        self._header = _new_header() if kept is None else kept.secret[: _HEADER.size]
        self._cipher = self._derive(passphrase, self._header)

    def load(self) -> Kept | None:
        """Return secret and anchor. Raises StoreKeyError when the passphrase is wrong or the file was changed."""
        with self._lock:
            return self._load()

    def save(self, secret: bytes, anchor: bytes) -> None:
        """Seal the secret if it is new, and replace what is kept."""
        with self._lock:
            kept = self._file.load()
            # Sealing the same secret again would give other bytes, and so another copy of it on the medium.
            is_kept = kept is not None and kept.secret.startswith(self._header) and self._open(kept.secret) == secret
            sealed = kept.secret if kept is not None and is_kept else _seal(self._cipher, self._header, secret)
            self._file.save(sealed, anchor)

    def destroy(self) -> None:
        """Overwrite and remove the files."""
        self._file.destroy()

    def change_passphrase(self, passphrase: str) -> None:
        """Seal the secret anew. Should that fail, the old passphrase opens the file, or else the new one does."""
        header = _new_header()
        cipher = self._derive(passphrase, header)
        with self._lock:
            kept = self._load()
            if kept is not None:
                self._file.save(_seal(cipher, header, kept.secret), kept.anchor)
            self._header, self._cipher = header, cipher

    def _load(self) -> Kept | None:
        kept = self._file.load()
        return None if kept is None else Kept(self._open(kept.secret), kept.anchor)

    def _open(self, sealed: bytes) -> bytes:
        header, body_start = sealed[: _HEADER.size], _HEADER.size + _NONCE_BYTES
        if header != self._header:
            raise StoreKeyError(f"the key file {self._path} was replaced by another one: make a new PassphraseKey")
        try:
            return self._cipher.decrypt(sealed[_HEADER.size : body_start], sealed[body_start:], header)
        except (InvalidTag, ValueError):  # ValueError: too short to hold a nonce
            raise StoreKeyError(f"the passphrase is wrong, or the key file {self._path} is damaged") from None

    def _derive(self, passphrase: str, header: bytes) -> AESGCM:
        n, r, p, salt = self._read_header(header)
        # Keyboards differ in how they compose letters; NFC makes the same text the same bytes.
        password = unicodedata.normalize("NFC", passphrase).encode(errors="surrogatepass")
        if not password:
            raise InvalidInputError("the passphrase is empty")
        return AESGCM(hashlib.scrypt(password, salt=salt, n=n, r=r, p=p, maxmem=128 * r * (n + p + 2), dklen=32))

    def _read_header(self, header: bytes) -> tuple[int, int, int, bytes]:
        if len(header) < _HEADER.size:
            raise StoreKeyError(
                f"the key file {self._path} has {len(header)} bytes, but a whole one has more than {_HEADER.size}"
            )
        magic, version, n, r, p, salt = _HEADER.unpack(header)
        if magic != _MAGIC:
            raise StoreKeyError(f"the key file {self._path} was not written by a PassphraseKey")
        if version != _VERSION:
            raise StoreVersionError(f"key file {self._path}", version, _VERSION)
        in_range = n > 1 and r > 0 and 128 * n * r <= _MAX_MEMORY_BYTES and 0 < p <= _MAX_PARALLEL
        if not in_range or n & (n - 1):
            raise StoreKeyError(f"the key file {self._path} is damaged: its scrypt cost is out of range")
        return n, r, p, salt


def _new_header() -> bytes:
    return _HEADER.pack(_MAGIC, _VERSION, *_COST, os.urandom(16))


def _seal(cipher: AESGCM, header: bytes, secret: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return header + nonce + cipher.encrypt(nonce, secret, header)
