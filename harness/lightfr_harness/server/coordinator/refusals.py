"""How the coordinator refuses: one table from reason to Connect code, one from Connect code to HTTP status."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from lightfr.v1 import error_pb2
from lightfr.v1.error_pb2 import ErrorReason

CODE_OF_REASON = {
    error_pb2.ERROR_REASON_MALFORMED: "invalid_argument",
    error_pb2.ERROR_REASON_WIRE_VERSION: "failed_precondition",
    error_pb2.ERROR_REASON_TOO_LARGE: "resource_exhausted",
    error_pb2.ERROR_REASON_IDENTITY: "permission_denied",
    error_pb2.ERROR_REASON_TOKEN: "permission_denied",
    error_pb2.ERROR_REASON_ROUND_UNKNOWN: "not_found",
    error_pb2.ERROR_REASON_ROUND_CLOSED: "failed_precondition",
    error_pb2.ERROR_REASON_NOT_ASSIGNED: "permission_denied",
    error_pb2.ERROR_REASON_MODEL_MISMATCH: "failed_precondition",
    error_pb2.ERROR_REASON_UPLOAD_CONFLICT: "already_exists",
    error_pb2.ERROR_REASON_UPLOAD_INVALID: "invalid_argument",
    error_pb2.ERROR_REASON_OVERLOADED: "unavailable",
    error_pb2.ERROR_REASON_RENEWAL_EARLY: "failed_precondition",
}

# The Connect protocol's own table, for the codes that we send.
STATUS_OF_CODE = {
    "invalid_argument": 400,
    "failed_precondition": 400,
    "permission_denied": 403,
    "not_found": 404,
    "already_exists": 409,
    "resource_exhausted": 429,
    "internal": 500,
    "unimplemented": 501,
    "unavailable": 503,
    "deadline_exceeded": 504,
}


class Refusal(Exception):  # noqa: N818 - an answer, not an error
    """A typed no. Not a LightFRError: it never leaves the coordinator except as an answer on the wire."""

    def __init__(
        self,
        reason: ErrorReason,
        message: str,
        *,
        limit_bytes: int = 0,
        wire_versions: Sequence[int] = (),
        renewable_unix_seconds: int = 0,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.code = CODE_OF_REASON[reason]
        self.detail = error_pb2.ErrorDetail(
            reason=reason,
            limit_bytes=limit_bytes,
            wire_versions=wire_versions,
            renewable_unix_seconds=renewable_unix_seconds,
        )

    @property
    def name(self) -> str:
        """The reason without its prefix, in lower case: for metrics."""
        return ErrorReason.Name(self.reason).removeprefix("ERROR_REASON_").lower()

    def body(self) -> bytes:
        """The Connect error in JSON."""
        value = base64.b64encode(self.detail.SerializeToString()).rstrip(b"=").decode()
        return connect_error(self.code, str(self), [{"type": "lightfr.v1.ErrorDetail", "value": value}])


def connect_error(code: str, message: str, details: Sequence[dict[str, str]] = ()) -> bytes:
    error: dict[str, object] = {"code": code, "message": message}
    if details:
        error["details"] = list(details)
    return json.dumps(error, separators=(",", ":")).encode()
