from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RowUpdate(_message.Message):
    __slots__ = ("code_bits", "item_indices", "ternary", "exact", "codes", "user_code")
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
    def __init__(self, code_bits: _Optional[int] = ..., item_indices: _Optional[bytes] = ..., ternary: _Optional[_Union[TernaryRows, _Mapping]] = ..., exact: _Optional[_Union[ExactRows, _Mapping]] = ..., codes: _Optional[_Union[CodeRows, _Mapping]] = ..., user_code: _Optional[bytes] = ...) -> None: ...

class TernaryRows(_message.Message):
    __slots__ = ("nonzero", "positive")
    NONZERO_FIELD_NUMBER: _ClassVar[int]
    POSITIVE_FIELD_NUMBER: _ClassVar[int]
    nonzero: bytes
    positive: bytes
    def __init__(self, nonzero: _Optional[bytes] = ..., positive: _Optional[bytes] = ...) -> None: ...

class ExactRows(_message.Message):
    __slots__ = ("gradients",)
    GRADIENTS_FIELD_NUMBER: _ClassVar[int]
    gradients: bytes
    def __init__(self, gradients: _Optional[bytes] = ...) -> None: ...

class CodeRows(_message.Message):
    __slots__ = ("codes",)
    CODES_FIELD_NUMBER: _ClassVar[int]
    codes: bytes
    def __init__(self, codes: _Optional[bytes] = ...) -> None: ...
