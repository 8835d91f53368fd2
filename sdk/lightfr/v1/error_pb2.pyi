from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_REASON_UNSPECIFIED: _ClassVar[ErrorReason]
    ERROR_REASON_MALFORMED: _ClassVar[ErrorReason]
    ERROR_REASON_WIRE_VERSION: _ClassVar[ErrorReason]
    ERROR_REASON_TOO_LARGE: _ClassVar[ErrorReason]
    ERROR_REASON_IDENTITY: _ClassVar[ErrorReason]
    ERROR_REASON_TOKEN: _ClassVar[ErrorReason]
    ERROR_REASON_ROUND_UNKNOWN: _ClassVar[ErrorReason]
    ERROR_REASON_ROUND_CLOSED: _ClassVar[ErrorReason]
    ERROR_REASON_NOT_ASSIGNED: _ClassVar[ErrorReason]
    ERROR_REASON_MODEL_MISMATCH: _ClassVar[ErrorReason]
    ERROR_REASON_UPLOAD_CONFLICT: _ClassVar[ErrorReason]
    ERROR_REASON_UPLOAD_INVALID: _ClassVar[ErrorReason]
    ERROR_REASON_OVERLOADED: _ClassVar[ErrorReason]
    ERROR_REASON_RENEWAL_EARLY: _ClassVar[ErrorReason]
ERROR_REASON_UNSPECIFIED: ErrorReason
ERROR_REASON_MALFORMED: ErrorReason
ERROR_REASON_WIRE_VERSION: ErrorReason
ERROR_REASON_TOO_LARGE: ErrorReason
ERROR_REASON_IDENTITY: ErrorReason
ERROR_REASON_TOKEN: ErrorReason
ERROR_REASON_ROUND_UNKNOWN: ErrorReason
ERROR_REASON_ROUND_CLOSED: ErrorReason
ERROR_REASON_NOT_ASSIGNED: ErrorReason
ERROR_REASON_MODEL_MISMATCH: ErrorReason
ERROR_REASON_UPLOAD_CONFLICT: ErrorReason
ERROR_REASON_UPLOAD_INVALID: ErrorReason
ERROR_REASON_OVERLOADED: ErrorReason
ERROR_REASON_RENEWAL_EARLY: ErrorReason

class ErrorDetail(_message.Message):
    __slots__ = ("reason", "limit_bytes", "wire_versions", "renewable_unix_seconds")
    REASON_FIELD_NUMBER: _ClassVar[int]
    LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    WIRE_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    RENEWABLE_UNIX_SECONDS_FIELD_NUMBER: _ClassVar[int]
    reason: ErrorReason
    limit_bytes: int
    wire_versions: _containers.RepeatedScalarFieldContainer[int]
    renewable_unix_seconds: int
    def __init__(self, reason: _Optional[_Union[ErrorReason, str]] = ..., limit_bytes: _Optional[int] = ..., wire_versions: _Optional[_Iterable[int]] = ..., renewable_unix_seconds: _Optional[int] = ...) -> None: ...
