from lightfr.v1 import manifest_pb2 as _manifest_pb2
from lightfr.v1 import model_pb2 as _model_pb2
from lightfr.v1 import secure_pb2 as _secure_pb2
from lightfr.v1 import update_pb2 as _update_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RoundKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROUND_KIND_UNSPECIFIED: _ClassVar[RoundKind]
    ROUND_KIND_TRAINING: _ClassVar[RoundKind]
    ROUND_KIND_GATE_REFRESH: _ClassVar[RoundKind]
    ROUND_KIND_EVALUATION: _ClassVar[RoundKind]

class RetryReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RETRY_REASON_UNSPECIFIED: _ClassVar[RetryReason]
    RETRY_REASON_ROUND_FULL: _ClassVar[RetryReason]
    RETRY_REASON_ALREADY_UPLOADED: _ClassVar[RetryReason]
    RETRY_REASON_AGGREGATING: _ClassVar[RetryReason]
    RETRY_REASON_TRAINING_FINISHED: _ClassVar[RetryReason]
    RETRY_REASON_NOT_CAPABLE: _ClassVar[RetryReason]
    RETRY_REASON_FAULTY: _ClassVar[RetryReason]

class RoundState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROUND_STATE_UNSPECIFIED: _ClassVar[RoundState]
    ROUND_STATE_OPEN: _ClassVar[RoundState]
    ROUND_STATE_AGGREGATING: _ClassVar[RoundState]
    ROUND_STATE_FINISHED: _ClassVar[RoundState]
    ROUND_STATE_ABANDONED: _ClassVar[RoundState]
ROUND_KIND_UNSPECIFIED: RoundKind
ROUND_KIND_TRAINING: RoundKind
ROUND_KIND_GATE_REFRESH: RoundKind
ROUND_KIND_EVALUATION: RoundKind
RETRY_REASON_UNSPECIFIED: RetryReason
RETRY_REASON_ROUND_FULL: RetryReason
RETRY_REASON_ALREADY_UPLOADED: RetryReason
RETRY_REASON_AGGREGATING: RetryReason
RETRY_REASON_TRAINING_FINISHED: RetryReason
RETRY_REASON_NOT_CAPABLE: RetryReason
RETRY_REASON_FAULTY: RetryReason
ROUND_STATE_UNSPECIFIED: RoundState
ROUND_STATE_OPEN: RoundState
ROUND_STATE_AGGREGATING: RoundState
ROUND_STATE_FINISHED: RoundState
ROUND_STATE_ABANDONED: RoundState

class Capabilities(_message.Message):
    __slots__ = ("wire_versions", "upload_kinds", "privacy_modes")
    WIRE_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_KINDS_FIELD_NUMBER: _ClassVar[int]
    PRIVACY_MODES_FIELD_NUMBER: _ClassVar[int]
    wire_versions: _containers.RepeatedScalarFieldContainer[int]
    upload_kinds: _containers.RepeatedScalarFieldContainer[_model_pb2.UploadKind]
    privacy_modes: _containers.RepeatedScalarFieldContainer[_model_pb2.PrivacyMode]
    def __init__(self, wire_versions: _Optional[_Iterable[int]] = ..., upload_kinds: _Optional[_Iterable[_Union[_model_pb2.UploadKind, str]]] = ..., privacy_modes: _Optional[_Iterable[_Union[_model_pb2.PrivacyMode, str]]] = ...) -> None: ...

class GetManifestRequest(_message.Message):
    __slots__ = ("capabilities", "known_model_version")
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    KNOWN_MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    capabilities: Capabilities
    known_model_version: int
    def __init__(self, capabilities: _Optional[_Union[Capabilities, _Mapping]] = ..., known_model_version: _Optional[int] = ...) -> None: ...

class GetManifestResponse(_message.Message):
    __slots__ = ("signed_manifest",)
    SIGNED_MANIFEST_FIELD_NUMBER: _ClassVar[int]
    signed_manifest: _manifest_pb2.SignedManifest
    def __init__(self, signed_manifest: _Optional[_Union[_manifest_pb2.SignedManifest, _Mapping]] = ...) -> None: ...

class CheckInRequest(_message.Message):
    __slots__ = ("capabilities", "known_model_version")
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    KNOWN_MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    capabilities: Capabilities
    known_model_version: int
    def __init__(self, capabilities: _Optional[_Union[Capabilities, _Mapping]] = ..., known_model_version: _Optional[int] = ...) -> None: ...

class CheckInResponse(_message.Message):
    __slots__ = ("assignment", "retry_window")
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    RETRY_WINDOW_FIELD_NUMBER: _ClassVar[int]
    assignment: Assignment
    retry_window: RetryWindow
    def __init__(self, assignment: _Optional[_Union[Assignment, _Mapping]] = ..., retry_window: _Optional[_Union[RetryWindow, _Mapping]] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("round_id", "model_version", "manifest_sha256", "deadline_ms", "upload_limit_bytes", "peer_id", "kind")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_SHA256_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    PEER_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    model_version: int
    manifest_sha256: bytes
    deadline_ms: int
    upload_limit_bytes: int
    peer_id: bytes
    kind: RoundKind
    def __init__(self, round_id: _Optional[bytes] = ..., model_version: _Optional[int] = ..., manifest_sha256: _Optional[bytes] = ..., deadline_ms: _Optional[int] = ..., upload_limit_bytes: _Optional[int] = ..., peer_id: _Optional[bytes] = ..., kind: _Optional[_Union[RoundKind, str]] = ...) -> None: ...

class RetryWindow(_message.Message):
    __slots__ = ("earliest_ms", "latest_ms", "reason")
    EARLIEST_MS_FIELD_NUMBER: _ClassVar[int]
    LATEST_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    earliest_ms: int
    latest_ms: int
    reason: RetryReason
    def __init__(self, earliest_ms: _Optional[int] = ..., latest_ms: _Optional[int] = ..., reason: _Optional[_Union[RetryReason, str]] = ...) -> None: ...

class UploadRequest(_message.Message):
    __slots__ = ("round_id", "manifest_sha256", "upload_id", "row_update", "masked_vector")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_SHA256_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    ROW_UPDATE_FIELD_NUMBER: _ClassVar[int]
    MASKED_VECTOR_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    manifest_sha256: bytes
    upload_id: bytes
    row_update: _update_pb2.RowUpdate
    masked_vector: bytes
    def __init__(self, round_id: _Optional[bytes] = ..., manifest_sha256: _Optional[bytes] = ..., upload_id: _Optional[bytes] = ..., row_update: _Optional[_Union[_update_pb2.RowUpdate, _Mapping]] = ..., masked_vector: _Optional[bytes] = ...) -> None: ...

class UploadResponse(_message.Message):
    __slots__ = ("upload_id", "request_sha256")
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_SHA256_FIELD_NUMBER: _ClassVar[int]
    upload_id: bytes
    request_sha256: bytes
    def __init__(self, upload_id: _Optional[bytes] = ..., request_sha256: _Optional[bytes] = ...) -> None: ...

class GetRoundStatusRequest(_message.Message):
    __slots__ = ("round_id",)
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    def __init__(self, round_id: _Optional[bytes] = ...) -> None: ...

class GetRoundStatusResponse(_message.Message):
    __slots__ = ("state", "upload_count", "upload_goal", "has_your_upload", "next_model_version")
    STATE_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_COUNT_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_GOAL_FIELD_NUMBER: _ClassVar[int]
    HAS_YOUR_UPLOAD_FIELD_NUMBER: _ClassVar[int]
    NEXT_MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    state: RoundState
    upload_count: int
    upload_goal: int
    has_your_upload: bool
    next_model_version: int
    def __init__(self, state: _Optional[_Union[RoundState, str]] = ..., upload_count: _Optional[int] = ..., upload_goal: _Optional[int] = ..., has_your_upload: bool = ..., next_model_version: _Optional[int] = ...) -> None: ...
