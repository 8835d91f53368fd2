"""The authority's statement that a key belongs to one of its devices, short enough to check without certificates.

A membership is 104 bytes: the member key, 32; when the membership ends, in Unix seconds, 8, little-endian; and the
signature of the authority's membership key over a context and both, 64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from lightfr._secret import secret
from lightfr.errors import PrivacyError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    # Whether a raw Ed25519 key made this signature of this message.
    IsSigned = Callable[[bytes, bytes, bytes], bool]

MEMBERSHIP_CONTEXT = b"lightfr member v1\n"
MEMBER_KEY_BYTES = 32
MEMBERSHIP_BYTES = 104
_STATEMENT_BYTES = MEMBER_KEY_BYTES + 8


@secret
class MemberKey:
    """The key by which the other devices of a cohort know this one; Ed25519. Its repr says nothing."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        """Use new() or from_private() instead."""
        self._key = key
        # 32 raw bytes.
        self.public: bytes = key.public_key().public_bytes_raw()

    @classmethod
    def new(cls) -> MemberKey:
        """Make a new random key."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_private(cls, private: bytes) -> MemberKey:
        """Return the key of 32 private bytes; raises ValueError for another number of them."""
        return cls(Ed25519PrivateKey.from_private_bytes(private))

    @property
    def private(self) -> bytes:
        """The 32 private bytes, for the device's own disk."""
        return self._key.private_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message, 64 bytes."""
        return self._key.sign(message)


class Member(NamedTuple):
    """What a device shows to its cohort: its key, and the authority's statement about it."""

    key: MemberKey
    membership: bytes


def require_membership(
    membership: bytes, membership_keys: Sequence[bytes], now_unix_seconds: float, check: IsSigned | None = None
) -> bytes:
    """Return the member key that one of the authority's keys vouches for now; raises PrivacyError."""
    check = check or _is_signed
    if len(membership) != MEMBERSHIP_BYTES:
        raise PrivacyError(f"a membership has {len(membership)} bytes, not {MEMBERSHIP_BYTES}: leave the round")
    statement, signature = membership[:_STATEMENT_BYTES], membership[_STATEMENT_BYTES:]
    if not any(check(key, signature, MEMBERSHIP_CONTEXT + statement) for key in membership_keys):
        raise PrivacyError("a membership was not signed by the authority of this device: leave the round")
    if int.from_bytes(statement[MEMBER_KEY_BYTES:], "little") <= now_unix_seconds:
        raise PrivacyError("a membership has ended: leave the round")
    return statement[:MEMBER_KEY_BYTES]


def _is_signed(key: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True
