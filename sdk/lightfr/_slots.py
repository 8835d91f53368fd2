"""A small file that is changed in place: two slots, of which one holds a secret and the other holds zeros.

A new secret goes into the free slot, and zeros then go over the old one. So whenever the program ends, one whole secret
stands; and on a medium that writes where it is told to, no other block ever held one. The file has two whole blocks:
ext4 may keep smaller ones inside its inodes, which its journal copies.

Slot: SHA-256 of the rest of the slot, magic "LFRSLOT1", u64 generation, u32 length, the secret, zeros. Little-endian.
"""

from __future__ import annotations

import hashlib
from struct import Struct
from typing import NamedTuple

from lightfr import _files
from lightfr._secret import secret

_SLOT_BYTES = 4096
FILE_BYTES = 2 * _SLOT_BYTES
_MAGIC = b"LFRSLOT1"
_HEAD = Struct("<8sQI")
_DIGEST_BYTES = 32
MAX_SECRET_BYTES = _SLOT_BYTES - _DIGEST_BYTES - _HEAD.size


@secret
class Slot(NamedTuple):
    """A whole slot: where it begins in the file, which save wrote it, and its secret."""

    offset: int
    generation: int
    secret: bytes

    def __repr__(self) -> str:
        return f"<Slot of generation {self.generation}>"

    @property
    def other_offset(self) -> int:
        """Where the other slot begins."""
        return _SLOT_BYTES - self.offset

    def encode(self) -> bytes:
        """Return the bytes of the slot."""
        body = _HEAD.pack(_MAGIC, self.generation, len(self.secret)) + self.secret
        body = body.ljust(_SLOT_BYTES - _DIGEST_BYTES, b"\0")
        return hashlib.sha256(body).digest() + body


def new_file(secret: bytes) -> bytes:
    """Return the content of a file that holds a first secret."""
    return Slot(0, 1, secret).encode() + bytes(_SLOT_BYTES)


def newest(content: bytes) -> Slot | None:
    """Return the slot that counts; None if neither is whole."""
    slots = [slot for offset in (0, _SLOT_BYTES) if (slot := _decode(content, offset)) is not None]
    return max(slots, key=lambda slot: slot.generation, default=None)


def is_clean(content: bytes, slot: Slot) -> bool:
    """Whether the other slot holds nothing."""
    return not any(content[slot.other_offset : slot.other_offset + _SLOT_BYTES])


def save(file: int, old: Slot, secret: bytes) -> None:
    """Put a secret in the place of the old one, in an open file."""
    _files.write_all(file, Slot(old.other_offset, old.generation + 1, secret).encode(), old.other_offset)
    _files.fsync(file)
    clear(file, old.offset)


def clear(file: int, offset: int) -> None:
    """Write zeros over the slot that begins there."""
    _files.write_all(file, bytes(_SLOT_BYTES), offset)
    _files.fsync(file)


def _decode(content: bytes, offset: int) -> Slot | None:
    digest, body = content[offset : offset + _DIGEST_BYTES], content[offset + _DIGEST_BYTES : offset + _SLOT_BYTES]
    if hashlib.sha256(body).digest() != digest:
        return None
    magic, generation, length = _HEAD.unpack_from(body)
    return Slot(offset, generation, body[_HEAD.size : _HEAD.size + length]) if magic == _MAGIC else None
