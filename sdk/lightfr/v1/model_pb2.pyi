from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Objective(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OBJECTIVE_UNSPECIFIED: _ClassVar[Objective]
    OBJECTIVE_CATALOGUE: _ClassVar[Objective]
    OBJECTIVE_PAPER: _ClassVar[Objective]

class UploadKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UPLOAD_KIND_UNSPECIFIED: _ClassVar[UploadKind]
    UPLOAD_KIND_TERNARY: _ClassVar[UploadKind]
    UPLOAD_KIND_EXACT: _ClassVar[UploadKind]
    UPLOAD_KIND_CODES: _ClassVar[UploadKind]

class PrivacyMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIVACY_MODE_UNSPECIFIED: _ClassVar[PrivacyMode]
    PRIVACY_MODE_CLEAR: _ClassVar[PrivacyMode]
    PRIVACY_MODE_SECAGG: _ClassVar[PrivacyMode]
    PRIVACY_MODE_SECAGG_DP: _ClassVar[PrivacyMode]
OBJECTIVE_UNSPECIFIED: Objective
OBJECTIVE_CATALOGUE: Objective
OBJECTIVE_PAPER: Objective
UPLOAD_KIND_UNSPECIFIED: UploadKind
UPLOAD_KIND_TERNARY: UploadKind
UPLOAD_KIND_EXACT: UploadKind
UPLOAD_KIND_CODES: UploadKind
PRIVACY_MODE_UNSPECIFIED: PrivacyMode
PRIVACY_MODE_CLEAR: PrivacyMode
PRIVACY_MODE_SECAGG: PrivacyMode
PRIVACY_MODE_SECAGG_DP: PrivacyMode

class RoundModel(_message.Message):
    __slots__ = ("code_bits", "item_count", "objective", "upload_kind", "mean_user", "max_rows", "balance", "privacy_mode", "noise")
    CODE_BITS_FIELD_NUMBER: _ClassVar[int]
    ITEM_COUNT_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_KIND_FIELD_NUMBER: _ClassVar[int]
    MEAN_USER_FIELD_NUMBER: _ClassVar[int]
    MAX_ROWS_FIELD_NUMBER: _ClassVar[int]
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    PRIVACY_MODE_FIELD_NUMBER: _ClassVar[int]
    NOISE_FIELD_NUMBER: _ClassVar[int]
    code_bits: int
    item_count: int
    objective: Objective
    upload_kind: UploadKind
    mean_user: bytes
    max_rows: int
    balance: int
    privacy_mode: PrivacyMode
    noise: Noise
    def __init__(self, code_bits: _Optional[int] = ..., item_count: _Optional[int] = ..., objective: _Optional[_Union[Objective, str]] = ..., upload_kind: _Optional[_Union[UploadKind, str]] = ..., mean_user: _Optional[bytes] = ..., max_rows: _Optional[int] = ..., balance: _Optional[int] = ..., privacy_mode: _Optional[_Union[PrivacyMode, str]] = ..., noise: _Optional[_Union[Noise, _Mapping]] = ...) -> None: ...

class Noise(_message.Message):
    __slots__ = ("rows_thousandths", "sums_thousandths", "counts_thousandths")
    ROWS_THOUSANDTHS_FIELD_NUMBER: _ClassVar[int]
    SUMS_THOUSANDTHS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_THOUSANDTHS_FIELD_NUMBER: _ClassVar[int]
    rows_thousandths: int
    sums_thousandths: int
    counts_thousandths: int
    def __init__(self, rows_thousandths: _Optional[int] = ..., sums_thousandths: _Optional[int] = ..., counts_thousandths: _Optional[int] = ...) -> None: ...
