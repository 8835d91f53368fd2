"""Where the key ring of a store lives: a private file, an OS keystore, or a file sealed with a passphrase.

A provider keeps one opaque secret and knows nothing of the store. It saves after every change of the store.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import unicodedata
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lightfr import _files
from lightfr.errors import InvalidInputError, StoreError, StoreKeyError, StoreVersionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAX_SECRET_BYTES = 64 * 1024


class KeyProvider(Protocol):
    """Keeps one secret of a few hundred bytes."""

    def load(self) -> bytes | None:
        """Return the secret, or None when nothing is kept."""

    def save(self, secret: bytes) -> None:
        """Replace the secret; durable, and wholly the old or the new one whenever the program ends."""

    def destroy(self) -> None:
        """Make the secret unrecoverable; afterwards load() returns None. Destroying twice is fine."""


class FileKey:
    """A file that only its owner may read. Whoever can read it can read the store: the key is not encrypted."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def load(self) -> bytes | None:
        """Return the file's content. Raises StoreKeyError if others may read it, or if it cannot be read."""
        try:
            file = _files.open_file(self._path, _files.READ)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreKeyError(f"the key file {self._path} cannot be opened: {error.strerror}") from error
        try:
            mode = os.fstat(file).st_mode & 0o777
            if mode & 0o077:
                raise StoreKeyError(
                    f"the key file {self._path} has mode {mode:03o}, so others may use it: change the mode to 600, "
                    "then rotate the key"
                )
            secret = _files.read(file, _MAX_SECRET_BYTES + 1, 0)
        except OSError as error:
            raise StoreKeyError(f"the key file {self._path} cannot be read: {error.strerror}") from error
        finally:
            os.close(file)
        if len(secret) > _MAX_SECRET_BYTES:
            raise StoreKeyError(
                f"the key file {self._path} has more than {_MAX_SECRET_BYTES} bytes, so lightfr did not write it"
            )
        return secret

    def save(self, secret: bytes) -> None:
        """Replace the file by a new one of mode 0600, in a folder that is made if it is missing.

        Raises StoreWriteError, and then the old file mostly stands.
        """
        with _files.step(f"save the key file {self._path}"):
            _files.require_folder(self._path.parent)
            _files.save(self._path, secret)

    def destroy(self) -> None:
        """Remove the file, and what an interrupted save may have left of it."""
        if not self._path.parent.exists():
            return
        with _files.step(f"remove the key file {self._path}"):
            _files.remove(_files.temporary_of(self._path))
            _files.remove(self._path)
            _files.fsync_folder(self._path.parent)


class CallbackKey:
    """Three functions of the app, for a keystore of the system: Keychain, Android Keystore, Secret Service."""

    def __init__(
        self, load: Callable[[], bytes | None], save: Callable[[bytes], None], destroy: Callable[[], None]
    ) -> None:
        self._load = load
        self._save = save
        self._destroy = destroy

    def load(self) -> bytes | None:
        """Call the app's load."""
        with _calling("load"):
            return self._load()

    def save(self, secret: bytes) -> None:
        """Call the app's save, which must be durable and atomic."""
        with _calling("save"):
            self._save(secret)

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


class PassphraseKey:
    """A file sealed with AES-256-GCM under a passphrase. Keeps the derived key in memory, not the passphrase.

    Making one takes 16 MiB and some tens of milliseconds. A wrong passphrase shows when the key is loaded.
    """

    def __init__(self, path: str | os.PathLike[str], passphrase: str) -> None:
        self._path = Path(path)
        self._file = FileKey(path)
        self._lock = threading.Lock()
        sealed = self._file.load()
        self._header = _new_header() if sealed is None else sealed[: _HEADER.size]
        self._cipher = self._derive(passphrase, self._header)

    def load(self) -> bytes | None:
        """Return the secret. Raises StoreKeyError when the passphrase is wrong or the file was changed."""
        with self._lock:
            return self._load()

    def save(self, secret: bytes) -> None:
        """Seal the secret and replace the file."""
        with self._lock:
            self._file.save(_seal(self._cipher, self._header, secret))

    def destroy(self) -> None:
        """Remove the file."""
        self._file.destroy()

    def change_passphrase(self, passphrase: str) -> None:
        """Seal the secret anew. Should that fail, the old passphrase opens the file, or else the new one does."""
        header = _new_header()
        cipher = self._derive(passphrase, header)
        with self._lock:
            secret = self._load()
            if secret is not None:
                self._file.save(_seal(cipher, header, secret))
            self._header, self._cipher = header, cipher

    def _load(self) -> bytes | None:
        sealed = self._file.load()
        if sealed is None:
            return None
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
