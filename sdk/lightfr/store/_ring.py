"""The key ring: the keys of one store, and the number of its last durable record.

The keys are the provider's secret. The number is its anchor: kept in the clear, with an HMAC under one of the keys, so
that it can be put back but not made up. In version 1 it was a part of the secret.
"""

from __future__ import annotations

import hmac
import json
import os
from typing import TYPE_CHECKING, NamedTuple

from lightfr._secret import secret
from lightfr.errors import StoreKeyError, StoreVersionError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

VERSION = 2
STORE_ID_BYTES = 16
KEY_ID_BYTES = 8
KEY_BYTES = 32
_MAX_DIGITS = 20  # of 2^64


@secret
class KeyRing(NamedTuple):
    """One key, or two while a rotation is under way. The anchor is the sequence of the last acknowledged record."""

    store_id: bytes
    keys: Mapping[bytes, bytes]
    anchor: int

    def __repr__(self) -> str:
        return f"<KeyRing with {len(self.keys)} keys>"

    @classmethod
    def new(cls) -> KeyRing:
        """Make the ring of a new store, which has no record yet."""
        return cls(os.urandom(STORE_ID_BYTES), dict([_new_key()]), anchor=0)

    def with_new_key(self) -> tuple[KeyRing, bytes]:
        """Return the ring with one more key, and the id of that key."""
        key_id, key = _new_key()
        return self._replace(keys={**self.keys, key_id: key}), key_id

    def settled(self, key_id: bytes, anchor: int) -> KeyRing:
        """Return the ring with one of its keys alone, and a new anchor."""
        return KeyRing(self.store_id, {key_id: self.keys[key_id]}, anchor)

    def encode(self) -> bytes:
        """Return the secret that the provider keeps: all but the anchor."""
        keys = {key_id.hex(): key.hex() for key_id, key in self.keys.items()}
        return json.dumps({"version": VERSION, "store": self.store_id.hex(), "keys": keys}).encode()

    def encode_anchor(self) -> bytes:
        """Return the anchor that the provider keeps: the number and its HMAC, as text."""
        return b"%d %s" % (self.anchor, self._mark(next(iter(self.keys.values()))))

    @classmethod
    def decode(cls, secret: bytes, anchor: bytes) -> KeyRing:
        """Read what encode() and encode_anchor() wrote; raises StoreKeyError or StoreVersionError."""
        fields = _parse(secret)
        version = fields.get("version")
        if isinstance(version, int) and version > VERSION:
            raise StoreVersionError("key ring", version, VERSION)
        number, _, mark = anchor.partition(b" ")
        if version == VERSION:
            fields["anchor"] = int(number) if number.isdigit() and len(number) <= _MAX_DIGITS else 0
        ring = cls._from_fields(fields) if version in (1, VERSION) else None
        # Raised out here, so that no parser's error, which may quote keys, hangs on this one.
        if ring is None:
            raise StoreKeyError("the key ring is damaged, or is not a key ring of lightfr")
        # While a rotation is under way, the anchor may be marked by either key.
        if version == VERSION and not any(hmac.compare_digest(mark, ring._mark(key)) for key in ring.keys.values()):
            raise StoreKeyError(
                "the anchor that is kept with the key is missing, damaged, or of another store: "
                "put it back, or start anew with lightfr.store.discard(folder, keys)"
            )
        return ring

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> KeyRing | None:
        try:
            keys = {bytes.fromhex(key_id): bytes.fromhex(key) for key_id, key in fields["keys"].items()}
            ring = cls(bytes.fromhex(fields["store"]), keys, fields["anchor"])
        except (KeyError, ValueError, TypeError, AttributeError):
            return None
        return ring if ring._is_sound() else None

    def _mark(self, key: bytes) -> bytes:
        return hmac.digest(key, b"lightfr anchor %s %d" % (self.store_id, self.anchor), "sha256").hex().encode()

    def _is_sound(self) -> bool:
        sizes = {(len(key_id), len(key)) for key_id, key in self.keys.items()}
        is_anchored = type(self.anchor) is int and 0 <= self.anchor < 2**64
        return sizes == {(KEY_ID_BYTES, KEY_BYTES)} and len(self.store_id) == STORE_ID_BYTES and is_anchored


def _new_key() -> tuple[bytes, bytes]:
    return os.urandom(KEY_ID_BYTES), os.urandom(KEY_BYTES)


def _parse(secret: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(secret)
    except (ValueError, TypeError):
        return {}
    return fields if isinstance(fields, dict) else {}
