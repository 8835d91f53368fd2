"""What a case gets: the kit, devices, the twin, and ways to reach the server as anybody."""

from __future__ import annotations

import hashlib
import itertools
import secrets
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from google.protobuf.message import Message

from lightfr.device import Trust
from lightfr.membership import Member, MemberKey
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import enrollment_pb2, manifest_pb2, model_pb2
from lightfr_harness.conformance.client import ENROLLMENT, SERVICE, Answer, RawClient, tls_context
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_equal
from lightfr_harness.conformance.kit import Kit, make_signing_request, write_identity
from lightfr_harness.conformance.rounds import ClearRound, ClearRounds
from lightfr_harness.conformance.secure_rounds import SecureRounds
from lightfr_harness.conformance.twin import PaperTwin, Twin
from lightfr_harness.conformance.vectors import Vectors
from lightfr_harness.server.authority.certificates import new_key
from lightfr_harness.server.rules import PRIVACY_MODES

if TYPE_CHECKING:
    from lightfr_harness.conformance.cases.catalogue import Change

MANIFEST_CONTEXT = b"lightfr manifest v1\n"


def _twin_of(kit: Kit) -> Twin:
    """A right server at version 1."""
    settings = kit.settings
    if settings.objective == "paper":
        has_codes = settings.upload_kind == "codes"
        return PaperTwin(kit.codes, settings.code_bits, balance=settings.balance, has_codes=has_codes)
    is_exact, is_clipped = settings.upload_kind == "exact", settings.noise is not None
    return Twin(kit.codes, settings.code_bits, is_exact=is_exact, is_clipped=is_clipped)


class Issued(Protocol):
    """What the authority answers: certificates and a membership."""

    @property
    def certificates(self) -> Sequence[bytes]: ...

    @property
    def membership(self) -> bytes: ...


class Device:
    """An enrolled device with one kept connection."""

    def __init__(self, name: str, client: RawClient, identity: Path, member: Member) -> None:
        self.name, self.client, self.identity, self.member = name, client, identity, member

    def call(self, method: str, request: Message | bytes, **headers: str) -> Answer:
        """Call a method of CoordinatorService; header names are written with _ for -."""
        body = request if isinstance(request, bytes) else request.SerializeToString()
        return self.client.post(
            SERVICE + method, body, {name.replace("_", "-"): text for name, text in headers.items()}
        )

    def get(self, path: str, verb: str = "GET", **headers: str) -> Answer:
        """GET, or another verb without a body."""
        return self.client.request(verb, path, None, {name.replace("_", "-"): text for name, text in headers.items()})

    def artifact(self, artifact: manifest_pb2.Artifact) -> bytes:
        """Download an artifact and check its size and digest."""
        answer = self.get(f"/artifacts/{artifact.sha256.hex()}")
        expect(answer.status == 200, "200 for an artifact that the manifest names", answer)
        expect_equal("size of an artifact", len(answer.body), artifact.size_bytes)
        expect_equal("SHA-256 of an artifact", hashlib.sha256(answer.body).digest(), artifact.sha256)
        return answer.body

    def __repr__(self) -> str:
        return self.name


class World:
    """A server under test and everything around it."""

    def __init__(
        self,
        server: str,
        enrollment: str,
        kit: Kit,
        vectors: Vectors,
        restart: Callable[[], None] | None = None,
        change_catalogue: Callable[[Path], None] | None = None,
    ) -> None:
        """`restart` kills the server, starts it again on what it has stored, and returns when it listens.

        `change_catalogue` lets the server have the items of a file.
        """
        self._restart, self._change_catalogue = restart, change_catalogue
        self.server, self.enrollment, self.kit, self.vectors = server, enrollment, kit, vectors
        self.twin = _twin_of(kit)
        self._folder = tempfile.TemporaryDirectory(prefix="lightfr-conformance-")
        self._devices: list[Device] = []
        self._clients: list[RawClient] = []
        # The last is expired already.
        self._tokens = iter(kit.tokens[:-1])
        self._names = itertools.count()
        self.seen_manifests: dict[bytes, manifest_pb2.SignedManifest] = {}
        self.rounds = ClearRounds(self)
        self.secure = SecureRounds(self)
        # Of the catalogue, for the cases that look at them; None before the first of these.
        self.changes: list[Change] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self._folder.cleanup()

    def restart(self) -> None:
        """Let the server lose its memory. Connections that were kept are made anew when they are needed."""
        if self._restart is None:
            raise Unexpected("a way to restart the server", "none: name a --restart-command")
        self._restart()

    def change_catalogue(self, items: Path) -> None:
        """Let the server take up a list of items; from when on it has them is its own business."""
        if self._change_catalogue is None:
            raise Unexpected("a way to change the server's catalogue", "none: name a --catalogue-command")
        self._change_catalogue(items)

    # Ways to reach the server.

    def client(self, identity: Path | None, *, enrollment: bool = False) -> RawClient:
        """A new connection with this identity, a PEM file, or none."""
        client = RawClient(self.enrollment if enrollment else self.server, tls_context(self.kit.trust, identity))
        self._clients.append(client)
        return client

    def device(self, number: int) -> Device:
        """A good device; those up to the number are enrolled when first asked for."""
        while len(self._devices) <= number:
            self._devices.append(self.newcomer(f"device {len(self._devices)}"))
        return self._devices[number]

    def devices(self, count: int) -> list[Device]:
        return [self.device(number) for number in range(count)]

    def newcomer(self, name: str = "a newcomer") -> Device:
        """A good device that nobody has seen before: for what a server may hold against it later."""

        def certify(signing_request: bytes, member_key: bytes) -> Issued:
            request = enrollment_pb2.EnrollRequest(
                token=self.token(), signing_request=signing_request, member_key=member_key
            )
            return self.enroll(request).message(enrollment_pb2.EnrollResponse)

        return self.certified(name, certify)

    def certified(self, name: str, certify: Callable[[bytes, bytes], Issued]) -> Device:
        """A device with new keys; `certify` turns a signing request and a member key into what the authority says."""
        key, member_key = new_key(), MemberKey.new()
        issued = certify(make_signing_request(key), member_key.public)
        path = Path(self._folder.name) / f"{next(self._names)}.pem"
        write_identity(path, key, [x509.load_der_x509_certificate(der) for der in issued.certificates])
        return Device(name, self.client(path), path, Member(member_key, issued.membership))

    def token(self) -> str:
        """A token that nobody has used."""
        return next(self._tokens)

    def enroll(self, request: enrollment_pb2.EnrollRequest | bytes, identity: Path | None = None) -> Answer:
        """Call Enroll on a new connection, usually without an identity."""
        body = request if isinstance(request, bytes) else request.SerializeToString()
        return self._once(identity, "Enroll", body)

    def renew(self, device: Device | None, request: enrollment_pb2.RenewCertificateRequest | bytes) -> Answer:
        """Call RenewCertificate at the authority with the identity of a device, or without one."""
        body = request if isinstance(request, bytes) else request.SerializeToString()
        return self._once(device.identity if device else None, "RenewCertificate", body)

    def at_once(self, method: str, requests: Sequence[Message], identity: Path | None = None) -> list[Answer]:
        """Call the authority with all requests at once. Connections are there before the first of them asks."""
        clients = [self.client(identity, enrollment=True) for _ in requests]
        for client in clients:
            client.handshake()
        with ThreadPoolExecutor(len(requests)) as pool:
            bodies = [request.SerializeToString() for request in requests]
            return list(pool.map(lambda client, body: client.post(ENROLLMENT + method, body), clients, bodies))

    def _once(self, identity: Path | None, method: str, body: bytes) -> Answer:
        """Call the authority on a new connection."""
        client = self.client(identity, enrollment=True)
        try:
            return client.post(ENROLLMENT + method, body)
        finally:
            client.close()

    # What good devices say and read.

    @property
    def capabilities(self) -> pb.Capabilities:
        """Of a device that can do what the kit's rounds ask for."""
        return pb.Capabilities(
            wire_versions=[1],
            upload_kinds=[self.upload_kind],  # type: ignore[list-item]
            privacy_modes=[PRIVACY_MODES[self.kit.settings.privacy]],
        )

    @property
    def upload_kind(self) -> int:
        """What the kit's rounds ask for."""
        return int(model_pb2.UploadKind.Value(f"UPLOAD_KIND_{self.kit.settings.upload_kind.upper()}"))

    @property
    def manifest_key(self) -> Ed25519PublicKey:
        """The public key that devices trust."""
        return Ed25519PublicKey.from_public_bytes(self.trusted_keys[0])

    @cached_property
    def trusted_keys(self) -> tuple[bytes, Sequence[bytes]]:
        """The raw keys that sign manifests and memberships."""
        trust = Trust(self.kit.trust)
        (manifest_key,) = trust.manifest_keys.values()
        return manifest_key, trust.membership_keys

    def signed_manifest(self, device: Device | None = None, known: int = 0) -> manifest_pb2.SignedManifest | None:
        """The newest manifest as it travels; None when the known one still is the newest."""
        request = pb.GetManifestRequest(capabilities=self.capabilities, known_model_version=known)
        answer = (device or self.device(0)).call("GetManifest", request).message(pb.GetManifestResponse)
        return answer.signed_manifest if answer.HasField("signed_manifest") else None

    def manifest(self, device: Device | None = None) -> manifest_pb2.Manifest:
        """The newest manifest. Signatures have cases of their own, at the end one for all that were seen."""
        signed = self.signed_manifest(device)
        if signed is None:
            raise Unexpected("a signed manifest for a device that holds none", "an answer without one")
        self.seen_manifests[signed.manifest] = signed
        return manifest_pb2.Manifest.FromString(signed.manifest)

    def digest_of(self, manifest: manifest_pb2.Manifest) -> bytes:
        """SHA-256 of the bytes in which a manifest was seen."""
        return next(
            hashlib.sha256(seen).digest()
            for seen in self.seen_manifests
            if manifest_pb2.Manifest.FromString(seen) == manifest
        )

    def require_signature(self, signed: manifest_pb2.SignedManifest) -> None:
        expect_equal("key_id", signed.key_id, hashlib.sha256(self.trusted_keys[0]).digest()[:8])
        try:
            self.manifest_key.verify(signed.signature, MANIFEST_CONTEXT + signed.manifest)
        except InvalidSignature as error:
            raise Unexpected("a manifest signed over its exact bytes", "a signature that does not verify") from error

    def check_in(self, device: Device, **changes: object) -> pb.CheckInResponse:
        request = pb.CheckInRequest(**{"capabilities": self.capabilities, **changes})  # type: ignore[arg-type]
        return device.call("CheckIn", request).message(pb.CheckInResponse)

    def fresh_round(self) -> ClearRound:
        """A round in which only device 0 has a place, and nobody has uploaded."""
        return self.rounds.fresh()

    @staticmethod
    def random_id() -> bytes:
        return secrets.token_bytes(16)
