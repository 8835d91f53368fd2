"""Who this device is: how it enrols, how its certificate is renewed, whom it trusts, and how all of that is forgotten.

Everything lies in one folder:

server         the address of the coordinator, https://host:port
enrollment     the address of the authority, where the certificate is renewed, https://host:port
trust.pem      the authority's certificates, the keys that sign manifests and those that sign memberships; public
identity.pem   the device's private key and its certificate, its member key and its membership
enrolling.pem  while the device enrols: the private key, its signing request, and the member key
renewing.pem   while the certificate is renewed: the same, for the next identity
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lightfr import _arguments, _files
from lightfr._certificates import Certificate, parse_certificate
from lightfr.errors import EnrollmentError, InvalidInputError, LightFRError, PrivacyError, RefusedError
from lightfr.identities import (
    MEMBER_KEY,
    MEMBERSHIP,
    IdentityKeys,
    Issued,
    block_of,
    enrolled,
    identity_pem,
    kept_keys,
    save_key,
)

if TYPE_CHECKING:
    from datetime import datetime

    from lightfr._wire.channel import Channel
    from lightfr.budget import Budget
    from lightfr.client import Client
    from lightfr.interactions import RatingScale
    from lightfr.keys import KeyProvider
    from lightfr.membership import Member

_SERVER, _ENROLLMENT, _TRUST, _IDENTITY = "server", "enrollment", "trust.pem", "identity.pem"
_ENROLLING, _RENEWING = "enrolling.pem", "renewing.pem"
# An identity that is tried before it takes the place of the old one.
_INCOMING = "identity.new"
# The files with private keys.
_PRIVATE = (_IDENTITY, _INCOMING, _ENROLLING, _RENEWING)
_INVITATION_FIELDS = ("server", "enrollment", "token", "trust")
_RENEW_BEFORE_SECONDS = 60 * 86_400
# A sync asks an authority that says nothing three times, so long each: it is asked again next time.
_RENEWAL_TIMEOUT_SECONDS = 10.0
_PUBLIC_KEYS = rb"-----BEGIN %b-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END %b-----"
_MANIFEST_KEY, _MEMBERSHIP_KEY = "PUBLIC KEY", "LIGHTFR MEMBERSHIP KEY"
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
        from lightfr._wire import tls
        from lightfr._wire.channel import Channel

        place = _arguments.path("folder", folder)
        invited = _read_invitation(_arguments.path("invitation", invitation))
        if (place / _IDENTITY).exists():
            known = cls.load(place)
            if known.server != invited["server"]:
                raise EnrollmentError(
                    f"{place} holds the identity of a device of {known.server}, but the invitation is for "
                    f"{invited['server']}: enrol into another folder"
                )
            if read_certificate(known.identity).ends > time.time():
                _end_enrolment(place)
                return known
        device = cls(place, invited["server"])
        with _files.step(f"make the folder {place}"):
            _files.require_folder(place)
            _files.save(place / _SERVER, device.server.encode())
            _files.save(place / _ENROLLMENT, invited["enrollment"].encode())
            _files.save(device.trust, invited["trust"].encode())
        trust = Trust(device.trust)
        channel = Channel(invited["enrollment"], tls.context(trust.path, identity=None))
        try:
            keys, issued = enrolled(channel, invited["token"], place / _ENROLLING)
        except RefusedError as error:
            raise EnrollmentError(f"{error}. Ask for a new invitation") from error
        finally:
            channel.close()
        # Before the identity: the authority would refuse the device of now the keys of a renewal of the old one.
        with _files.step("remove an old renewal"):
            _files.overwrite_and_remove(place / _RENEWING)
        save_identity(device.identity, trust, keys, issued)
        _end_enrolment(place)
        return device

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Device:
        """Return the device that was enrolled into this folder. Needs neither its invitation nor the network."""
        from lightfr._wire import address_of

        place = _arguments.path("folder", folder)
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
        """The PEM file with the private keys, the certificate and the membership, for Client.open."""
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
        budget: Budget | None = None,
        require_dp: float | None = None,
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
            budget=budget,
            require_dp=require_dp,
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


def is_in(folder: Path) -> bool:
    """Whether a folder is that of a device, enrolled wholly or in part."""
    return any((folder / name).exists() for name in _PRIVATE)


def forget(folder: Path) -> None:
    """Remove whatever a device, enrolled wholly or in part, may have left in its folder. Private keys go first."""
    if not folder.is_dir():
        return
    keys = [folder / name for name in _PRIVATE]
    public = [folder / name for name in (_TRUST, _SERVER, _ENROLLMENT)]
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
            content = self.path.read_bytes()
        except OSError as error:
            raise InvalidInputError(f"the trust file {self.path} cannot be read: {error.strerror}") from error
        # key_id -> raw public key; several while a key is being replaced.
        self.manifest_keys = {key_id(raw_key): raw_key for raw_key in self._public_keys(content, _MANIFEST_KEY)}
        if not self.manifest_keys:
            raise InvalidInputError(
                f"the trust file {self.path} has no PUBLIC KEY block, so it cannot tell a genuine manifest"
            )
        # Raw public keys; several while a key is being replaced.
        self.membership_keys: list[bytes] = self._public_keys(content, _MEMBERSHIP_KEY)
        if not self.membership_keys:
            raise InvalidInputError(
                f"the trust file {self.path} has no {_MEMBERSHIP_KEY} block, so it cannot tell devices from invented "
                "ones: forget this device and enrol again"
            )

    def _public_keys(self, content: bytes, kind: str) -> list[bytes]:
        """Return the 32 raw bytes of each Ed25519 key under a label."""
        found, label = [], kind.encode()
        for block in re.findall(_PUBLIC_KEYS % (label, label), content):
            try:
                der = b64decode(b"".join(block.split()), validate=True)
            except ValueError as error:
                raise InvalidInputError(f"a {kind} block of {self.path} is damaged") from error
            if len(der) != len(_ED25519_PREFIX) + 32 or not der.startswith(_ED25519_PREFIX):
                raise InvalidInputError(f"a {kind} block of {self.path} is not an Ed25519 key")
            found.append(der[len(_ED25519_PREFIX) :])
        return found

    def __repr__(self) -> str:
        return f"<Trust with {len(self.manifest_keys)} manifest keys>"


def key_id(raw_key: bytes) -> bytes:
    """Return the 8 bytes by which a SignedManifest names its key."""
    return hashlib.sha256(raw_key).digest()[:8]


class Identity:
    """The PEM file by which the server knows this device."""

    def __init__(self, path: str | os.PathLike[str], trust: Trust) -> None:
        self._path, self._trust = Path(path), trust

    def member(self) -> Member:
        """Read the key by which other devices know this one, and its membership; after a renewal both are new."""
        from lightfr.membership import MEMBERSHIP_BYTES, Member, MemberKey

        try:
            content = self._path.read_bytes()
            key, membership = MemberKey.from_private(block_of(content, MEMBER_KEY)), block_of(content, MEMBERSHIP)
            if len(membership) != MEMBERSHIP_BYTES:
                raise ValueError
            return Member(key, membership)
        except (OSError, ValueError):
            # Without its cause, which might quote the key.
            raise EnrollmentError(f"{self._path} has no membership: forget this device and enrol again") from None

    def renew_if_due(self, channel: Channel) -> None:
        """Renew the certificate when it ends soon: with fewer than 60 days left, or a third of a shorter life.

        `channel` goes to the coordinator, and uses the new identity afterwards. A failure is logged and waits for the
        next time: the old certificate is still good.
        """
        try:
            certificate = read_certificate(self._path)
            left = certificate.ends - time.time()
            if left < min(_RENEW_BEFORE_SECONDS, (certificate.ends - certificate.begins) / 3):
                self._renew(channel)
        except LightFRError as error:
            import logging

            logging.getLogger("lightfr.device").warning(
                "the certificate for %s was not renewed: %s. Enrol again before it ends, unless a later sync renews it",
                channel.host,
                type(error).__name__,
            )

    def _renew(self, channel: Channel) -> None:
        """Keep the keys before they are sent, and the old identity until the new one is whole: any step may be last."""
        from lightfr._wire import coordinator, tls

        kept = self._path.with_name(_RENEWING)
        if not self._is_of_use(kept):
            with _files.step("remove an old renewal"):
                _files.overwrite_and_remove(kept)
        authority = channel.to(self._authority_address(), _RENEWAL_TIMEOUT_SECONDS)
        keys = kept_keys(kept)
        try:
            issued = coordinator.renew(authority, keys.signing_request, keys.member_key.public)
        finally:
            authority.close()
        save_identity(self._path, self._trust, keys, issued)
        channel.use_identity(tls.context(self._trust.path, self._path))
        with _files.step("remove a finished renewal"):
            _files.overwrite_and_remove(kept)

    def _authority_address(self) -> str:
        """Where the certificate is renewed. Devices that enrolled with a release before this one do not know it."""
        try:
            return self._path.with_name(_ENROLLMENT).read_text("ascii").strip()
        except (OSError, ValueError) as error:
            raise EnrollmentError(
                f"{self._path.with_name(_ENROLLMENT)} does not hold the authority's address: enrol again"
            ) from error

    def _is_of_use(self, kept: Path) -> bool:
        """Whether a file that an interruption left is whole, and not of a renewal that was over but for its removal."""
        try:
            return kept.exists() and not self._path.read_bytes().startswith(kept_keys(kept).private_key)
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


def _end_enrolment(folder: Path) -> None:
    """Remove what an enrolment leaves once the identity is whole; an interruption may have left it before."""
    if (folder / _ENROLLING).exists():
        with _files.step("remove the file of a finished enrolment"):
            _files.overwrite_and_remove(folder / _ENROLLING)


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


def save_identity(path: Path, trust: Trust, keys: IdentityKeys, issued: Issued) -> None:
    """Keep an identity that TLS can use; one that it cannot use would stand in the way of the next try."""
    from lightfr._wire import tls
    from lightfr.membership import require_membership

    identity = identity_pem(keys, issued)
    incoming = path.with_name(_INCOMING)
    save_key(incoming, identity)
    try:
        tls.context(trust.path, incoming)
        vouched_for = require_membership(issued.membership, trust.membership_keys, time.time())
        if vouched_for != keys.member_key.public:
            raise PrivacyError("the membership is for another key")
    except (InvalidInputError, PrivacyError) as error:
        raise EnrollmentError(
            "the server returned no usable certificate or membership, or one for another key: enrol again"
        ) from error
    finally:
        with _files.step("remove an identity that was tried"):
            _files.overwrite_and_remove(incoming)
    save_key(path, identity)
