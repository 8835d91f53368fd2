"""Who may speak with the coordinator: a small certificate authority, invitations, revocation, and the manifest key."""

from .authority import Authority
from .errors import (
    AuthorityError,
    AuthorityFolderError,
    RenewalError,
    SigningRequestError,
    TokenError,
)

__all__ = [
    "Authority",
    "AuthorityError",
    "AuthorityFolderError",
    "RenewalError",
    "SigningRequestError",
    "TokenError",
]
