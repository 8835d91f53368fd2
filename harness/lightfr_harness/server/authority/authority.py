"""The authority: names devices, vouches for their member keys, and takes names back."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from lightfr.errors import OutOfRangeError
from lightfr.identities import Issued
from lightfr.membership import MEMBER_KEY_BYTES, MEMBERSHIP_CONTEXT

from . import keys
from .certificates import (
    BACKDATED,
    certified_hosts,
    make_device_certificate,
    make_revocation_list,
    make_server_certificate,
    new_device_id,
    parse_host,
    requested_key,
)
from .credentials import Admission, utc_now
from .errors import AuthorityError, EarlyRenewalError, MemberKeyError, RenewalError, TokenError
from .registry import Registry

RENEWAL = timedelta(days=30)
TOKEN_BYTES = 24
TOKEN_LENGTHS = range(16, 129)  # Characters that enrollment.proto allows.
# Certificates of one device that have not ended, and so its memberships: the one that it uses and the next. The
# theorem of docs/secagg.md counts colluders by memberships, which cannot be taken back.
MOST_UNENDED = 2
LONGEST_INVITATION_SECONDS = 365 * 86_400


class KnownDevice(NamedTuple):
    """What an authority knows of a device. Times are in UTC; `last_seen` is when it last enrolled or renewed."""

    device_id: str
    enrolled: datetime
    last_seen: datetime
    is_revoked: bool


class Authority:
    """A certificate authority in one folder, open for use.

    Any thread may use it, and any number of processes may have the same folder open, or a copy of one that remembers in
    PostgreSQL. Opening and refreshing renew the certificates of the authority's own server and of the coordinator (same
    key, same hosts) when fewer than 30 days are left of their 365. `now` is the clock, for tests.
    """

    def __init__(self, folder: Path, now: Callable[[], datetime] = utc_now) -> None:
        keys.require_whole(folder)
        self.folder = folder
        # What a coordinator works with. A coordinator on another machine has a copy of it.
        self.coordinator = folder / keys.COORDINATOR
        self._now = now
        self._issuer = keys.read_issuer(folder)
        self._membership_key = keys.read_ed25519_key(folder / keys.MEMBERSHIP_KEY)
        self._renew_server_certificates()
        self._registry = Registry(keys.open_database(folder))
        self._write_revocations()

    @classmethod
    def init(
        cls, folder: Path, hosts: Sequence[str], enrollment_hosts: Sequence[str] = (), database: str = ""
    ) -> Authority:
        """Make a new authority; refuses a folder that holds anything.

        Devices reach the coordinator as one of `hosts`, and the authority as one of `enrollment_hosts`, the same ones
        unless given. What it remembers is in the folder, or in the PostgreSQL with this address; its keys never are.
        """
        keys.create(folder, hosts, enrollment_hosts or hosts, utc_now(), database)
        return cls(folder)

    @classmethod
    def open(cls, folder: Path) -> Authority:
        """Open what `init` made."""
        return cls(folder)

    def close(self) -> None:
        """Let go of the database."""
        self._registry.close()

    def admission(self) -> Admission:
        """Whom the authority's own server lets in: newcomers without a certificate, and devices with a good one."""
        return Admission(self.folder, requires_certificate=False, now=self._now)

    def refresh(self) -> None:
        """Write the revocation lists anew if whoever revoked last did not; renew server certificates that end soon."""
        if self._registry.last_revocation() != self._last_revocation:
            self._write_revocations()
        self._renew_server_certificates()

    def certify_server(self, folder: Path, hosts: Sequence[str]) -> None:
        """Make a folder for another server that devices shall trust, reached as one of `hosts`: a cache, for one."""
        keys.create_server(folder, self.folder, self._issuer, hosts, self._now())

    def invite(self, server: str, enrollment: str, valid_seconds: int) -> dict[str, str]:
        """What a device needs to enrol once, as JSON text can carry it. The token is kept here only as its hash."""
        if not 1 <= valid_seconds <= LONGEST_INVITATION_SECONDS:
            raise OutOfRangeError("validity in seconds", valid_seconds, 1, LONGEST_INVITATION_SECONDS)
        _require_certified(server, self.coordinator / keys.SERVER_CERTIFICATE)
        _require_certified(enrollment, self.folder / keys.SERVER_CERTIFICATE)
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._registry.add_token(_sha256(token.encode()), int(self._now().timestamp()) + valid_seconds)
        trust = (self.folder / keys.TRUST).read_text()
        return {"server": server, "enrollment": enrollment, "token": token, "trust": trust}

    def enroll(self, token: str, signing_request: bytes, member_key: bytes) -> Issued:
        """Spend a token. The device's certificate comes alone: none stand between it and the authority.

        The same token with the same bytes returns the same answer, also after the token has expired: the device asks
        again because the answer was lost. A request that is refused does not spend the token.
        """
        token_sha256, request_sha256 = _token_sha256(token), _request_sha256(signing_request, member_key)
        with self._registry.transaction():
            known = self._registry.find_token(token_sha256)
            if known is None:
                raise TokenError("unknown")
            if known.request_sha256 is not None:
                if known.certificate is None or known.request_sha256 != request_sha256:
                    raise TokenError("spent")
                return self._issued(known.certificate, member_key)
            if known.expires_unix_seconds <= self._now().timestamp():
                raise TokenError("expired")
            device_id, issued = self._add_device(signing_request, member_key, self._now())
            self._registry.spend_token(token_sha256, request_sha256, device_id)
        return issued

    def renew(self, device_id: str, signing_request: bytes, member_key: bytes) -> Issued:
        """Give a device that is known by its certificate another one, of the same name. The old one stays good.

        The same bytes again return the same answer as long as that certificate lasts. Other bytes are refused while two
        certificates of the device have not ended.
        """
        request_sha256 = _request_sha256(signing_request, member_key)
        with self._registry.transaction():
            if not self._registry.has_device(device_id) or device_id in self._registry.revoked():
                raise RenewalError
            self._remove_ended_renewals(device_id)
            known = self._registry.renewals(device_id)
            if request_sha256 in known:
                return self._issued(known[request_sha256], member_key)
            key, serial = requested_key(signing_request), new_device_id()
            self._claim(member_key, device_id)
            self._require_few_unended([self._registry.first_certificate(device_id), *known.values()])
            signed = make_device_certificate(self._issuer, key, device_id, self._now(), serial)
            certificate = signed.public_bytes(Encoding.DER)
            self._registry.add_renewal(serial, device_id, request_sha256, certificate)
        return self._issued(certificate, member_key)

    def issue(self, signing_request: bytes, member_key: bytes) -> tuple[str, Issued]:
        """Name a device without a token, for simulations: its id, and what it would have got with one."""
        return self._issue(signing_request, member_key, self._now())

    def devices(self) -> list[KnownDevice]:
        """All devices that were ever named, oldest first."""
        return [
            KnownDevice(device_id, _issued_at(first), _issued_at(last), is_revoked)
            for device_id, first, last, is_revoked in self._registry.devices()
        ]

    def revoke(self, *device_ids: str) -> None:
        """Take back the names of devices, all or none; those revoked before stay so."""
        with self._registry.transaction():
            for device_id in device_ids:
                # What is not ASCII is no id; a database may not even be able to look for it.
                if not (device_id.isascii() and self._registry.has_device(device_id)):
                    raise _unknown_device(device_id)
                self._registry.revoke(device_id)
        self.refresh()

    def _issue(self, signing_request: bytes, member_key: bytes, now: datetime) -> tuple[str, Issued]:
        with self._registry.transaction():
            return self._add_device(signing_request, member_key, now)

    def _add_device(self, signing_request: bytes, member_key: bytes, now: datetime) -> tuple[str, Issued]:
        device_id = new_device_id()
        signed = make_device_certificate(self._issuer, requested_key(signing_request), device_id, now)
        certificate = signed.public_bytes(Encoding.DER)
        self._registry.add_device(device_id, certificate)
        self._claim(member_key, device_id)
        return device_id, self._issued(certificate, member_key)

    def _claim(self, member_key: bytes, device_id: str) -> None:
        """Let the device have the key, for good; two devices with one key could pass for each other."""
        if len(member_key) != MEMBER_KEY_BYTES or self._registry.claim(member_key, device_id) != device_id:
            raise MemberKeyError

    def _remove_ended_renewals(self, device_id: str) -> None:
        """Forget what is of no use any more, so that a device cannot fill the disk. Its member keys stay its own."""
        for request_sha256, certificate in self._registry.renewals(device_id).items():
            if _end_unix_seconds(certificate) <= self._now().timestamp():
                self._registry.remove_renewal(device_id, request_sha256)

    def _require_few_unended(self, certificates: Sequence[bytes]) -> None:
        """Refuse one more certificate of a device that has enough which have not ended."""
        ends = sorted(map(_end_unix_seconds, certificates), reverse=True)[:MOST_UNENDED]
        if len(ends) == MOST_UNENDED and ends[-1] > self._now().timestamp():
            raise EarlyRenewalError(ends[-1])

    def _issued(self, certificate: bytes, member_key: bytes) -> Issued:
        """Add the membership, which follows from the certificate's end and the key."""
        statement = member_key + _end_unix_seconds(certificate).to_bytes(8, "little")
        return Issued([certificate], statement + self._membership_key.sign(MEMBERSHIP_CONTEXT + statement))

    def _renew_server_certificates(self) -> None:
        for place in (self.folder, self.coordinator):
            path, now = place / keys.SERVER_CERTIFICATE, self._now()
            current = keys.read_certificate(path)
            if current.not_valid_after_utc - now < RENEWAL:
                key = keys.curve_key_of(path, current)
                keys.write_certificate(path, make_server_certificate(self._issuer, key, certified_hosts(current), now))

    def _write_revocations(self) -> None:
        # Under the write lock, so that no other process can put an older list in place of a newer one.
        with self._registry.transaction():
            number = self._registry.last_revocation()
            signed = make_revocation_list(self._issuer, self._registry.revoked_serials(), number, self._now())
            for place in (self.folder, self.coordinator):
                keys.write_certificate(place / keys.REVOCATION_LIST, signed)
        # Last, so that a failure above is tried again.
        self._last_revocation = number


def _require_certified(address: str, certificate: Path) -> None:
    try:
        parts = urlsplit(address)
        host, is_good = parts.hostname, parts.port != 0 and address == f"https://{parts.netloc}" and "@" not in address
    except ValueError:  # The port is no number, or the brackets of an IPv6 address do not close.
        host, is_good = None, False
    if not host or not is_good:
        raise AuthorityError(f"{address!r} is no address of a server. Write it as https://HOST:PORT.")
    hosts = certified_hosts(keys.read_certificate(certificate))
    if parse_host(host) not in hosts:
        known = ", ".join(str(name.value) for name in hosts)
        raise AuthorityError(f"The server's certificate does not name {host}, devices would refuse it. Use: {known}.")


def _issued_at(certificate: bytes) -> datetime:
    return x509.load_der_x509_certificate(certificate).not_valid_before_utc + BACKDATED


def _end_unix_seconds(certificate: bytes) -> int:
    return int(x509.load_der_x509_certificate(certificate).not_valid_after_utc.timestamp())


def _request_sha256(signing_request: bytes, member_key: bytes) -> bytes:
    """What "the same request" means."""
    return _sha256(_sha256(signing_request) + member_key)


def _token_sha256(token: str) -> bytes:
    if len(token) not in TOKEN_LENGTHS or not token.isascii():
        raise TokenError("malformed")
    return _sha256(token.encode())


def _sha256(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _unknown_device(device_id: str) -> AuthorityError:
    return AuthorityError(
        f"This authority knows no device {device_id!r}; nothing was revoked. An id has 32 hexadecimal digits: "
        "`lightfr-harness ca list` shows those of all devices, `lightfr status` that of one."
    )
