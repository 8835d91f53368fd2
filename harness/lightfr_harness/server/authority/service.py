"""The procedures of EnrollmentService: bytes in, bytes out, or a Refusal. No HTTP, so that a fuzzer can call it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from lightfr.identities import Issued
from lightfr.membership import MEMBER_KEY_BYTES
from lightfr.v1 import enrollment_pb2, error_pb2
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.requests import Method, malformed, parse, require_length

from .errors import EarlyRenewalError, MemberKeyError, RenewalError, SigningRequestError, TokenError

ENROLL_LIMIT_BYTES = 4096 + 128 + 128


class Issuer(Protocol):
    """What the service needs of the authority."""

    def enroll(self, token: str, signing_request: bytes, member_key: bytes) -> Issued:
        """The certificates and the membership for a token."""

    def renew(self, device_id: str, signing_request: bytes, member_key: bytes) -> Issued:
        """The certificates and the membership for a device that has some already."""


class EnrollmentService:
    """For devices that have no identity yet, where `device` is empty, and for those that renew theirs."""

    name = "lightfr.v1.EnrollmentService"

    def __init__(self, authority: Issuer) -> None:
        self._authority = authority
        self.methods: dict[str, Method] = {"Enroll": self.enroll, "RenewCertificate": self.renew_certificate}

    def limit_bytes(self, method: str) -> int:
        """The largest request that is read."""
        return ENROLL_LIMIT_BYTES

    async def enroll(self, device: str, body: bytes) -> bytes:
        """Spend a token; who the connection belongs to does not matter."""
        request = parse(enrollment_pb2.EnrollRequest, body)
        if not (16 <= len(request.token) <= 128 and request.token.isascii()):
            raise malformed("the token must be 16 to 128 ASCII characters")
        try:
            issued = await _issued(self._authority.enroll, request.token, request)
        except TokenError as error:
            raise Refusal(error_pb2.ERROR_REASON_TOKEN, "the token is unknown, expired or spent") from error
        return enrollment_pb2.EnrollResponse(
            certificates=issued.certificates, membership=issued.membership
        ).SerializeToString()

    async def renew_certificate(self, device: str, body: bytes) -> bytes:
        """Renew the certificate that the connection was opened with."""
        if not device:
            reason = "renewal needs a connection with this device's certificate, which has not ended and is not revoked"
            raise Refusal(error_pb2.ERROR_REASON_IDENTITY, reason)
        request = parse(enrollment_pb2.RenewCertificateRequest, body)
        try:
            issued = await _issued(self._authority.renew, device, request)
        except RenewalError as error:
            reason = "this device is revoked or unknown: enrol again"
            raise Refusal(error_pb2.ERROR_REASON_IDENTITY, reason) from error
        except EarlyRenewalError as error:
            when = error.renewable_unix_seconds
            reason = f"two certificates of this device have not ended: renew again at {when} in Unix seconds"
            raise Refusal(error_pb2.ERROR_REASON_RENEWAL_EARLY, reason, renewable_unix_seconds=when) from error
        return enrollment_pb2.RenewCertificateResponse(
            certificates=issued.certificates, membership=issued.membership
        ).SerializeToString()


async def _issued(
    issue: Callable[[str, bytes, bytes], Issued],
    for_whom: str,
    request: enrollment_pb2.EnrollRequest | enrollment_pb2.RenewCertificateRequest,
) -> Issued:
    """What the authority signs for a request; a refusal unless it can be signed."""
    if not 1 <= len(request.signing_request) <= 4096:
        raise malformed(f"signing_request must be 1 to 4096 bytes, not {len(request.signing_request)}")
    require_length("member_key", request.member_key, MEMBER_KEY_BYTES)
    try:
        return await asyncio.to_thread(issue, for_whom, request.signing_request, request.member_key)
    except SigningRequestError as error:
        raise malformed("signing_request must be a PKCS #10 request for a P-256 key, signed by that key") from error
    except MemberKeyError as error:
        raise malformed("another device has this member_key: make a new one") from error
