"""Who may speak with the coordinator: a small certificate authority, invitations, revocation, and the manifest key."""

from .authority import Authority
from .errors import (
    AuthorityError,
    AuthorityFolderError,
    HostError,
    RenewalError,
    SigningRequestError,
    TokenError,
    UnknownDeviceError,
)

__all__ = [
    "Authority",
    "AuthorityError",
    "AuthorityFolderError",
    "HostError",
    "RenewalError",
    "SigningRequestError",
    "TokenError",
    "UnknownDeviceError",
]
