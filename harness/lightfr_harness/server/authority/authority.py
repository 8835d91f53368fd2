"""The authority: names devices, takes names back, and gives the server its TLS contexts and its signature."""

from __future__ import annotations

import hashlib
import re
import secrets
import ssl
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from lightfr.errors import OutOfRangeError
from lightfr.v1 import manifest_pb2

from . import keys
from .certificates import (
    certified_hosts,
    make_device_certificate,
    make_revocation_list,
    make_server_certificate,
    new_device_id,
    parse_host,
    requested_key,
)
from .errors import AuthorityError, RenewalError, TokenError
from .registry import Registry

MANIFEST_CONTEXT = b"lightfr manifest v1\n"
MANIFEST_LIMIT_BYTES = 65_536
RENEWAL = timedelta(days=30)
TOKEN_BYTES = 24
TOKEN_LENGTHS = range(16, 129)  # Characters that enrollment.proto allows.
# Of one device: some thirty years. A bound, so that no device can fill the disk.
MOST_RENEWALS = 32
LONGEST_INVITATION_SECONDS = 365 * 86_400
_DEVICE_ID = re.compile("[0-9a-f]{32}")


def utc_now() -> datetime:
    return datetime.now(UTC)


class Authority:
    """A certificate authority in one folder, open for use.

    Any thread may use it, and any number of processes may have the same folder open. Opening renews the server's
    certificate (same key, same hosts) when fewer than 30 days are left of its 365, so a server wants a restart at
    least every 11 months. `now` is the clock, for tests.
    """

    def __init__(self, folder: Path, now: Callable[[], datetime] = utc_now) -> None:
        keys.require_whole(folder)
        self.folder = folder
        self._now = now
        self._issuer = keys.read_issuer(folder)
        self._issuer_name = _name_as_ssl_tells_it(self._issuer.certificate.subject)
        # Signs manifests, and the rosters and survivor sets of secure aggregation.
        self.manifest_key = keys.read_manifest_key(folder)
        self._renew_server_certificate()
        self._registry = Registry(folder / keys.DATABASE)
        self._load_revocations()

    @classmethod
    def init(cls, folder: Path, hosts: Sequence[str]) -> Authority:
        """Make a new authority whose server is reached as one of `hosts`; refuses a folder that holds anything."""
        keys.create(folder, hosts, utc_now())
        return cls(folder)

    @classmethod
    def open(cls, folder: Path) -> Authority:
        """Open what `init` made."""
        return cls(folder)

    def close(self) -> None:
        """Let go of the database. Contexts that were handed out go on with the revocations known so far."""
        self._registry.close()

    def server_context(self) -> ssl.SSLContext:
        """TLS 1.3, a client certificate of this authority required and looked up in the revocation list."""
        context = self._mutual_context()
        # Called in every handshake, with or without a server name. Loading newer lists into one context would keep all
        # the older ones in memory, and OpenSSL would choose among those of the same second by their order.
        context.sni_callback = self._switch_to_live_context
        return context

    def enrollment_context(self) -> ssl.SSLContext:
        """TLS 1.3, no client certificate asked for."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # A ticket tells the device that its certificate was accepted, and it waits for one before it speaks. It opens
        # no later session past the revocation list: each handshake switches contexts, and OpenSSL then starts anew.
        context.num_tickets = 1
        context.load_cert_chain(self.folder / keys.SERVER_CERTIFICATE, self.folder / keys.SERVER_KEY)
        return context

    def refresh(self) -> None:
        """Take over what another process revoked; one indexed look into the database when nothing was.

        Handshakes that begin afterwards see it, in every context that `server_context` returned.
        """
        if self._registry.last_revocation() != self._last_revocation:
            self._load_revocations()

    def device_of(self, certificate: Mapping[str, Any] | None) -> str | None:
        """The device that a verified peer's `getpeercert()` names; None when it is revoked, has ended or is not ours.

        A connection can outlive the right to it, so ask anew with every request.
        """
        if not certificate or certificate.get("issuer") != self._issuer_name:
            return None
        if ssl.cert_time_to_seconds(certificate["notAfter"]) <= self._now().timestamp():
            return None
        match certificate.get("subject"):
            case ((("commonName", str(device_id)),),) if _DEVICE_ID.fullmatch(device_id):
                return None if device_id in self._revoked else device_id
        return None

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

    def certify_server(self, folder: Path, hosts: Sequence[str]) -> None:
        """Make a folder for another server that devices shall trust, reached as one of `hosts`: a cache, for one."""
        keys.create_server(folder, self.folder, self._issuer, hosts, self._now())

    def invite(self, server: str, enrollment: str, valid_seconds: int) -> dict[str, str]:
        """What a device needs to enrol once, as JSON text can carry it. The token is kept here only as its hash."""
        if not 1 <= valid_seconds <= LONGEST_INVITATION_SECONDS:
            raise OutOfRangeError("validity in seconds", valid_seconds, 1, LONGEST_INVITATION_SECONDS)
        for address in (server, enrollment):
            self._require_certified(address)
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._registry.add_token(_sha256(token.encode()), int(self._now().timestamp()) + valid_seconds)
        trust = (self.folder / keys.TRUST).read_text()
        return {"server": server, "enrollment": enrollment, "token": token, "trust": trust}

    def enroll(self, token: str, signing_request: bytes) -> list[bytes]:
        """Spend a token. Returns the device's certificate, DER, alone: none stand between it and the authority.

        The same token with the same bytes returns the same certificate, also after the token has expired: the device
        asks again because the answer was lost. A request that is refused does not spend the token.
        """
        token_sha256, request_sha256 = _token_sha256(token), _sha256(signing_request)
        with self._registry.transaction():
            known = self._registry.find_token(token_sha256)
            if known is None:
                raise TokenError("unknown")
            if known.request_sha256 is not None:
                if known.certificate is None or known.request_sha256 != request_sha256:
                    raise TokenError("spent")
                return [known.certificate]
            if known.expires_unix_seconds <= self._now().timestamp():
                raise TokenError("expired")
            device_id, certificate = self._add_device(signing_request, self._now())
            self._registry.spend_token(token_sha256, request_sha256, device_id)
        return [certificate]

    def renew(self, device_id: str, signing_request: bytes) -> list[bytes]:
        """Give a device that is known by its certificate another one, of the same name. The old one stays good.

        The same bytes again return the same certificate.
        """
        request_sha256 = _sha256(signing_request)
        with self._registry.transaction():
            if not self._registry.has_device(device_id) or device_id in self._registry.revoked():
                raise RenewalError("The device is unknown or revoked.")
            known = self._registry.renewals(device_id)
            if request_sha256 in known:
                return [known[request_sha256]]
            key, serial = requested_key(signing_request), new_device_id()
            if len(known) >= MOST_RENEWALS:
                raise RenewalError(f"The device has renewed {len(known)} times.")
            signed = make_device_certificate(self._issuer, key, device_id, self._now(), serial)
            certificate = signed.public_bytes(Encoding.DER)
            self._registry.add_renewal(serial, device_id, request_sha256, certificate)
        return [certificate]

    def issue(self, signing_request: bytes) -> tuple[str, bytes]:
        """Name a device without a token, for simulations: its id and its certificate, DER."""
        return self._issue(signing_request, self._now())

    def revoke(self, *device_ids: str) -> None:
        """Take back the names of devices, all or none; those revoked before stay so."""
        with self._registry.transaction():
            for device_id in device_ids:
                if not self._registry.has_device(device_id):
                    raise _unknown_device(device_id)
                self._registry.revoke(device_id)
        self.refresh()

    def _issue(self, signing_request: bytes, now: datetime) -> tuple[str, bytes]:
        with self._registry.transaction():
            return self._add_device(signing_request, now)

    def _add_device(self, signing_request: bytes, now: datetime) -> tuple[str, bytes]:
        device_id = new_device_id()
        signed = make_device_certificate(self._issuer, requested_key(signing_request), device_id, now)
        certificate = signed.public_bytes(Encoding.DER)
        self._registry.add_device(device_id, certificate)
        return device_id, certificate

    def _require_certified(self, address: str) -> None:
        try:
            parts = urlsplit(address)
            host, is_good = parts.hostname, parts.port != 0 and address == f"https://{parts.netloc}"
        except ValueError:  # The port is no number, or the brackets of an IPv6 address do not close.
            host, is_good = None, False
        if not host or not is_good:
            raise AuthorityError(f"{address!r} is no address of a server. Write it as https://HOST:PORT.")
        hosts = certified_hosts(keys.read_certificate(self.folder / keys.SERVER_CERTIFICATE))
        if parse_host(host) not in hosts:
            known = ", ".join(str(name.value) for name in hosts)
            raise AuthorityError(
                f"The server's certificate does not name {host}, devices would refuse it. Use: {known}."
            )

    def _renew_server_certificate(self) -> None:
        path, now = self.folder / keys.SERVER_CERTIFICATE, self._now()
        current, key = keys.read_certificate(path), keys.read_server_key(self.folder).public_key()
        if current.not_valid_after_utc - now < RENEWAL:
            keys.write_certificate(path, make_server_certificate(self._issuer, key, certified_hosts(current), now))

    def _load_revocations(self) -> None:
        # Under the write lock, so that no other process can put an older list in place of a newer one.
        with self._registry.transaction():
            number, self._revoked = self._registry.last_revocation(), self._registry.revoked()
            signed = make_revocation_list(self._issuer, self._registry.revoked_serials(), number, self._now())
            keys.write_certificate(self.folder / keys.REVOCATION_LIST, signed)
            self._live_context = self._mutual_context()
        # Last, so that a failure above is tried again.
        self._last_revocation = number

    def _mutual_context(self) -> ssl.SSLContext:
        context = self.enrollment_context()
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF | ssl.VERIFY_X509_STRICT
        context.load_verify_locations(self.folder / keys.AUTHORITY_CERTIFICATE)
        context.load_verify_locations(self.folder / keys.REVOCATION_LIST)
        return context

    def _switch_to_live_context(self, connection: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext) -> None:
        connection.context = self._live_context


def _name_as_ssl_tells_it(name: x509.Name) -> tuple[Any, ...]:
    (attribute,) = name
    return ((("commonName", attribute.value),),)


def _token_sha256(token: str) -> bytes:
    if len(token) not in TOKEN_LENGTHS or not token.isascii():
        raise TokenError("malformed")
    return _sha256(token.encode())


def _sha256(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _unknown_device(device_id: str) -> AuthorityError:
    return AuthorityError(
        f"This authority knows no device {device_id!r}; nothing was revoked. An id is the 32 hexadecimal digits that "
        "the device's certificate carries as its common name."
    )
