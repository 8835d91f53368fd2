from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar

from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message

DESCRIPTOR: _descriptor.FileDescriptor

class RowUpdate(_message.Message):
    __slots__ = ("code_bits", "codes", "exact", "item_indices", "ternary", "user_code")
    CODE_BITS_FIELD_NUMBER: _ClassVar[int]
    ITEM_INDICES_FIELD_NUMBER: _ClassVar[int]
    TERNARY_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    USER_CODE_FIELD_NUMBER: _ClassVar[int]
    code_bits: int
    item_indices: bytes
    ternary: TernaryRows
    exact: ExactRows
    codes: CodeRows
    user_code: bytes
    def __init__(
        self,
        code_bits: int | None = ...,
        item_indices: bytes | None = ...,
        ternary: TernaryRows | _Mapping | None = ...,
        exact: ExactRows | _Mapping | None = ...,
        codes: CodeRows | _Mapping | None = ...,
        user_code: bytes | None = ...,
    ) -> None: ...

class TernaryRows(_message.Message):
    __slots__ = ("nonzero", "positive")
    NONZERO_FIELD_NUMBER: _ClassVar[int]
    POSITIVE_FIELD_NUMBER: _ClassVar[int]
    nonzero: bytes
    positive: bytes
    def __init__(self, nonzero: bytes | None = ..., positive: bytes | None = ...) -> None: ...

class ExactRows(_message.Message):
    __slots__ = ("gradients",)
    GRADIENTS_FIELD_NUMBER: _ClassVar[int]
    gradients: bytes
    def __init__(self, gradients: bytes | None = ...) -> None: ...

class CodeRows(_message.Message):
    __slots__ = ("codes",)
    CODES_FIELD_NUMBER: _ClassVar[int]
    codes: bytes
    def __init__(self, codes: bytes | None = ...) -> None: ...
