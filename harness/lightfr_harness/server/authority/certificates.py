"""The X.509 of the authority: what it signs, with which extensions, for how long. No files, no state, no clock.

Every key is ECDSA P-256. A device's certificate has its id as common name. Its first one has the id, read as a number,
as serial number too; renewed ones have numbers of their own, written as ids are. The revocation list has them all.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from .errors import AuthorityError, SigningRequestError

AUTHORITY_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
BACKDATED = timedelta(minutes=5)  # Devices' clocks differ from ours.
SIGNING_REQUEST_LIMIT_BYTES = 4096

_DNS_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")


@dataclass(frozen=True)
class Issuer:
    """A certificate that signs others, with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def new_device_id() -> str:
    return secrets.token_hex(16)


def common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def make_issuer(now: datetime, name: x509.Name | None = None) -> Issuer:
    """A new authority; its random name keeps two of them apart."""
    key = new_key()
    name = name or common_name(f"lightfr authority {secrets.token_hex(4)}")
    builder = _builder(name, name, key.public_key(), now, now + AUTHORITY_LIFETIME)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage("key_cert_sign", "crl_sign"), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return Issuer(builder.sign(key, SHA256()), key)


def make_server_certificate(
    issuer: Issuer, public_key: ec.EllipticCurvePublicKey, hosts: Sequence[x509.GeneralName], now: datetime
) -> x509.Certificate:
    builder = _leaf_builder(issuer, common_name("lightfr server"), public_key, now, ExtendedKeyUsageOID.SERVER_AUTH)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    return builder.sign(issuer.key, SHA256())


def make_device_certificate(
    issuer: Issuer, public_key: ec.EllipticCurvePublicKey, device_id: str, now: datetime, serial: str | None = None
) -> x509.Certificate:
    """A device's first certificate or, with a serial of its own, a later one."""
    builder = device_builder(issuer, common_name(device_id), public_key, now)
    return builder.serial_number(_serial_number(serial or device_id)).sign(issuer.key, SHA256())


def device_builder(
    issuer: Issuer, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    """A client's certificate without its serial number."""
    return _leaf_builder(issuer, subject, public_key, now, ExtendedKeyUsageOID.CLIENT_AUTH)


def make_revocation_list(
    issuer: Issuer, serials: Iterable[str], number: int, now: datetime
) -> x509.CertificateRevocationList:
    """A list that stays valid as long as the authority, since it is made anew with every revocation.

    A shorter life would buy nothing: the list lies beside the server, and an expired one locks every device out.
    """
    entries = [x509.RevokedCertificateBuilder(_serial_number(serial), now - BACKDATED).build() for serial in serials]
    certificate = issuer.certificate
    # Adding entries one by one would copy the list each time.
    builder = x509.CertificateRevocationListBuilder(
        certificate.subject, now - BACKDATED, certificate.not_valid_after_utc, revoked_certificates=entries
    )
    builder = builder.add_extension(x509.CRLNumber(number), critical=False)
    return builder.add_extension(_authority_key_identifier(issuer), critical=False).sign(issuer.key, SHA256())


def requested_key(signing_request: bytes) -> ec.EllipticCurvePublicKey:
    """The key of a PKCS #10 request whose sender has shown that the key is his."""
    if len(signing_request) > SIGNING_REQUEST_LIMIT_BYTES:
        raise SigningRequestError(f"has {len(signing_request)} bytes, above {SIGNING_REQUEST_LIMIT_BYTES}")
    try:
        request = x509.load_der_x509_csr(signing_request)
        key = request.public_key()
        is_signed = request.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        raise SigningRequestError("cannot be read") from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise SigningRequestError("has a key of another kind")
    if not is_signed:
        raise SigningRequestError("has a wrong signature")
    return key


def parse_host(host: str) -> x509.GeneralName:
    """A host as a certificate names it: an IP address or a DNS name."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not _DNS_NAME.fullmatch(host.lower()):
        raise AuthorityError(
            f"{host!r} is neither a DNS name nor an IP address. Give it without scheme, port or wildcard."
        )
    return x509.DNSName(host.lower())


def certified_hosts(certificate: x509.Certificate) -> list[x509.GeneralName]:
    return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)


def _leaf_builder(
    issuer: Issuer, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, now: datetime, use: x509.ObjectIdentifier
) -> x509.CertificateBuilder:
    # A certificate that outlives its authority would only look valid.
    end = min(now + LEAF_LIFETIME, issuer.certificate.not_valid_after_utc)
    builder = _builder(subject, issuer.certificate.subject, public_key, now, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage("digital_signature"), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
    return builder.add_extension(_authority_key_identifier(issuer), critical=False)


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public_key)
    return builder.not_valid_before(now - BACKDATED).not_valid_after(end)


def _serial_number(serial: str) -> int:
    return int(serial, 16)


def _authority_key_identifier(issuer: Issuer) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())


def _key_usage(*uses: str) -> x509.KeyUsage:
    names = (
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
        *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    )
    return x509.KeyUsage(**{name: name in uses for name in names})
