"""The files of an authority's folder: how they are made, found and read.

authority.pem, authority.key   the certificate authority
membership.key                 Ed25519, signs memberships
server.pem, server.key         what the authority's own server shows
trust.pem                      what devices keep: authority.pem, the public halves of manifest.key and membership.key
crl.pem                        the revoked certificates, for the TLS handshake
authority.sqlite               devices, hashes of tokens, revocations; or
database                       the address of the PostgreSQL that has them
coordinator/                   all that a coordinator needs, see credentials.py: a server of its own, and manifest.key
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from lightfr._files import fsync_folder

from .certificates import Issuer, make_issuer, make_revocation_list, make_server_certificate, new_key, parse_host
from .databases import Database, SqliteFile
from .errors import AuthorityError, AuthorityFolderError

if TYPE_CHECKING:
    from .postgres import PostgresSchema

PRIVATE = 0o600
PUBLIC = 0o644

AUTHORITY_CERTIFICATE, AUTHORITY_KEY = "authority.pem", "authority.key"
SERVER_CERTIFICATE, SERVER_KEY = "server.pem", "server.key"
MANIFEST_KEY, MEMBERSHIP_KEY = "manifest.key", "membership.key"
TRUST = "trust.pem"
REVOCATION_LIST = "crl.pem"
DATABASE, ADDRESS = "authority.sqlite", "database"
COORDINATOR = "coordinator"
# The coordinator's private keys may have moved to another machine, so they are not looked for.
_NAMES = (
    *(AUTHORITY_CERTIFICATE, AUTHORITY_KEY, MEMBERSHIP_KEY, SERVER_CERTIFICATE, SERVER_KEY, TRUST, DATABASE),
    f"{COORDINATOR}/{SERVER_CERTIFICATE}",
)
_SERVER_NAMES = (AUTHORITY_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY, REVOCATION_LIST)
_MEMBERSHIP_LABEL = b"LIGHTFR MEMBERSHIP KEY"


def create(
    folder: Path, hosts: Sequence[str], enrollment_hosts: Sequence[str], now: datetime, database: str = ""
) -> None:
    """Make a whole new folder, or nothing. Its tables are in the database with this address, if there is one."""
    names, enrollment_names = _parse_hosts(hosts), _parse_hosts(enrollment_hosts)
    issuer, manifest_key, membership_key = make_issuer(now), *(ed25519.Ed25519PrivateKey.generate() for _ in range(2))
    trust = issuer.certificate.public_bytes(Encoding.PEM) + _public_pem(manifest_key)
    trust += _public_pem(membership_key).replace(b"PUBLIC KEY", _MEMBERSHIP_LABEL)
    nobody = make_revocation_list(issuer, [], 0, now).public_bytes(Encoding.PEM)
    with _postgres().creating(database) if database else nullcontext(), new_folder(folder) as stage:
        coordinator = stage / COORDINATOR
        coordinator.mkdir(mode=0o700)
        for place, known_as in ((stage, enrollment_names), (coordinator, names)):
            _write_server(place, issuer, known_as, nobody, now)
            write_whole(place / TRUST, trust, PUBLIC)
        write_whole(coordinator / MANIFEST_KEY, _private_pem(manifest_key), PRIVATE)
        write_whole(stage / MEMBERSHIP_KEY, _private_pem(membership_key), PRIVATE)
        write_whole(stage / AUTHORITY_KEY, _private_pem(issuer.key), PRIVATE)
        if database:
            write_whole(stage / ADDRESS, database.encode(), PRIVATE)
            return
        SqliteFile.create(stage / DATABASE)
        (stage / DATABASE).chmod(PRIVATE)


def open_database(folder: Path) -> Database:
    """Open the tables of an authority, wherever they are."""
    address = folder / ADDRESS
    return _postgres()(address.read_text().strip()) if address.is_file() else SqliteFile(folder / DATABASE)


def _postgres() -> type[PostgresSchema]:
    try:  # Here, so that SQLite needs nothing else.
        from .postgres import PostgresSchema
    except ImportError as error:
        raise AuthorityError("--database needs psycopg: pip install 'lightfr-harness[postgres]'") from error
    return PostgresSchema


def create_server(folder: Path, authority: Path, issuer: Issuer, hosts: Sequence[str], now: datetime) -> None:
    """Make a folder with what another server of this authority shows, and what it knows its clients by."""
    names = _parse_hosts(hosts)
    with new_folder(folder) as stage:
        _write_server(stage, issuer, names, (authority / REVOCATION_LIST).read_bytes(), now)


def _parse_hosts(hosts: Sequence[str]) -> list[x509.GeneralName]:
    if not hosts:
        raise AuthorityError("A server needs at least one host name or IP address by which devices reach it.")
    return [parse_host(host) for host in hosts]


def _write_server(
    stage: Path, issuer: Issuer, names: Sequence[x509.GeneralName], revocation_list: bytes, now: datetime
) -> None:
    key = new_key()
    write_whole(stage / SERVER_KEY, _private_pem(key), PRIVATE)
    write_certificate(stage / SERVER_CERTIFICATE, make_server_certificate(issuer, key.public_key(), names, now))
    write_certificate(stage / AUTHORITY_CERTIFICATE, issuer.certificate)
    write_whole(stage / REVOCATION_LIST, revocation_list, PUBLIC)


def require_server_folder(folder: Path) -> None:
    missing = [name for name in _SERVER_NAMES if not (folder / name).is_file()]
    if missing:
        advice = (
            f"Copy the folder {COORDINATOR} from the authority's folder, or make an authority: lightfr-harness ca init"
        )
        raise AuthorityFolderError(folder, f"a server's folder has no {', '.join(missing)}", advice)


def require_whole(folder: Path) -> None:
    missing = [name for name in _NAMES if not (folder / name).is_file()]
    if (folder / ADDRESS).is_file():
        missing.remove(DATABASE)
    if len(missing) == len(_NAMES):
        advice = f"Make one: lightfr-harness ca init {folder} --host NAME"
        raise AuthorityFolderError(folder, "there is no authority here", advice)
    if missing:
        advice = "Restore them from a copy, or make a new authority in another folder; devices must then enrol again."
        raise AuthorityFolderError(folder, f"the authority lacks {', '.join(missing)}", advice)


def read_issuer(folder: Path) -> Issuer:
    key = _read_curve_key(folder / AUTHORITY_KEY)
    return Issuer(read_certificate(folder / AUTHORITY_CERTIFICATE), key)


def read_ed25519_key(path: Path) -> ed25519.Ed25519PrivateKey:
    key = _read_key(path)
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise _unreadable(path)
    return key


def curve_key_of(path: Path, certificate: x509.Certificate) -> ec.EllipticCurvePublicKey:
    """The key of a certificate that was read from a path."""
    key = certificate.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise _unreadable(path)
    return key


def read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (ValueError, OSError) as error:
        raise _unreadable(path) from error


def write_certificate(path: Path, signed: x509.Certificate | x509.CertificateRevocationList) -> None:
    write_whole(path, signed.public_bytes(Encoding.PEM), PUBLIC)


def _read_curve_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = _read_key(path)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise _unreadable(path)
    return key


def _read_key(path: Path) -> PrivateKeyTypes:
    try:
        return load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, OSError) as error:
        raise _unreadable(path) from error


def _unreadable(path: Path) -> AuthorityFolderError:
    return AuthorityFolderError(path, "cannot be read", "Check who may read it, or restore it from a copy.")


def _private_pem(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _public_pem(key: ed25519.Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def write_whole(path: Path, content: bytes, mode: int) -> None:
    """Replace a file at once; a reader sees the old content or the new one, also after a crash."""
    try:
        # mkstemp makes the file 0600, so a key is never readable by others, not even for a moment.
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            _write(descriptor, content, mode)
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)
        fsync_folder(path.parent)
    except OSError as error:
        reason = f"cannot be written ({error.strerror})"
        raise AuthorityFolderError(path, reason, "Check the disk and who may write there, then try again.") from error


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a private folder to fill; it takes its name in one rename when the block ends well.

    A process killed before that leaves only a hidden folder beside it, which nothing opens.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise _cannot_create(folder, error) from error
    try:
        yield stage
        fsync_folder(stage)
        _take_name(stage, folder)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    fsync_folder(folder.parent)


def _take_name(stage: Path, folder: Path) -> None:
    try:
        # Fails when the folder exists and holds anything, so nobody's keys are ever overwritten.
        os.rename(stage, folder)
    except OSError as error:
        raise _cannot_create(folder, error) from error


def _cannot_create(folder: Path, error: OSError) -> AuthorityFolderError:
    reason = f"cannot be made ({error.strerror})"
    return AuthorityFolderError(folder, reason, "Name a folder that does not exist yet, where you may write.")


def _write(descriptor: int, content: bytes, mode: int) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        os.fchmod(descriptor, mode)
        file.flush()
        os.fsync(descriptor)
