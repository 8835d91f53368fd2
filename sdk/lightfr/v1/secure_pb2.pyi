from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AdvertiseKeysRequest(_message.Message):
    __slots__ = ("round_id", "mask_public_key", "share_public_key")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    MASK_PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    SHARE_PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    mask_public_key: bytes
    share_public_key: bytes
    def __init__(self, round_id: _Optional[bytes] = ..., mask_public_key: _Optional[bytes] = ..., share_public_key: _Optional[bytes] = ...) -> None: ...

class AdvertiseKeysResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShareKeysRequest(_message.Message):
    __slots__ = ("round_id", "sealed_shares")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    SEALED_SHARES_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    sealed_shares: bytes
    def __init__(self, round_id: _Optional[bytes] = ..., sealed_shares: _Optional[bytes] = ...) -> None: ...

class ShareKeysResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RevealSharesRequest(_message.Message):
    __slots__ = ("round_id", "self_masks", "mask_keys")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    SELF_MASKS_FIELD_NUMBER: _ClassVar[int]
    MASK_KEYS_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    self_masks: bytes
    mask_keys: bytes
    def __init__(self, round_id: _Optional[bytes] = ..., self_masks: _Optional[bytes] = ..., mask_keys: _Optional[bytes] = ...) -> None: ...

class RevealSharesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStepRequest(_message.Message):
    __slots__ = ("round_id",)
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    def __init__(self, round_id: _Optional[bytes] = ...) -> None: ...

class GetStepResponse(_message.Message):
    __slots__ = ("wait_ms", "share", "upload", "reveal", "done")
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    REVEAL_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    wait_ms: int
    share: ShareStep
    upload: UploadStep
    reveal: RevealStep
    done: RoundDone
    def __init__(self, wait_ms: _Optional[int] = ..., share: _Optional[_Union[ShareStep, _Mapping]] = ..., upload: _Optional[_Union[UploadStep, _Mapping]] = ..., reveal: _Optional[_Union[RevealStep, _Mapping]] = ..., done: _Optional[_Union[RoundDone, _Mapping]] = ...) -> None: ...

class ShareStep(_message.Message):
    __slots__ = ("entries", "degree", "threshold", "signature")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    DEGREE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    entries: bytes
    degree: int
    threshold: int
    signature: bytes
    def __init__(self, entries: _Optional[bytes] = ..., degree: _Optional[int] = ..., threshold: _Optional[int] = ..., signature: _Optional[bytes] = ...) -> None: ...

class UploadStep(_message.Message):
    __slots__ = ("included", "sealed_shares")
    INCLUDED_FIELD_NUMBER: _ClassVar[int]
    SEALED_SHARES_FIELD_NUMBER: _ClassVar[int]
    included: bytes
    sealed_shares: bytes
    def __init__(self, included: _Optional[bytes] = ..., sealed_shares: _Optional[bytes] = ...) -> None: ...

class RevealStep(_message.Message):
    __slots__ = ("survivors", "signature")
    SURVIVORS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    survivors: bytes
    signature: bytes
    def __init__(self, survivors: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class RoundDone(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
