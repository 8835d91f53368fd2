"""The log file, format version 1: a header in the clear, then sealed records in a row.

Header, little-endian: magic "LFRSTORE", u16 version, 16-byte store id, 8-byte key id, u64 first_sequence.
Record: u32 length of what follows, 12-byte nonce, AES-256-GCM ciphertext with its 16-byte tag. Its associated data are
the header and the record's u64 sequence, first_sequence + its place: no record can be moved, repeated or left out.
Nonces are random because a record that was cut off leaves its sequence to another one.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lightfr import _files
from lightfr._secret import secret
from lightfr.errors import StoreCorruptError, StoreVersionError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

VERSION = 1
# No reader takes more memory for a record than this.
MAX_RECORD_BYTES = 64 * 2**20
# What a caller may put into one record: less, since a snapshot writes the same content with a little more around it.
MAX_CHANGE_BYTES = MAX_RECORD_BYTES - 1024

_MAGIC = b"LFRSTORE"
_HEADER = struct.Struct("<8sH16s8sQ")
_LENGTH = struct.Struct("<I")
_SEQUENCE = struct.Struct("<Q")
_NONCE_BYTES = 12
_TAG_BYTES = 16


class Header(NamedTuple):
    """What the header says; nothing of it is secret."""

    store_id: bytes
    key_id: bytes
    first_sequence: int

    def encode(self) -> bytes:
        """Return the bytes of the header."""
        return _HEADER.pack(_MAGIC, VERSION, self.store_id, self.key_id, self.first_sequence)

    @classmethod
    def read(cls, file: int) -> Header:
        """Read the header of a file; raises StoreCorruptError or StoreVersionError."""
        data = _files.read(file, _HEADER.size, 0)
        if len(data) < _HEADER.size or not data.startswith(_MAGIC):
            raise StoreCorruptError("the store file does not begin with a header of lightfr")
        _, version, store_id, key_id, first_sequence = _HEADER.unpack(data)
        if version != VERSION:
            raise StoreVersionError("store", version, VERSION)
        return cls(store_id, key_id, first_sequence)


@secret
class Log:
    """An open log file. `length_bytes` and `next_sequence` say where the next record goes."""

    def __init__(self, file: int, header: Header, key: bytes) -> None:
        self.file = file
        self.header = header
        self.length_bytes = _HEADER.size
        self.next_sequence = header.first_sequence
        self._cipher = AESGCM(key)

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; one below the first sequence when there is none."""
        return self.next_sequence - 1

    def read(self) -> bytes | None:
        """Return the next record's plaintext and step past it; None at the end, or where no whole record stands."""
        start = _files.read(self.file, _LENGTH.size, self.length_bytes)
        size = _LENGTH.unpack(start)[0] if len(start) == _LENGTH.size else 0
        if not _NONCE_BYTES + _TAG_BYTES <= size <= MAX_RECORD_BYTES:
            return None
        sealed = _files.read(self.file, size, self.length_bytes + _LENGTH.size)
        plaintext = self._open(sealed) if len(sealed) == size else None
        if plaintext is not None:
            self.step_past(_LENGTH.size + size)
        return plaintext

    def seal(self, plaintext: bytes) -> bytes:
        """Return the next record."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, plaintext, self._associated_data())
        return _LENGTH.pack(len(sealed)) + sealed

    def step_past(self, record_bytes: int) -> None:
        """Count the next record as one of the log."""
        self.length_bytes += record_bytes
        self.next_sequence += 1

    def _open(self, sealed: bytes) -> bytes | None:
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], self._associated_data())
        except InvalidTag:
            return None

    def _associated_data(self) -> bytes:
        return self.header.encode() + _SEQUENCE.pack(self.next_sequence)


def write_temporary(path: Path, header: Header, key: bytes, plaintexts: Iterable[bytes]) -> Log:
    """Write a whole log beside `path` and bring it to the medium; it takes its place by _files.install_temporary."""
    file = _files.create_temporary(path)
    try:
        log = Log(file, header, key)
        _files.write_all(file, header.encode(), 0)
        for plaintext in plaintexts:
            record = log.seal(plaintext)
            _files.write_all(file, record, log.length_bytes)
            log.step_past(len(record))
        _files.fsync(file)
    except BaseException:
        os.close(file)
        _files.discard_temporary(path)
        raise
    return log
