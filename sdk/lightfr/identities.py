"""What an identity is made of: the device's keys, what the authority signs for them, and the PEM files of both."""

from __future__ import annotations

from base64 import b64decode, encodebytes
from typing import TYPE_CHECKING, NamedTuple

from lightfr import _files
from lightfr._secret import secret
from lightfr.errors import EnrollmentError, InvalidInputError, RefusedError

if TYPE_CHECKING:
    from pathlib import Path

    from lightfr._wire.channel import Channel
    from lightfr.membership import MemberKey

# Labels of PEM blocks.
MEMBER_KEY, MEMBERSHIP = "LIGHTFR MEMBER KEY", "LIGHTFR MEMBERSHIP"
_REQUEST = "CERTIFICATE REQUEST"


@secret
class IdentityKeys(NamedTuple):
    """What a device makes for an identity, and what it asks the authority to sign."""

    # P-256, PEM.
    private_key: bytes
    # For that key; PKCS #10, DER.
    signing_request: bytes
    member_key: MemberKey

    def __repr__(self) -> str:
        return "<IdentityKeys>"


class Issued(NamedTuple):
    """What the authority answers: certificates, DER, the device's own first, and the membership."""

    certificates: list[bytes]
    membership: bytes


def save_key(path: Path, data: bytes) -> None:
    """Keep a private key, and leave nothing of the one that it replaces."""
    with _files.step(f"save {path}"):
        _files.save_secret(path, data)


def identity_pem(keys: IdentityKeys, issued: Issued) -> bytes:
    """Return the content of an identity file."""
    certificates = b"".join(pem("CERTIFICATE", der) for der in issued.certificates)
    member = pem(MEMBER_KEY, keys.member_key.private) + pem(MEMBERSHIP, issued.membership)
    return keys.private_key + certificates + member


def kept_keys(path: Path) -> IdentityKeys:
    """Return the keys that an interruption left, or new ones that are on the disk now."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    from lightfr.membership import MemberKey

    try:
        content = path.read_bytes() if path.exists() else b"\0"
    except OSError as error:
        # Not as if it were damaged: it may be read the next time.
        raise EnrollmentError(f"{path} cannot be read: {error.strerror}") from error
    if set(content) == {0}:  # zeros: its removal was interrupted
        made = new_identity_keys()
        member_key = pem(MEMBER_KEY, made.member_key.private)
        content = made.private_key + pem(_REQUEST, made.signing_request) + member_key
        save_key(path, content)
    try:
        private_key, request = content.partition(f"-----BEGIN {_REQUEST}-----".encode())[0], block_of(content, _REQUEST)
        parsed, key = x509.load_der_x509_csr(request), load_pem_private_key(private_key, None)
        if not parsed.is_signature_valid or parsed.public_key() != key.public_key():
            raise ValueError
        return IdentityKeys(private_key, request, MemberKey.from_private(block_of(content, MEMBER_KEY)))
    except (ValueError, TypeError):
        # Without its cause, which might quote the key.
        raise InvalidInputError(f"{path} is damaged: remove it and enrol again") from None


def enrolled(channel: Channel, token: str, kept: Path) -> tuple[IdentityKeys, Issued]:
    """Spend a token with the keys that an interruption left, or with new ones; return the keys, and what came of them.

    With another invitation a device may have been made of the keys that are left. The authority refuses them then,
    and the token is still good.
    """
    from lightfr._wire import coordinator

    keys = kept_keys(kept)
    try:
        return keys, coordinator.enroll(channel, token, keys.signing_request, keys.member_key.public)
    except RefusedError as error:
        if error.reason != "MALFORMED":
            raise
    with _files.step("remove the keys of an enrolment that was refused"):
        _files.overwrite_and_remove(kept)
    keys = kept_keys(kept)
    return keys, coordinator.enroll(channel, token, keys.signing_request, keys.member_key.public)


def new_identity_keys() -> IdentityKeys:
    """Make the keys of an identity, and a signing request for the first."""
    from lightfr.membership import MemberKey

    return IdentityKeys(*new_key_and_request(), MemberKey.new())


def new_key_and_request() -> tuple[bytes, bytes]:
    """Make a P-256 key (PEM) and a signing request for it (DER)."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    encoding, no_password = serialization.Encoding, serialization.NoEncryption()
    private_key = key.private_bytes(encoding.PEM, serialization.PrivateFormat.PKCS8, no_password)
    return private_key, request.public_bytes(encoding.DER)


def block_of(content: bytes, kind: str) -> bytes:
    """Return the content of the first PEM block of a kind, empty when there is none; raises ValueError."""
    return b64decode(content.partition(f"-----BEGIN {kind}-----".encode())[2].partition(b"-----END")[0])


def pem(kind: str, der: bytes) -> bytes:
    """Return a PEM block."""
    return f"-----BEGIN {kind}-----\n".encode() + encodebytes(der) + f"-----END {kind}-----\n".encode()
