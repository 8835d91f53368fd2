"""Who may speak with the coordinator: a small certificate authority, invitations, memberships and revocation.

`authority` holds the keys that sign devices, and `serving` puts it behind an address; `credentials` is what a
coordinator has of it.
"""

from .authority import Authority
from .credentials import Admission, Credentials
from .errors import (
    AuthorityError,
    AuthorityFolderError,
    EarlyRenewalError,
    MemberKeyError,
    RenewalError,
    SigningRequestError,
    TokenError,
)

__all__ = [
    "Admission",
    "Authority",
    "AuthorityError",
    "AuthorityFolderError",
    "Credentials",
    "EarlyRenewalError",
    "MemberKeyError",
    "RenewalError",
    "SigningRequestError",
    "TokenError",
]
