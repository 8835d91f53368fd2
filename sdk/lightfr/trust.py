"""What a client trusts: one PEM file with the authority's certificates and the keys that sign manifests."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING

from lightfr.errors import InvalidInputError

if TYPE_CHECKING:
    import os

_BLOCK = re.compile(rb"-----BEGIN PUBLIC KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END PUBLIC KEY-----")
# SubjectPublicKeyInfo of an Ed25519 key is this prefix and the 32 raw bytes (RFC 8410).
_ED25519_PREFIX = bytes.fromhex("302a300506032b6570032100")


class Trust:
    """The trust file, read once; TLS reads the certificates in it by itself."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            blocks = _BLOCK.findall(self.path.read_bytes())
        except OSError as error:
            raise InvalidInputError(f"the trust cannot be read: {error.strerror}") from error
        # key_id -> raw public key; several while a key is being replaced.
        self.manifest_keys = {key_id(key): key for key in map(_raw, blocks)}
        if not self.manifest_keys:
            raise InvalidInputError("the trust has no PUBLIC KEY block: it cannot tell a genuine manifest")

    def __repr__(self) -> str:
        return f"<Trust with {len(self.manifest_keys)} manifest keys>"


def key_id(raw_key: bytes) -> bytes:
    """Return the 8 bytes by which a SignedManifest names its key."""
    return hashlib.sha256(raw_key).digest()[:8]


def _raw(block: bytes) -> bytes:
    try:
        der = b64decode(b"".join(block.split()), validate=True)
    except ValueError as error:
        raise InvalidInputError("a PUBLIC KEY block of the trust is damaged") from error
    if len(der) != len(_ED25519_PREFIX) + 32 or not der.startswith(_ED25519_PREFIX):
        raise InvalidInputError("a PUBLIC KEY block of the trust is no Ed25519 key")
    return der[len(_ED25519_PREFIX) :]
