from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Table(_message.Message):
    __slots__ = ("columns", "values")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    columns: int
    values: bytes
    def __init__(self, columns: _Optional[int] = ..., values: _Optional[bytes] = ...) -> None: ...

class ItemRows(_message.Message):
    __slots__ = ("item_indices", "rows")
    ITEM_INDICES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    item_indices: _containers.RepeatedScalarFieldContainer[int]
    rows: Table
    def __init__(self, item_indices: _Optional[_Iterable[int]] = ..., rows: _Optional[_Union[Table, _Mapping]] = ...) -> None: ...

class EncryptedTable(_message.Message):
    __slots__ = ("columns", "ciphertext_bytes", "ciphertexts")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    CIPHERTEXT_BYTES_FIELD_NUMBER: _ClassVar[int]
    CIPHERTEXTS_FIELD_NUMBER: _ClassVar[int]
    columns: int
    ciphertext_bytes: int
    ciphertexts: bytes
    def __init__(self, columns: _Optional[int] = ..., ciphertext_bytes: _Optional[int] = ..., ciphertexts: _Optional[bytes] = ...) -> None: ...

class EncryptedItemRows(_message.Message):
    __slots__ = ("item_indices", "rows")
    ITEM_INDICES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    item_indices: _containers.RepeatedScalarFieldContainer[int]
    rows: EncryptedTable
    def __init__(self, item_indices: _Optional[_Iterable[int]] = ..., rows: _Optional[_Union[EncryptedTable, _Mapping]] = ...) -> None: ...

class GeneratedModel(_message.Message):
    __slots__ = ("left", "right", "hidden_weights", "hidden_bias", "output_weights", "output_bias")
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_BIAS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BIAS_FIELD_NUMBER: _ClassVar[int]
    left: Table
    right: Table
    hidden_weights: Table
    hidden_bias: Table
    output_weights: Table
    output_bias: Table
    def __init__(self, left: _Optional[_Union[Table, _Mapping]] = ..., right: _Optional[_Union[Table, _Mapping]] = ..., hidden_weights: _Optional[_Union[Table, _Mapping]] = ..., hidden_bias: _Optional[_Union[Table, _Mapping]] = ..., output_weights: _Optional[_Union[Table, _Mapping]] = ..., output_bias: _Optional[_Union[Table, _Mapping]] = ...) -> None: ...

class GeneratedModelGradient(_message.Message):
    __slots__ = ("items", "hidden_weights", "hidden_bias", "output_weights", "output_bias")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_BIAS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BIAS_FIELD_NUMBER: _ClassVar[int]
    items: ItemRows
    hidden_weights: Table
    hidden_bias: Table
    output_weights: Table
    output_bias: Table
    def __init__(self, items: _Optional[_Union[ItemRows, _Mapping]] = ..., hidden_weights: _Optional[_Union[Table, _Mapping]] = ..., hidden_bias: _Optional[_Union[Table, _Mapping]] = ..., output_weights: _Optional[_Union[Table, _Mapping]] = ..., output_bias: _Optional[_Union[Table, _Mapping]] = ...) -> None: ...
