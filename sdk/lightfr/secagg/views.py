"""What the devices of a cohort must have been told alike before any of them reveals anything, and how they show it.

The server signs every set that it tells. Each device signs the set with its member key, and acts on it only when a
quorum of the roster has signed the same: then no two honest devices act on different sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from lightfr.errors import BufferSizeError, CohortTooSmallError, PrivacyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lightfr.membership import IsSigned

SIGNATURE_BYTES = 64
# How many others a device chooses at random, and keeps to itself, to check the signatures of. 0.8^96 is 5e-10:
# docs/secagg.md, "Agreement".
WITNESSES = 96

_ENTRY_LABEL = b"lightfr entry v1\n"
_ROSTER_LABEL = b"lightfr roster v1\n"
_INCLUDED_LABEL = b"lightfr included v1\n"
_SURVIVORS_LABEL = b"lightfr survivors v1\n"


def entry_message(round_id: bytes, peer_id: bytes, mask_key: bytes, share_key: bytes) -> bytes:
    """Return what a device signs of its own entry."""
    return _ENTRY_LABEL + round_id + peer_id + mask_key + share_key


def roster_message(digest: bytes) -> bytes:
    """Return what the server signs of a roster."""
    return _ROSTER_LABEL + digest


def included_message(digest: bytes, included: bytes) -> bytes:
    """Return what the server and each device sign of the included set, a bitmap."""
    return _INCLUDED_LABEL + digest + included


def survivors_message(digest: bytes, included: bytes, survivors: bytes) -> bytes:
    """Return what the server and each device sign at the end: who was included and who uploaded, as bitmaps."""
    return _SURVIVORS_LABEL + digest + included + survivors


def quorum(size: int) -> int:
    """Return how many devices of a roster must have signed a set: seven tenths, and in any case more than half."""
    return max(size // 2 + 1, 7 * size // 10)


def require_quorum(
    what: str, size: int, allowed: frozenset[int], signers: bytes, signatures: bytes, message: bytes,
    witnesses: Mapping[int, bytes], check: IsSigned | None = None,
) -> None:  # fmt: skip
    """Raise PrivacyError unless a quorum of the `allowed` devices signed, and each witness among them really did.

    `witnesses` has member keys by roster index: those that this device chose at random and told nobody.
    """
    claimed = sorted(members(signers, size))
    if len(signatures) != SIGNATURE_BYTES * len(claimed):
        raise PrivacyError(f"{len(signatures)} bytes are not {len(claimed)} signatures of {what}: leave the round")
    if not allowed.issuperset(claimed):
        raise PrivacyError(f"a device signed {what} without being in it: leave the round")
    if len(claimed) < quorum(size):
        raise CohortTooSmallError(f"the devices that signed {what}", len(claimed), quorum(size))
    for place, index in enumerate(claimed):
        if index in witnesses:
            signature = signatures[place * SIGNATURE_BYTES : (place + 1) * SIGNATURE_BYTES]
            require_signature(f"a device of the cohort, of {what}", witnesses[index], signature, message, check)


def require_signature(whose: str, key: bytes, signature: bytes, message: bytes, check: IsSigned | None = None) -> None:
    """Raise PrivacyError unless the raw Ed25519 key signed the message."""
    if not (check or is_signed)(key, signature, message):
        raise PrivacyError(f"the signature of {whose} does not fit: leave the round")


def is_signed(key: bytes, signature: bytes, message: bytes) -> bool:
    """Tell whether the raw Ed25519 key signed the message."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def bitmap_of(indices: Iterable[int], size: int) -> bytes:
    """Return a set of devices as bits: roster index i is bit (i mod 8) of byte (i div 8)."""
    return sum(1 << i for i in set(indices)).to_bytes((size + 7) // 8, "little")


def members(bitmap: bytes, size: int) -> frozenset[int]:
    """Return the indices of a bitmap; raises PrivacyError when it does not belong to a roster of this size."""
    bits = int.from_bytes(bitmap, "little")
    if len(bitmap) != (size + 7) // 8 or bits >> size:
        raise PrivacyError(f"a set of devices is not of {size} bits: leave the round")
    return frozenset(i for i in range(size) if bits >> i & 1)


def require_bytes(what: str, value: bytes, expected_bytes: int) -> None:
    """Raise BufferSizeError unless the value has this length."""
    if len(value) != expected_bytes:
        raise BufferSizeError(what, len(value), expected_bytes)
