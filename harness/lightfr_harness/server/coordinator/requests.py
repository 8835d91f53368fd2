"""What every service does with a request, whoever answers it: the coordinator or the authority."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from lightfr.v1 import error_pb2
from lightfr_harness.server.coordinator.refusals import Refusal

# How many seconds the request at hand may take.
seconds_allowed: ContextVar[float] = ContextVar("seconds_allowed", default=60.0)

AnyMessage = TypeVar("AnyMessage", bound=Message)
Method = Callable[[str, bytes], Awaitable[bytes]]


def parse(kind: type[AnyMessage], body: bytes) -> AnyMessage:
    """Parse a message; raises Refusal."""
    try:
        return kind.FromString(body)
    except DecodeError as error:
        raise malformed(f"the {len(body)} bytes are not a {kind.DESCRIPTOR.name}") from error


def malformed(message: str) -> Refusal:
    return Refusal(error_pb2.ERROR_REASON_MALFORMED, message)


def require_length(name: str, value: bytes, expected: int) -> None:
    if len(value) != expected:
        raise malformed(f"{name} must be {expected} bytes, not {len(value)}")
