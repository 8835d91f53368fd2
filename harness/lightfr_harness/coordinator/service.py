"""The procedures of proto/: bytes in, bytes out, or a Refusal. No HTTP here, so that a fuzzer can call it directly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from google.protobuf.message import DecodeError, Message

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import enrollment_pb2, error_pb2
from lightfr_harness.authority import SigningRequestError, TokenError
from lightfr_harness.coordinator.coordinator import Coordinator
from lightfr_harness.coordinator.publishing import WIRE_VERSION
from lightfr_harness.coordinator.refusals import Refusal

# Far above what a legal message of these kinds has: capabilities are at most 48 small numbers.
SMALL_LIMIT_BYTES = 1024
ENROLL_LIMIT_BYTES = 4096 + 128 + 64
_MOST_OF_A_CAPABILITY = 16

AnyMessage = TypeVar("AnyMessage", bound=Message)
Method = Callable[[str, bytes], Awaitable[bytes]]


def parse(kind: type[AnyMessage], body: bytes) -> AnyMessage:
    """Parse a message; raises Refusal."""
    try:
        return kind.FromString(body)
    except DecodeError as error:
        raise malformed(f"{len(body)} bytes are no {kind.DESCRIPTOR.name}") from error


def malformed(message: str) -> Refusal:
    return Refusal(error_pb2.ERROR_REASON_MALFORMED, message)


def _require_length(name: str, value: bytes, expected: int) -> None:
    if len(value) != expected:
        raise malformed(f"{name} has {len(value)} bytes, expected {expected}")


class CoordinatorService:
    """lightfr.v1.CoordinatorService for devices whose identity is known already."""

    name = "lightfr.v1.CoordinatorService"

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self.methods: dict[str, Method] = {
            "GetManifest": self.get_manifest,
            "CheckIn": self.check_in,
            "Upload": self.upload,
            "GetRoundStatus": self.get_round_status,
        }

    def limit_bytes(self, method: str) -> int:
        """The largest request that is read."""
        return self._coordinator.version.upload_limit_bytes if method == "Upload" else SMALL_LIMIT_BYTES

    async def get_manifest(self, device: str, body: bytes) -> bytes:
        request = parse(pb.GetManifestRequest, body)
        _require_capabilities(request.capabilities)
        version = self._coordinator.version
        if request.known_model_version == version.manifest.model_version:
            return b""
        return pb.GetManifestResponse(signed_manifest=version.signed).SerializeToString()

    async def check_in(self, device: str, body: bytes) -> bytes:
        request = parse(pb.CheckInRequest, body)
        _require_capabilities(request.capabilities)
        model = self._coordinator.version.manifest.model
        can = request.capabilities
        if model.upload_kind not in can.upload_kinds or model.privacy_mode not in can.privacy_modes:
            return self._coordinator.retry(pb.RETRY_REASON_NOT_CAPABLE).SerializeToString()
        return (await self._coordinator.check_in(device)).SerializeToString()

    async def upload(self, device: str, body: bytes) -> bytes:
        request = parse(pb.UploadRequest, body)
        _require_length("round_id", request.round_id, 16)
        _require_length("manifest_sha256", request.manifest_sha256, 32)
        _require_length("upload_id", request.upload_id, 16)
        receipt = await self._coordinator.upload(device, request, body)
        return pb.UploadResponse(upload_id=receipt.upload_id, request_sha256=receipt.request_sha256).SerializeToString()

    async def get_round_status(self, device: str, body: bytes) -> bytes:
        request = parse(pb.GetRoundStatusRequest, body)
        _require_length("round_id", request.round_id, 16)
        return (await self._coordinator.round_status(device, request.round_id)).SerializeToString()


def _require_capabilities(capabilities: pb.Capabilities) -> None:
    fields = (capabilities.wire_versions, capabilities.upload_kinds, capabilities.privacy_modes)
    if not fields[0] or max(map(len, fields)) > _MOST_OF_A_CAPABILITY:
        raise malformed(
            f"capabilities need 1 to {_MOST_OF_A_CAPABILITY} wire versions, and at most as many of the others"
        )
    if WIRE_VERSION not in fields[0]:
        raise Refusal(error_pb2.ERROR_REASON_WIRE_VERSION, "no wire version in common", wire_versions=[WIRE_VERSION])


class Enroller(Protocol):
    """What enrolment needs of the authority."""

    def enroll(self, token: str, signing_request: bytes) -> list[bytes]:
        """The certificates for a token and a signing request."""


class EnrollmentService:
    """lightfr.v1.EnrollmentService: there is no identity yet, so `device` is empty."""

    name = "lightfr.v1.EnrollmentService"

    def __init__(self, authority: Enroller) -> None:
        self._authority = authority
        self.methods: dict[str, Method] = {"Enroll": self.enroll}

    def limit_bytes(self, method: str) -> int:
        """The largest request that is read."""
        return ENROLL_LIMIT_BYTES

    async def enroll(self, device: str, body: bytes) -> bytes:
        request = parse(enrollment_pb2.EnrollRequest, body)
        if not (16 <= len(request.token) <= 128 and request.token.isascii()):
            raise malformed("the token is not 16 to 128 ASCII characters")
        if not 1 <= len(request.signing_request) <= 4096:
            raise malformed(f"signing_request has {len(request.signing_request)} bytes, expected 1 to 4096")
        try:
            chain = await asyncio.to_thread(self._authority.enroll, request.token, request.signing_request)
        except TokenError as error:
            raise Refusal(error_pb2.ERROR_REASON_TOKEN, "the token is unknown, expired or spent") from error
        except SigningRequestError as error:
            raise malformed("signing_request is no request for a P-256 key that signs itself") from error
        return enrollment_pb2.EnrollResponse(certificates=chain).SerializeToString()
