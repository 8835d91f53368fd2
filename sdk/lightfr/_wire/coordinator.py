"""The calls of CoordinatorService and EnrollmentService: messages out, checked answers in."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from lightfr.errors import ProtocolError
from lightfr.identities import Issued
from lightfr.membership import MEMBERSHIP_BYTES
from lightfr.model.manifest import SIGNED_LIMIT_BYTES, WIRE_VERSION
from lightfr.v1 import coordinator_pb2, enrollment_pb2, model_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lightfr._wire.channel import Channel

_DAY_MS = 86_400_000
SMALL_ANSWER_BYTES = 4_096
_CERTIFICATES_LIMIT_BYTES = 65_536
# Around the largest signed manifest in its answer.
_TAG_AND_LENGTH_BYTES = 4
ROUND_ID_BYTES = 16
UPLOAD_ID_BYTES = 16
UPLOAD_KINDS = (model_pb2.UPLOAD_KIND_TERNARY, model_pb2.UPLOAD_KIND_EXACT, model_pb2.UPLOAD_KIND_CODES)
TRAINING, GATE_REFRESH = coordinator_pb2.ROUND_KIND_TRAINING, coordinator_pb2.ROUND_KIND_GATE_REFRESH
EVALUATION = coordinator_pb2.ROUND_KIND_EVALUATION

Answer = TypeVar("Answer", bound=Message)


class Assignment(NamedTuple):
    """A place in a round."""

    round_id: bytes
    model_version: int
    manifest_sha256: bytes
    upload_limit_bytes: int
    deadline_seconds: float
    # Modes with secure aggregation: this device's name in the round.
    peer_id: bytes
    # What the cohort adds up, a RoundKind: TRAINING, GATE_REFRESH or EVALUATION.
    kind: int


class RetryWindow(NamedTuple):
    """When to come back, in seconds from now."""

    earliest_seconds: float
    latest_seconds: float
    reason: str


def _capabilities(privacy_modes: Sequence[int] = ()) -> coordinator_pb2.Capabilities:
    return coordinator_pb2.Capabilities(
        wire_versions=[WIRE_VERSION],
        upload_kinds=UPLOAD_KINDS,
        privacy_modes=privacy_modes,  # type: ignore[arg-type]
    )


def get_manifest(channel: Channel, known_model_version: int) -> bytes | None:
    """Ask for the newest manifest, as a serialised SignedManifest; None: the known version is the newest."""
    request = coordinator_pb2.GetManifestRequest(
        capabilities=_capabilities(), known_model_version=known_model_version
    ).SerializeToString()
    body = channel.call("CoordinatorService/GetManifest", request, SIGNED_LIMIT_BYTES + _TAG_AND_LENGTH_BYTES)
    answer = decode(coordinator_pb2.GetManifestResponse, body)
    return answer.signed_manifest.SerializeToString() if answer.HasField("signed_manifest") else None


def check_in(channel: Channel, known_model_version: int, privacy_modes: Sequence[int]) -> Assignment | RetryWindow:
    """Offer to take part in a round under one of these privacy modes."""
    request = coordinator_pb2.CheckInRequest(
        capabilities=_capabilities(privacy_modes), known_model_version=known_model_version
    ).SerializeToString()
    answer = decode(
        coordinator_pb2.CheckInResponse, channel.call("CoordinatorService/CheckIn", request, SMALL_ANSWER_BYTES)
    )
    if answer.WhichOneof("answer") == "assignment":
        return _assignment(answer.assignment)
    require(answer.WhichOneof("answer") == "retry_window", "a check-in was answered with nothing")
    return _retry_window(answer.retry_window)


def _assignment(message: coordinator_pb2.Assignment) -> Assignment:
    require(len(message.round_id) == ROUND_ID_BYTES, "round_id must be 16 bytes")
    require(len(message.manifest_sha256) == 32, "manifest_sha256 must be 32 bytes")
    require(1 <= message.deadline_ms <= _DAY_MS, "a deadline is out of range")
    require(len(message.peer_id) in (0, ROUND_ID_BYTES), "peer_id must be 16 bytes")
    require(message.kind in (0, TRAINING, GATE_REFRESH, EVALUATION), "this release does not know the kind of the round")
    return Assignment(
        message.round_id,
        message.model_version,
        message.manifest_sha256,
        message.upload_limit_bytes,
        message.deadline_ms / 1000,
        message.peer_id,
        message.kind or TRAINING,
    )


def _retry_window(message: coordinator_pb2.RetryWindow) -> RetryWindow:
    require(message.earliest_ms <= message.latest_ms <= _DAY_MS, "a retry window is out of range")
    known = message.reason and message.reason in coordinator_pb2.RetryReason.values()
    reason = coordinator_pb2.RetryReason.Name(message.reason) if known else "RETRY_REASON_ROUND_FULL"
    return RetryWindow(
        message.earliest_ms / 1000, message.latest_ms / 1000, reason.removeprefix("RETRY_REASON_").lower()
    )


def encode_upload(assignment: Assignment, upload_id: bytes, row_update: bytes) -> bytes:
    """Serialise an upload in the clear; `row_update` is what encode_update made."""
    request = coordinator_pb2.UploadRequest(
        round_id=assignment.round_id, manifest_sha256=assignment.manifest_sha256, upload_id=upload_id
    )
    request.row_update.MergeFromString(row_update)
    return request.SerializeToString()


def upload(channel: Channel, request: bytes) -> None:
    """Send a serialised UploadRequest; returns when the server says that it is durable."""
    body = channel.call("CoordinatorService/Upload", request, SMALL_ANSWER_BYTES)
    receipt = decode(coordinator_pb2.UploadResponse, body)
    require(receipt.request_sha256 == hashlib.sha256(request).digest(), "a receipt is for another upload")


def enroll(channel: Channel, token: str, signing_request: bytes, member_key: bytes) -> Issued:
    """Spend an invitation's token."""
    request = enrollment_pb2.EnrollRequest(
        token=token, signing_request=signing_request, member_key=member_key
    ).SerializeToString()
    body = channel.call("EnrollmentService/Enroll", request, _CERTIFICATES_LIMIT_BYTES)
    return _issued(decode(enrollment_pb2.EnrollResponse, body))


def renew(channel: Channel, signing_request: bytes, member_key: bytes) -> Issued:
    """Ask the authority for another certificate and membership of this device."""
    request = enrollment_pb2.RenewCertificateRequest(
        signing_request=signing_request, member_key=member_key
    ).SerializeToString()
    body = channel.call("EnrollmentService/RenewCertificate", request, _CERTIFICATES_LIMIT_BYTES)
    return _issued(decode(enrollment_pb2.RenewCertificateResponse, body))


def _issued(answer: enrollment_pb2.EnrollResponse | enrollment_pb2.RenewCertificateResponse) -> Issued:
    require(1 <= len(answer.certificates) <= 4, "an answer without a certificate, or with too many")
    require(len(answer.membership) == MEMBERSHIP_BYTES, f"a membership must be {MEMBERSHIP_BYTES} bytes")
    return Issued(list(answer.certificates), answer.membership)


def decode(kind: type[Answer], body: bytes) -> Answer:
    """Parse an answer; raises ProtocolError."""
    try:
        return kind.FromString(body)
    except DecodeError as error:
        raise ProtocolError(f"{len(body)} bytes of the server are not a {kind.DESCRIPTOR.name}") from error


def require(condition: bool, reason: str) -> None:
    """Raise ProtocolError unless the server kept to the protocol."""
    if not condition:
        raise ProtocolError(f"the server broke the protocol: {reason}")
