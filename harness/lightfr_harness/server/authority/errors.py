"""What can go wrong with the authority, split by what the caller does next. No message holds a token or a key."""

from __future__ import annotations

from pathlib import Path

from lightfr.errors import InvalidInputError, LightFRError
from lightfr_harness.server.coordinator.database import StorageError


class AuthorityError(LightFRError):
    """Root of every error this room raises."""


class AuthorityFolderError(AuthorityError, OSError):
    """A folder that holds no whole authority, or that cannot take a new one."""

    def __init__(self, folder: Path, reason: str, advice: str) -> None:
        self.folder, self.reason, self.advice = folder, reason, advice
        super().__init__(f"{folder}: {reason}. {advice}")


class RegistryError(AuthorityError, StorageError):
    """The authority's tables cannot be read or written now: devices are told to try again."""


class TokenError(AuthorityError):
    """The token is unknown, expired, or spent by another request: a new invitation is needed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The token is {reason}. Ask for a new invitation.")


class SigningRequestError(AuthorityError, InvalidInputError):
    """Not a PKCS #10 request with a P-256 key and a valid signature: a fault of the device."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The signing request {reason}. Send PKCS #10 in DER with a P-256 key, signed by that key.")


class MemberKeyError(AuthorityError, InvalidInputError):
    """Not an Ed25519 key of 32 bytes, or one that another device has: a fault of the device."""

    def __init__(self) -> None:
        super().__init__("The member key must be 32 bytes that no other device has. Make a new key.")


class RenewalError(AuthorityError):
    """A device that is unknown or revoked gets no new certificate: it must enrol again."""

    def __init__(self) -> None:
        super().__init__("The device is unknown or revoked. Enrol it again.")


class EarlyRenewalError(AuthorityError):
    """A device has two certificates that have not ended: it goes on with the one that it uses."""

    def __init__(self, renewable_unix_seconds: int) -> None:
        self.renewable_unix_seconds = renewable_unix_seconds
        super().__init__(
            "Two certificates of the device have not ended. "
            f"Renew when the first of them has ended, at {renewable_unix_seconds} in Unix seconds."
        )
