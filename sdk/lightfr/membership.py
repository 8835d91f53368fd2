"""Who is a member: a device's long-term key, and the authority's compact statement about it.

A membership is 104 bytes: member public key (32), end (8, little-endian unix seconds), and the authority's Ed25519
signature of both (64). Devices check each other's with no certificate parser, which would cost 16 MB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from lightfr.errors import BufferSizeError, PrivacyError

if TYPE_CHECKING:
    from collections.abc import Iterable

MEMBERSHIP_BYTES = 104
_KEY_BYTES = 32
_END_BYTES = 8
_LABEL = b"lightfr member v1\n"


class MemberKey:
    """The private Ed25519 key by which a cohort knows a device."""

    def __init__(self, raw: bytes) -> None:
        """Take 32 private bytes."""
        self.raw = raw
        self._key = Ed25519PrivateKey.from_private_bytes(raw)

    def __repr__(self) -> str:
        return "<MemberKey>"

    @property
    def public(self) -> bytes:
        """The raw public key, 32 bytes."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """Return a signature, 64 bytes."""
        return self._key.sign(message)


class Member(NamedTuple):
    """A device's key and the statement about it."""

    key: MemberKey
    membership: bytes


def member_message(public_key: bytes, ends: bytes) -> bytes:
    """Return what the authority signs."""
    return _LABEL + public_key + ends


def require_membership(membership: bytes, membership_keys: Iterable[bytes], now_unix_seconds: float) -> bytes:
    """Return the member key; raises PrivacyError unless an authority's key signed it and it has not ended."""
    if len(membership) != MEMBERSHIP_BYTES:
        raise BufferSizeError("a membership", len(membership), MEMBERSHIP_BYTES)
    public_key, ends = membership[:_KEY_BYTES], membership[_KEY_BYTES : _KEY_BYTES + _END_BYTES]
    if int.from_bytes(ends, "little") <= now_unix_seconds:
        raise PrivacyError("the membership of a device of the cohort has ended: leave the round")
    signature, message = membership[_KEY_BYTES + _END_BYTES :], member_message(public_key, ends)
    for key in membership_keys:
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        except InvalidSignature:
            continue
        return public_key
    raise PrivacyError("the authority does not vouch for a device of the cohort: leave the round")
