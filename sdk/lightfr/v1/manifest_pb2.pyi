from lightfr.v1 import model_pb2 as _model_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RankBy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RANK_BY_UNSPECIFIED: _ClassVar[RankBy]
    RANK_BY_CODES: _ClassVar[RankBy]
    RANK_BY_POPULARITY: _ClassVar[RankBy]
    RANK_BY_CHANCE: _ClassVar[RankBy]

class Recency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECENCY_UNSPECIFIED: _ClassVar[Recency]
    RECENCY_OFF: _ClassVar[Recency]
    RECENCY_WEAK: _ClassVar[Recency]
    RECENCY_STRONG: _ClassVar[Recency]
RANK_BY_UNSPECIFIED: RankBy
RANK_BY_CODES: RankBy
RANK_BY_POPULARITY: RankBy
RANK_BY_CHANCE: RankBy
RECENCY_UNSPECIFIED: Recency
RECENCY_OFF: Recency
RECENCY_WEAK: Recency
RECENCY_STRONG: Recency

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
    __slots__ = ("wire_version", "model_version", "created_unix_seconds", "model", "codes", "codes_deltas", "catalogue_parts", "open_rows", "artifacts_address", "prior", "rankings", "candidates", "removed_items")
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATED_UNIX_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    CODES_DELTAS_FIELD_NUMBER: _ClassVar[int]
    CATALOGUE_PARTS_FIELD_NUMBER: _ClassVar[int]
    OPEN_ROWS_FIELD_NUMBER: _ClassVar[int]
    ARTIFACTS_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PRIOR_FIELD_NUMBER: _ClassVar[int]
    RANKINGS_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    REMOVED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    wire_version: int
    model_version: int
    created_unix_seconds: int
    model: _model_pb2.RoundModel
    codes: Artifact
    codes_deltas: _containers.RepeatedCompositeFieldContainer[CodesDelta]
    catalogue_parts: _containers.RepeatedCompositeFieldContainer[Artifact]
    open_rows: Artifact
    artifacts_address: str
    prior: Prior
    rankings: _containers.RepeatedCompositeFieldContainer[Ranking]
    candidates: _containers.RepeatedCompositeFieldContainer[Ranking]
    removed_items: Artifact
    def __init__(self, wire_version: _Optional[int] = ..., model_version: _Optional[int] = ..., created_unix_seconds: _Optional[int] = ..., model: _Optional[_Union[_model_pb2.RoundModel, _Mapping]] = ..., codes: _Optional[_Union[Artifact, _Mapping]] = ..., codes_deltas: _Optional[_Iterable[_Union[CodesDelta, _Mapping]]] = ..., catalogue_parts: _Optional[_Iterable[_Union[Artifact, _Mapping]]] = ..., open_rows: _Optional[_Union[Artifact, _Mapping]] = ..., artifacts_address: _Optional[str] = ..., prior: _Optional[_Union[Prior, _Mapping]] = ..., rankings: _Optional[_Iterable[_Union[Ranking, _Mapping]]] = ..., candidates: _Optional[_Iterable[_Union[Ranking, _Mapping]]] = ..., removed_items: _Optional[_Union[Artifact, _Mapping]] = ...) -> None: ...

class Prior(_message.Message):
    __slots__ = ("first_items", "popularities")
    FIRST_ITEMS_FIELD_NUMBER: _ClassVar[int]
    POPULARITIES_FIELD_NUMBER: _ClassVar[int]
    first_items: _containers.RepeatedScalarFieldContainer[int]
    popularities: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, first_items: _Optional[_Iterable[int]] = ..., popularities: _Optional[_Iterable[int]] = ...) -> None: ...

class Ranking(_message.Message):
    __slots__ = ("by", "prior_fourths", "recency", "refine")
    BY_FIELD_NUMBER: _ClassVar[int]
    PRIOR_FOURTHS_FIELD_NUMBER: _ClassVar[int]
    RECENCY_FIELD_NUMBER: _ClassVar[int]
    REFINE_FIELD_NUMBER: _ClassVar[int]
    by: RankBy
    prior_fourths: int
    recency: Recency
    refine: bool
    def __init__(self, by: _Optional[_Union[RankBy, str]] = ..., prior_fourths: _Optional[int] = ..., recency: _Optional[_Union[Recency, str]] = ..., refine: bool = ...) -> None: ...

class SignedManifest(_message.Message):
    __slots__ = ("manifest", "signature", "key_id")
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    manifest: bytes
    signature: bytes
    key_id: bytes
    def __init__(self, manifest: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., key_id: _Optional[bytes] = ...) -> None: ...
