from lightfr.v1 import model_pb2 as _model_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Artifact(_message.Message):
    __slots__ = ("sha256", "size_bytes")
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    sha256: bytes
    size_bytes: int
    def __init__(self, sha256: _Optional[bytes] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class CodesDelta(_message.Message):
    __slots__ = ("from_sha256", "artifact")
    FROM_SHA256_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    from_sha256: bytes
    artifact: Artifact
    def __init__(self, from_sha256: _Optional[bytes] = ..., artifact: _Optional[_Union[Artifact, _Mapping]] = ...) -> None: ...

class Manifest(_message.Message):
    __slots__ = ("wire_version", "model_version", "created_unix_seconds", "model", "codes", "codes_deltas", "catalogue", "open_rows", "artifacts_address")
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATED_UNIX_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    CODES_DELTAS_FIELD_NUMBER: _ClassVar[int]
    CATALOGUE_FIELD_NUMBER: _ClassVar[int]
    OPEN_ROWS_FIELD_NUMBER: _ClassVar[int]
    ARTIFACTS_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    wire_version: int
    model_version: int
    created_unix_seconds: int
    model: _model_pb2.RoundModel
    codes: Artifact
    codes_deltas: _containers.RepeatedCompositeFieldContainer[CodesDelta]
    catalogue: Artifact
    open_rows: Artifact
    artifacts_address: str
    def __init__(self, wire_version: _Optional[int] = ..., model_version: _Optional[int] = ..., created_unix_seconds: _Optional[int] = ..., model: _Optional[_Union[_model_pb2.RoundModel, _Mapping]] = ..., codes: _Optional[_Union[Artifact, _Mapping]] = ..., codes_deltas: _Optional[_Iterable[_Union[CodesDelta, _Mapping]]] = ..., catalogue: _Optional[_Union[Artifact, _Mapping]] = ..., open_rows: _Optional[_Union[Artifact, _Mapping]] = ..., artifacts_address: _Optional[str] = ...) -> None: ...

class SignedManifest(_message.Message):
    __slots__ = ("manifest", "signature", "key_id")
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    manifest: bytes
    signature: bytes
    key_id: bytes
    def __init__(self, manifest: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., key_id: _Optional[bytes] = ...) -> None: ...
