"""Enrolment: a key made here, a certificate for it from the server. Once per device, before Client.open."""

from __future__ import annotations

import json
import os
from base64 import b64decode, encodebytes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lightfr import _files
from lightfr._wire import coordinator, tls
from lightfr._wire.channel import Channel, address_of
from lightfr.errors import EnrollmentError, InvalidInputError, RefusedError
from lightfr.trust import Trust

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_REQUEST = "CERTIFICATE REQUEST"
_FIELDS = ("server", "enrollment", "token", "trust")


@dataclass(frozen=True, slots=True)
class Enrolled:
    """What Client.open needs, and where enrolment put it."""

    server: str
    identity: Path
    trust: Path


def enroll(invitation: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Enrolled:
    """Spend an invitation, a JSON file; write identity.pem (private, mode 0600) and trust.pem into the folder.

    May be repeated after an interruption: the key and the request are kept until the certificate has arrived.
    """
    invited, folder = _read(Path(invitation)), Path(folder)
    with _files.step("make the folder of the identity"):
        _files.require_folder(folder)
    enrolled = Enrolled(invited["server"], folder / "identity.pem", folder / "trust.pem")
    if enrolled.identity.exists():
        raise EnrollmentError("this folder holds an identity already: use it, or enrol into another folder")
    _save(enrolled.trust, invited["trust"].encode())
    private_key, signing_request = key_and_request(folder / "enrolling.pem")
    certificates = _certificates(invited, Trust(enrolled.trust), signing_request)
    save_identity(enrolled.identity, enrolled.trust, private_key, certificates)
    with _files.step("remove what enrolment kept"):
        _files.remove(folder / "enrolling.pem")
    return enrolled


def _save(path: Path, data: bytes) -> None:
    with _files.step("save the identity"):
        _files.save(path, data)


def save_identity(path: Path, trust: Path, private_key: bytes, certificates: Iterable[bytes]) -> None:
    """Keep an identity that TLS can use; one that it cannot would stand in the way of the next try."""
    identity = private_key + b"".join(pem("CERTIFICATE", der) for der in certificates)
    incoming = path.with_suffix(".new")
    _save(incoming, identity)
    try:
        tls.context(trust, incoming)
    except InvalidInputError as error:
        raise EnrollmentError("the server's certificate is none, or not for this device's key: enrol again") from error
    finally:
        with _files.step("remove an identity that was tried"):
            _files.remove(incoming)
    _save(path, identity)


def _read(invitation: Path) -> dict[str, str]:
    try:
        fields: Any = json.loads(invitation.read_bytes())
        invited = {name: fields[name] for name in _FIELDS}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise EnrollmentError("the invitation is no JSON file with server, enrollment, token and trust") from error
    if not all(isinstance(value, str) and value.isascii() for value in invited.values()):
        raise EnrollmentError("the invitation's fields must be strings of ASCII characters")
    address_of(invited["server"])
    return invited


def _certificates(invited: dict[str, str], trust: Trust, signing_request: bytes) -> list[bytes]:
    channel = Channel(invited["enrollment"], tls.context(trust.path, identity=None))
    try:
        return coordinator.enroll(channel, invited["token"], signing_request)
    except RefusedError as error:
        raise EnrollmentError(f"{error}. Ask for a new invitation") from error
    finally:
        channel.close()


def key_and_request(path: Path) -> tuple[bytes, bytes]:
    """Return a private key (PEM) and its signing request (DER): those that an interruption left, or new ones."""
    if not path.exists():
        private_key, request = new_key_and_request()
        _save(path, private_key + pem(_REQUEST, request))
    try:
        private_key, _, rest = path.read_bytes().partition(f"-----BEGIN {_REQUEST}-----".encode())
        request = b64decode(rest.partition(b"-----END")[0])
        _require_request(private_key, request)
    except (OSError, ValueError, TypeError):
        raise InvalidInputError(f"{path.name} is damaged: remove it and enrol again") from None
    return private_key, request


def _require_request(private_key: bytes, request: bytes) -> None:
    """Raise ValueError unless this is a whole key and a whole request for it."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    parsed = x509.load_der_x509_csr(request)
    if not parsed.is_signature_valid or parsed.public_key() != load_pem_private_key(private_key, None).public_key():
        raise ValueError


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


def pem(kind: str, der: bytes) -> bytes:
    """Return a PEM block."""
    return f"-----BEGIN {kind}-----\n".encode() + encodebytes(der) + f"-----END {kind}-----\n".encode()
