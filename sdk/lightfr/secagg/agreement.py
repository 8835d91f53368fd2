"""Keys that two devices have in common, and what is sealed with them. Labels bind every key to its purpose."""

from __future__ import annotations

import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lightfr._secret import secret
from lightfr.errors import PeerKeyError, PrivacyError

KEY_BYTES = 32
NONCE_BYTES = 12
_TAG_BYTES = 16

_PAIR_MASK = b"lightfr pair mask v1"
_SELF_MASK = b"lightfr self mask v1"
_SHARE = b"lightfr share v1"


def hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """Return 32 bytes of HKDF-SHA256 (RFC 5869), which is one block of its output."""
    return hmac.digest(hmac.digest(salt, secret, "sha256"), info + b"\x01", "sha256")


def public_key(private_key: bytes) -> bytes:
    """Return the X25519 public key of 32 private bytes."""
    return X25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


@secret
class Agreement:
    """One private key, to agree with many others: reading it costs as much as an agreement."""

    def __init__(self, private_key: bytes) -> None:
        self._key = X25519PrivateKey.from_private_bytes(private_key)

    def with_peer(self, peer_key: bytes) -> bytes:
        """Return the 32 bytes that both have in common; raises PeerKeyError for a point of low order."""
        try:
            return self._key.exchange(X25519PublicKey.from_public_bytes(peer_key))
        except ValueError as error:  # cryptography refuses a secret of 32 zero bytes
            raise PeerKeyError("the key of a peer is a point of low order: leave the round") from error


def pair_mask_key(shared: bytes, round_id: bytes, one_id: bytes, other_id: bytes) -> bytes:
    """Return the AES key of the mask that two devices share, the same for both."""
    return hkdf(shared, round_id, _PAIR_MASK + min(one_id, other_id) + max(one_id, other_id))


def self_mask_key(seed: bytes, round_id: bytes, peer_id: bytes) -> bytes:
    """Return the AES key of the mask that a device has for itself."""
    return hkdf(seed, round_id, _SELF_MASK + peer_id)


def share_key(shared: bytes, round_id: bytes, roster_digest: bytes, sender_id: bytes, receiver_id: bytes) -> bytes:
    """Return the AES key that seals what one device sends another; each direction has its own."""
    return hkdf(shared, b"", _SHARE + round_id + roster_digest + sender_id + receiver_id)


def seal(key: bytes, nonce: bytes, plain: bytes) -> bytes:
    """Return nonce, ciphertext and tag of AES-256-GCM."""
    return nonce + AESGCM(key).encrypt(nonce, plain, None)


def unseal(key: bytes, sealed: bytes, plain_bytes: int) -> bytes:
    """Return what was sealed; raises PrivacyError unless it is genuine and of this size."""
    expected = NONCE_BYTES + plain_bytes + _TAG_BYTES
    if len(sealed) != expected:
        raise PrivacyError(f"a sealed share has {len(sealed)} bytes, expected {expected}: leave the round")
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None)
    except InvalidTag as error:
        raise PrivacyError("a sealed share does not open with the keys of the roster: leave the round") from error
