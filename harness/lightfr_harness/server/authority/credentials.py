"""What a server of an authority works with: a folder that only the authority writes, without the authority's own key.

server.pem, server.key   what the server shows
authority.pem            what it knows its devices by
crl.pem                  the revoked certificates; the authority puts a new list in the place of the old one
manifest.key             Ed25519, signs manifests; the coordinator's folder alone has it
trust.pem                what devices keep; likewise
"""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from lightfr.device import Trust
from lightfr.errors import OutOfRangeError
from lightfr.v1 import manifest_pb2

from . import keys
from .errors import AuthorityFolderError

MANIFEST_CONTEXT = b"lightfr manifest v1\n"
MANIFEST_LIMIT_BYTES = 65_536
_DEVICE_ID = re.compile("[0-9a-f]{32}")


def utc_now() -> datetime:
    return datetime.now(UTC)


class Admission:
    """Whom a server lets in: its TLS contexts, and who is behind a connection. Any thread may use it.

    `requires_certificate` says whether it lets in anybody without a certificate of the authority. `now` is the clock,
    for tests.
    """

    def __init__(
        self, folder: Path, *, requires_certificate: bool = True, now: Callable[[], datetime] = utc_now
    ) -> None:
        keys.require_server_folder(folder)
        self.folder, self._now = folder, now
        self._verify_mode = ssl.CERT_REQUIRED if requires_certificate else ssl.CERT_OPTIONAL
        self._authority = keys.read_certificate(folder / keys.AUTHORITY_CERTIFICATE)
        self._issuer_name = _name_as_ssl_tells_it(self._authority.subject)
        self._load(self._state_of_files())

    def context(self) -> ssl.SSLContext:
        """TLS 1.3; a client's certificate must be of this authority and not on the revocation list."""
        context = self._new_context()
        # Called in every handshake, with or without a server name. Loading newer lists into one context would keep all
        # the older ones in memory, and OpenSSL would choose among those of the same second by their order.
        context.sni_callback = self._switch_to_live_context
        context.sslobject_class = _Handshake
        return context

    def refresh(self) -> None:
        """Take over what the authority has written since; a look at two files when it wrote nothing.

        Handshakes that begin afterwards see it, in every context that `context` returned.
        """
        state = self._state_of_files()
        if state != self._state:
            self._load(state)

    def device_of(self, certificate: Mapping[str, Any] | None) -> str | None:
        """The device that a verified peer's `getpeercert()` names; None when it is revoked, has ended or is not ours.

        A connection can outlive the right to it, so ask anew with every request.
        """
        if not certificate or certificate.get("issuer") != self._issuer_name:
            return None
        if _seconds_of(certificate["notAfter"]) <= self._now().timestamp():
            return None
        match certificate.get("subject"):
            case ((("commonName", str(device_id)),),) if _DEVICE_ID.fullmatch(device_id):
                return None if int(device_id, 16) in self._revoked else device_id
        return None

    def _state_of_files(self) -> list[tuple[int, int, int]]:
        try:
            found = [(self.folder / name).stat() for name in (keys.REVOCATION_LIST, keys.SERVER_CERTIFICATE)]
        except OSError as error:
            raise AuthorityFolderError(self.folder, "lacks its certificates", "Copy the folder anew.") from error
        return [(file.st_ino, file.st_mtime_ns, file.st_size) for file in found]

    def _load(self, state: list[tuple[int, int, int]]) -> None:
        # The list has the serial number of every certificate of a revoked device, and that of the first is its id.
        revoked, context = self._read_revocation_list(), self._new_context()
        self._revoked, self._live_context = revoked, context
        # Last, so that a failure above is tried again.
        self._state = state

    def _read_revocation_list(self) -> frozenset[int]:
        path = self.folder / keys.REVOCATION_LIST
        try:
            signed = x509.load_pem_x509_crl(path.read_bytes())
            is_ours = signed.is_signature_valid(self._authority.public_key())  # type: ignore[arg-type]
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise AuthorityFolderError(path, "cannot be read", "Copy it from the authority anew.") from error
        if not is_ours:
            raise AuthorityFolderError(path, "is of another authority", "Copy it from the authority anew.")
        return frozenset(entry.serial_number for entry in signed)

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # A ticket tells the device that its certificate was accepted, and it waits for one before it speaks. It opens
        # no later session past the revocation list: each handshake switches contexts, and OpenSSL then starts anew.
        context.num_tickets = 1
        context.verify_mode = self._verify_mode
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF | ssl.VERIFY_X509_STRICT
        try:
            context.load_cert_chain(self.folder / keys.SERVER_CERTIFICATE, self.folder / keys.SERVER_KEY)
            context.load_verify_locations(self.folder / keys.AUTHORITY_CERTIFICATE)
            context.load_verify_locations(self.folder / keys.REVOCATION_LIST)
        except OSError as error:
            raise AuthorityFolderError(self.folder, "has damaged certificates", "Copy the folder anew.") from error
        return context

    def _switch_to_live_context(self, connection: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext) -> None:
        connection.context = self._live_context


class _Handshake(ssl.SSLObject):
    """The TLS of a connection, which tells a client whose certificate is refused that it is.

    asyncio ends a connection whose handshake fails without sending the alert that OpenSSL has made of it. A device
    takes that for a restart, and tries again for ever. When asyncio is told to wait, it sends what there is to send.
    """

    _has_failed = False

    def do_handshake(self) -> None:
        if self._has_failed:
            raise ssl.SSLError("the handshake failed")
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if error.reason not in _REFUSALS:
                raise
            # The client ends the connection now, or limits.Connections does.
            self._has_failed = True
            raise ssl.SSLWantReadError from None


# Why OpenSSL refuses a client: its certificate is not good, or there is none.
_REFUSALS = ("CERTIFICATE_VERIFY_FAILED", "PEER_DID_NOT_RETURN_A_CERTIFICATE")


class Credentials(Admission):
    """A coordinator's folder: whom it lets in, and the key that signs what it publishes."""

    def __init__(self, folder: Path, *, now: Callable[[], datetime] = utc_now) -> None:
        super().__init__(folder, now=now)
        # Signs manifests, and the rosters and sets of secure aggregation.
        self.manifest_key = keys.read_ed25519_key(folder / keys.MANIFEST_KEY)
        # Of the authority: by these the coordinator knows the member keys of devices, as devices themselves do.
        self.membership_keys = Trust(folder / keys.TRUST).membership_keys

    def sign(self, manifest: bytes) -> manifest_pb2.SignedManifest:
        """A serialised Manifest with its signature, as manifest.proto says."""
        if len(manifest) > MANIFEST_LIMIT_BYTES:
            raise OutOfRangeError("size of the manifest in bytes", len(manifest), 0, MANIFEST_LIMIT_BYTES)
        public_key = self.manifest_key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return manifest_pb2.SignedManifest(
            manifest=manifest,
            signature=self.manifest_key.sign(MANIFEST_CONTEXT + manifest),
            key_id=hashlib.sha256(public_key).digest()[:8],
        )


# Asked with every request, and devices that enrolled in the same second share an answer.
_seconds_of = lru_cache(maxsize=65_536)(ssl.cert_time_to_seconds)


def _name_as_ssl_tells_it(name: x509.Name) -> tuple[Any, ...]:
    (attribute,) = name
    return ((("commonName", attribute.value),),)
