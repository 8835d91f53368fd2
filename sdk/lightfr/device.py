"""Who this device is: how it enrols, how its certificate is renewed, whom it trusts, and how all of that is forgotten.

Everything lies in one folder:

server         the address of the coordinator, https://host:port
trust.pem      the authority's certificates and the keys that sign manifests; public
identity.pem   the device's private key and its certificate
enrolling.pem  while the device enrols: the private key and its signing request
renewing.pem   while the certificate is renewed: the next private key and its signing request
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from base64 import b64decode, encodebytes
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lightfr import _files
from lightfr._certificates import Certificate, parse_certificate
from lightfr.errors import EnrollmentError, InvalidInputError, LightFRError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from lightfr._wire.channel import Channel
    from lightfr.client import Client
    from lightfr.interactions import RatingScale
    from lightfr.keys import KeyProvider

_SERVER, _TRUST, _IDENTITY = "server", "trust.pem", "identity.pem"
_ENROLLING, _RENEWING = "enrolling.pem", "renewing.pem"
# An identity that is tried before it takes the place of the old one.
_INCOMING = "identity.new"
_INVITATION_FIELDS = ("server", "enrollment", "token", "trust")
_REQUEST = "CERTIFICATE REQUEST"
_RENEW_BEFORE_SECONDS = 60 * 86_400
_PUBLIC_KEY = re.compile(rb"-----BEGIN PUBLIC KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END PUBLIC KEY-----")
# SubjectPublicKeyInfo of an Ed25519 key is this prefix and the 32 raw bytes (RFC 8410).
_ED25519_PREFIX = bytes.fromhex("302a300506032b6570032100")


class DeviceStatus(NamedTuple):
    """What an app may show about the device's identity."""

    # The random name that the server gave to this device.
    device_id: str
    # In UTC. Client.sync renews the certificate in its last 60 days.
    certificate_ends: datetime
    server: str


class Device(NamedTuple):
    """An enrolled device: its folder, and the server that it belongs to. Make it with Device.enroll or Device.load."""

    folder: Path
    server: str

    @classmethod
    def enroll(cls, invitation: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Device:
        """Spend an invitation, a JSON file, and keep the new identity in the folder.

        You may call this again at any time. After an interruption it goes on with the same key; in the folder of a
        device that this server has enrolled already it loads the device. An expired identity is replaced.
        """
        from lightfr._wire import coordinator, tls
        from lightfr._wire.channel import Channel

        invited, place = _read_invitation(Path(invitation)), Path(folder)
        if (place / _IDENTITY).exists():
            known = cls.load(place)
            if known.server != invited["server"]:
                raise EnrollmentError(
                    f"{place} holds the identity of a device of {known.server}, but the invitation is for "
                    f"{invited['server']}: enrol into another folder"
                )
            if read_certificate(known.identity).ends > time.time():
                return known
        device = cls(place, invited["server"])
        with _files.step(f"make the folder {place}"):
            _files.require_folder(place)
            _files.save(place / _SERVER, device.server.encode())
            _files.save(device.trust, invited["trust"].encode())
        private_key, signing_request = _key_and_request(place / _ENROLLING)
        channel = Channel(invited["enrollment"], tls.context(Trust(device.trust).path, identity=None))
        try:
            certificates = coordinator.enroll(channel, invited["token"], signing_request)
        except RefusedError as error:
            raise EnrollmentError(f"{error}. Ask for a new invitation") from error
        finally:
            channel.close()
        save_identity(device.identity, device.trust, private_key, certificates)
        with _files.step("remove the files of a finished enrolment"):
            _files.overwrite_and_remove(place / _ENROLLING)
            _files.overwrite_and_remove(place / _RENEWING)
        return device

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Device:
        """Return the device that was enrolled into this folder. Needs neither its invitation nor the network."""
        from lightfr._wire import address_of

        place = Path(folder)
        read_certificate(place / _IDENTITY)
        try:
            server = (place / _SERVER).read_text("ascii").strip()
            address_of(server)
        except (OSError, ValueError) as error:
            raise EnrollmentError(
                f"{place / _SERVER} does not hold the server's address, https://host:port: write it there"
            ) from error
        return cls(place, server)

    @property
    def identity(self) -> Path:
        """The PEM file with the private key and the certificate, for Client.open."""
        return self.folder / _IDENTITY

    @property
    def trust(self) -> Path:
        """The PEM file that says whom the device trusts, for Client.open."""
        return self.folder / _TRUST

    def client(
        self,
        user_folder: str | os.PathLike[str],
        *,
        key: KeyProvider,
        scale: RatingScale | None = None,
        minimum_cohort: int = 256,
        allow_clear_uploads: bool = False,
    ) -> Client:
        """Open the data of one user of this device; the options and their defaults are those of Client.open."""
        from lightfr.client import Client

        return Client.open(
            user_folder,
            server=self.server,
            identity=self.identity,
            trust=self.trust,
            key=key,
            scale=scale,
            minimum_cohort=minimum_cohort,
            allow_clear_uploads=allow_clear_uploads,
        )

    def status(self) -> DeviceStatus:
        """Return the device's id, the end of its certificate, and its server."""
        from datetime import UTC, datetime

        certificate = read_certificate(self.identity)
        return DeviceStatus(certificate.device_id, datetime.fromtimestamp(certificate.ends, UTC), self.server)

    def forget(self) -> None:
        """Destroy the private key and remove every file of the device, and the folder when nothing else is in it.

        The data of users lie elsewhere and stay: Client.forget removes them. Close the device's clients first.
        """
        forget(self.folder)


def forget(folder: Path) -> None:
    """Remove whatever a device, enrolled wholly or in part, may have left in its folder. Private keys go first."""
    if not folder.is_dir():
        return
    keys = [folder / name for name in (_IDENTITY, _INCOMING, _ENROLLING, _RENEWING)]
    public = [folder / name for name in (_TRUST, _SERVER)]
    with _files.step(f"remove the identity in {folder}"):
        for path in keys:
            _files.overwrite_and_remove(path)
            _files.overwrite_and_remove(_files.temporary_of(path))
        for path in public:
            _files.remove(path)
            _files.remove(_files.temporary_of(path))
        _files.fsync_folder(folder)
        _files.remove_folder_if_empty(folder)


class Trust:
    """The trust file, read once; TLS reads the certificates in it by itself."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            blocks = _PUBLIC_KEY.findall(self.path.read_bytes())
        except OSError as error:
            raise InvalidInputError(f"the trust file {self.path} cannot be read: {error.strerror}") from error
        # key_id -> raw public key; several while a key is being replaced.
        self.manifest_keys: dict[bytes, bytes] = {}
        for block in blocks:
            try:
                der = b64decode(b"".join(block.split()), validate=True)
            except ValueError as error:
                raise InvalidInputError(f"a PUBLIC KEY block of {self.path} is damaged") from error
            if len(der) != len(_ED25519_PREFIX) + 32 or not der.startswith(_ED25519_PREFIX):
                raise InvalidInputError(f"a PUBLIC KEY block of {self.path} is not an Ed25519 key")
            raw_key = der[len(_ED25519_PREFIX) :]
            self.manifest_keys[key_id(raw_key)] = raw_key
        if not self.manifest_keys:
            raise InvalidInputError(
                f"the trust file {self.path} has no PUBLIC KEY block, so it cannot tell a genuine manifest"
            )

    def __repr__(self) -> str:
        return f"<Trust with {len(self.manifest_keys)} manifest keys>"


def key_id(raw_key: bytes) -> bytes:
    """Return the 8 bytes by which a SignedManifest names its key."""
    return hashlib.sha256(raw_key).digest()[:8]


class Identity:
    """The PEM file by which the server knows this device."""

    def __init__(self, path: str | os.PathLike[str], trust: Trust) -> None:
        self._path, self._trust = Path(path), trust

    def renew_if_due(self, channel: Channel) -> None:
        """Renew the certificate when it ends soon: with fewer than 60 days left, or a third of a shorter life.

        A failure is logged and waits for the next time: the old certificate is still good.
        """
        try:
            certificate = read_certificate(self._path)
            left = certificate.ends - time.time()
            if left < min(_RENEW_BEFORE_SECONDS, (certificate.ends - certificate.begins) / 3):
                self._renew(channel)
        except LightFRError as error:
            import logging

            logging.getLogger("lightfr.device").warning(
                "the certificate for %s was not renewed: %s", channel.host, type(error).__name__
            )

    def _renew(self, channel: Channel) -> None:
        """Keep the key before it is sent, and the old identity until the new one is whole: any step may be the last."""
        from lightfr._wire import coordinator, tls

        kept = self._path.with_name(_RENEWING)
        if not self._is_of_use(kept):
            with _files.step("remove an old renewal"):
                _files.overwrite_and_remove(kept)
        private_key, signing_request = _key_and_request(kept)
        certificates = coordinator.renew(channel, signing_request)
        save_identity(self._path, self._trust.path, private_key, certificates)
        channel.use_identity(tls.context(self._trust.path, self._path))
        with _files.step("remove a finished renewal"):
            _files.overwrite_and_remove(kept)

    def _is_of_use(self, kept: Path) -> bool:
        """Whether a file that an interruption left is whole, and not of a renewal that was over but for its removal."""
        try:
            return kept.exists() and not self._path.read_bytes().startswith(_key_and_request(kept)[0])
        except InvalidInputError:
            return False


def read_certificate(identity: Path) -> Certificate:
    """Read the first certificate of an identity file; raises EnrollmentError if there is none."""
    try:
        return parse_certificate(identity.read_bytes())
    except FileNotFoundError as error:
        raise EnrollmentError(f"there is no identity in {identity.parent}: enrol with an invitation first") from error
    except (OSError, ValueError, IndexError) as error:
        raise EnrollmentError(
            f"{identity} is not a PEM file with a key and its certificate: forget this device and enrol again"
        ) from error


def _read_invitation(path: Path) -> dict[str, str]:
    import json

    from lightfr._wire import address_of

    try:
        fields = json.loads(path.read_bytes())
        invited = {name: fields[name] for name in _INVITATION_FIELDS}
    except OSError as error:
        raise EnrollmentError(f"the invitation {path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EnrollmentError(
            f"the invitation {path} is not a JSON file with server, enrollment, token and trust"
        ) from error
    if not all(isinstance(value, str) and value.isascii() for value in invited.values()):
        raise EnrollmentError(f"the fields of the invitation {path} must be strings of ASCII characters")
    address_of(invited["server"])
    address_of(invited["enrollment"])
    return invited


def _save_key(path: Path, data: bytes) -> None:
    with _files.step(f"save {path}"):
        _files.save_secret(path, data)


def save_identity(path: Path, trust: Path, private_key: bytes, certificates: Iterable[bytes]) -> None:
    """Keep an identity that TLS can use; one that it cannot use would stand in the way of the next try."""
    from lightfr._wire import tls

    identity = private_key + b"".join(pem("CERTIFICATE", der) for der in certificates)
    incoming = path.with_name(_INCOMING)
    _save_key(incoming, identity)
    try:
        tls.context(trust, incoming)
    except InvalidInputError as error:
        raise EnrollmentError(
            "the server returned no usable certificate, or one for another key: enrol again"
        ) from error
    finally:
        with _files.step("remove an identity that was tried"):
            _files.overwrite_and_remove(incoming)
    _save_key(path, identity)


def _key_and_request(path: Path) -> tuple[bytes, bytes]:
    """Return a private key (PEM) and its signing request (DER): those that an interruption left, or new ones."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if not path.exists() or set(path.read_bytes()) == {0}:  # zeros: its removal was interrupted
        private_key, request = new_key_and_request()
        _save_key(path, private_key + pem(_REQUEST, request))
    try:
        private_key, _, rest = path.read_bytes().partition(f"-----BEGIN {_REQUEST}-----".encode())
        request = b64decode(rest.partition(b"-----END")[0])
        parsed, key = x509.load_der_x509_csr(request), load_pem_private_key(private_key, None)
        if not parsed.is_signature_valid or parsed.public_key() != key.public_key():
            raise ValueError
    except (OSError, ValueError, TypeError):
        # Without its cause, which might quote the key.
        raise InvalidInputError(f"{path} is damaged: remove it and enrol again") from None
    return private_key, request


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
