from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class EnrollRequest(_message.Message):
    __slots__ = ("token", "signing_request", "member_key")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    SIGNING_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MEMBER_KEY_FIELD_NUMBER: _ClassVar[int]
    token: str
    signing_request: bytes
    member_key: bytes
    def __init__(self, token: _Optional[str] = ..., signing_request: _Optional[bytes] = ..., member_key: _Optional[bytes] = ...) -> None: ...

class EnrollResponse(_message.Message):
    __slots__ = ("certificates", "membership")
    CERTIFICATES_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    certificates: _containers.RepeatedScalarFieldContainer[bytes]
    membership: bytes
    def __init__(self, certificates: _Optional[_Iterable[bytes]] = ..., membership: _Optional[bytes] = ...) -> None: ...

class RenewCertificateRequest(_message.Message):
    __slots__ = ("signing_request", "member_key")
    SIGNING_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MEMBER_KEY_FIELD_NUMBER: _ClassVar[int]
    signing_request: bytes
    member_key: bytes
    def __init__(self, signing_request: _Optional[bytes] = ..., member_key: _Optional[bytes] = ...) -> None: ...

class RenewCertificateResponse(_message.Message):
    __slots__ = ("certificates", "membership")
    CERTIFICATES_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    certificates: _containers.RepeatedScalarFieldContainer[bytes]
    membership: bytes
    def __init__(self, certificates: _Optional[_Iterable[bytes]] = ..., membership: _Optional[bytes] = ...) -> None: ...
