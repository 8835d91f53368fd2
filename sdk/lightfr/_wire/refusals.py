"""Connect's error answers as exceptions: one table."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error
from typing import Any

from google.protobuf.message import DecodeError

from lightfr.errors import IdentityRefusedError, LightFRError, RefusedError, ServerUnavailableError, UpdateRequiredError
from lightfr.v1 import error_pb2

_DETAIL = error_pb2.ErrorDetail.DESCRIPTOR.full_name
_PREFIX = "ERROR_REASON_"
_LONGEST_MESSAGE = 200


def refusal(status: int, body: bytes) -> LightFRError:
    """Return the exception for an answer that is not 200. Without a Connect error in it, its status decides.

    Of the server's own words it shows 200 characters, and of its wire versions 16.
    """
    code, message, detail = _parse(body)
    known = detail.reason in error_pb2.ErrorReason.values()
    reason = error_pb2.ErrorReason.Name(detail.reason).removeprefix(_PREFIX) if known else "UNSPECIFIED"
    if reason == "IDENTITY":
        return IdentityRefusedError(
            "the server says that this identity is revoked or unknown: forget this device and enrol again"
        )
    if code == "unavailable" or status in (502, 503, 504):
        return ServerUnavailableError(f"the server answered {status}: try again later")
    if reason == "WIRE_VERSION":
        return UpdateRequiredError(code, reason, f"it speaks wire versions {list(detail.wire_versions)[:16]}")
    return RefusedError(code or f"HTTP {status}", reason, message)


def _parse(body: bytes) -> tuple[str, str, error_pb2.ErrorDetail]:
    try:
        answer: Any = json.loads(body)
        details = [d for d in answer.get("details", []) if d["type"] == _DETAIL]
        detail = error_pb2.ErrorDetail()
        if details:
            # Connect leaves the padding of base64 out.
            value = details[0]["value"]
            detail.ParseFromString(b64decode(value + "=" * (-len(value) % 4), validate=True))
        return _printable(str(answer["code"])), _printable(str(answer.get("message", ""))), detail
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, DecodeError, Base64Error):
        return "", "no Connect error in the answer", error_pb2.ErrorDetail()


def _printable(message: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in message[:_LONGEST_MESSAGE])
