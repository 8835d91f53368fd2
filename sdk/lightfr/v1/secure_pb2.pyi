from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AdvertiseKeysRequest(_message.Message):
    __slots__ = ("round_id", "mask_public_key", "share_public_key", "membership", "signature")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    MASK_PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    SHARE_PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    mask_public_key: bytes
    share_public_key: bytes
    membership: bytes
    signature: bytes
    def __init__(self, round_id: _Optional[bytes] = ..., mask_public_key: _Optional[bytes] = ..., share_public_key: _Optional[bytes] = ..., membership: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

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

class AcknowledgeSharesRequest(_message.Message):
    __slots__ = ("round_id", "unopened")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    UNOPENED_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    unopened: bytes
    def __init__(self, round_id: _Optional[bytes] = ..., unopened: _Optional[bytes] = ...) -> None: ...

class AcknowledgeSharesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SignIncludedRequest(_message.Message):
    __slots__ = ("round_id", "signature")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    signature: bytes
    def __init__(self, round_id: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class SignIncludedResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SignSurvivorsRequest(_message.Message):
    __slots__ = ("round_id", "signature")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    signature: bytes
    def __init__(self, round_id: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class SignSurvivorsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RevealSharesRequest(_message.Message):
    __slots__ = ("round_id", "seeds", "mask_keys")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    SEEDS_FIELD_NUMBER: _ClassVar[int]
    MASK_KEYS_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    seeds: bytes
    mask_keys: bytes
    def __init__(self, round_id: _Optional[bytes] = ..., seeds: _Optional[bytes] = ..., mask_keys: _Optional[bytes] = ...) -> None: ...

class RevealSharesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStepRequest(_message.Message):
    __slots__ = ("round_id", "max_wait_ms")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    max_wait_ms: int
    def __init__(self, round_id: _Optional[bytes] = ..., max_wait_ms: _Optional[int] = ...) -> None: ...

class GetStepResponse(_message.Message):
    __slots__ = ("wait_ms", "share", "acknowledge", "included", "upload", "survivors", "reveal", "done")
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    INCLUDED_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    SURVIVORS_FIELD_NUMBER: _ClassVar[int]
    REVEAL_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    wait_ms: int
    share: ShareStep
    acknowledge: AcknowledgeStep
    included: IncludedStep
    upload: UploadStep
    survivors: SurvivorsStep
    reveal: RevealStep
    done: RoundDone
    def __init__(self, wait_ms: _Optional[int] = ..., share: _Optional[_Union[ShareStep, _Mapping]] = ..., acknowledge: _Optional[_Union[AcknowledgeStep, _Mapping]] = ..., included: _Optional[_Union[IncludedStep, _Mapping]] = ..., upload: _Optional[_Union[UploadStep, _Mapping]] = ..., survivors: _Optional[_Union[SurvivorsStep, _Mapping]] = ..., reveal: _Optional[_Union[RevealStep, _Mapping]] = ..., done: _Optional[_Union[RoundDone, _Mapping]] = ...) -> None: ...

class ShareStep(_message.Message):
    __slots__ = ("entries", "vouchers", "degree", "holders", "threshold", "signature")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    VOUCHERS_FIELD_NUMBER: _ClassVar[int]
    DEGREE_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    entries: bytes
    vouchers: bytes
    degree: int
    holders: int
    threshold: int
    signature: bytes
    def __init__(self, entries: _Optional[bytes] = ..., vouchers: _Optional[bytes] = ..., degree: _Optional[int] = ..., holders: _Optional[int] = ..., threshold: _Optional[int] = ..., signature: _Optional[bytes] = ...) -> None: ...

class AcknowledgeStep(_message.Message):
    __slots__ = ("sealed_shares",)
    SEALED_SHARES_FIELD_NUMBER: _ClassVar[int]
    sealed_shares: bytes
    def __init__(self, sealed_shares: _Optional[bytes] = ...) -> None: ...

class IncludedStep(_message.Message):
    __slots__ = ("included", "signature")
    INCLUDED_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    included: bytes
    signature: bytes
    def __init__(self, included: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class UploadStep(_message.Message):
    __slots__ = ("signers", "signatures")
    SIGNERS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    signers: bytes
    signatures: bytes
    def __init__(self, signers: _Optional[bytes] = ..., signatures: _Optional[bytes] = ...) -> None: ...

class SurvivorsStep(_message.Message):
    __slots__ = ("survivors", "signature")
    SURVIVORS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    survivors: bytes
    signature: bytes
    def __init__(self, survivors: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class RevealStep(_message.Message):
    __slots__ = ("signers", "signatures")
    SIGNERS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    signers: bytes
    signatures: bytes
    def __init__(self, signers: _Optional[bytes] = ..., signatures: _Optional[bytes] = ...) -> None: ...

class RoundDone(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
