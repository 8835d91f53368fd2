"""The answers of the authority's service, with an authority that makes things up."""

import asyncio

import pytest

from lightfr.identities import Issued
from lightfr.v1 import enrollment_pb2
from lightfr_harness.server.authority import (
    EarlyRenewalError,
    MemberKeyError,
    RenewalError,
    SigningRequestError,
    TokenError,
)
from lightfr_harness.server.authority.service import EnrollmentService
from lightfr_harness.server.coordinator.refusals import Refusal

MINE, ANOTHERS = bytes(range(32)), bytes(32)


class FakeAuthority:
    def enroll(self, token, signing_request, member_key):
        if token != "t" * 20:
            raise TokenError("unknown")
        if signing_request == b"bad":
            raise SigningRequestError("is bad")
        return self._issued(b"certificate", member_key)

    def renew(self, device_id, signing_request, member_key):
        if signing_request == b"bad":
            raise SigningRequestError("is bad")
        if device_id == "revoked":
            raise RenewalError
        if device_id == "early":
            raise EarlyRenewalError(4_000_000_000)
        return self._issued(device_id.encode() + signing_request, member_key)

    def _issued(self, certificate, member_key):
        if member_key == ANOTHERS:
            raise MemberKeyError
        return Issued([certificate], b"membership of " + member_key)


SERVICE = EnrollmentService(FakeAuthority())


def refused(call):
    with pytest.raises(Refusal) as refusal:
        asyncio.run(call)
    return refusal.value


@pytest.mark.parametrize(
    ("token", "signing_request", "member_key", "reason"),
    [
        ("u" * 20, b"good", MINE, "token"),
        ("t" * 20, b"bad", MINE, "malformed"),
        ("t" * 15, b"good", MINE, "malformed"),
        ("t" * 129, b"good", MINE, "malformed"),
        ("ü" * 20, b"good", MINE, "malformed"),
        ("t" * 20, b"", MINE, "malformed"),
        ("t" * 20, bytes(4097), MINE, "malformed"),
        ("t" * 20, b"good", b"", "malformed"),
        ("t" * 20, b"good", MINE[:31], "malformed"),
        ("u" * 20, b"good", MINE + b"x", "malformed"),
        ("t" * 20, b"good", ANOTHERS, "malformed"),
    ],
)
def test_enrolment_is_refused_with_its_reason(token, signing_request, member_key, reason):
    request = enrollment_pb2.EnrollRequest(token=token, signing_request=signing_request, member_key=member_key)
    assert refused(SERVICE.enroll("", request.SerializeToString())).name == reason


def test_enrolment_answers_with_the_certificates_and_the_membership():
    request = enrollment_pb2.EnrollRequest(token="t" * 20, signing_request=b"good", member_key=MINE)
    for device in ("", "a"):
        answer = asyncio.run(SERVICE.enroll(device, request.SerializeToString()))
        answered = enrollment_pb2.EnrollResponse.FromString(answer)
        assert (list(answered.certificates), answered.membership) == ([b"certificate"], b"membership of " + MINE)


@pytest.mark.parametrize(
    ("device", "signing_request", "member_key", "reason"),
    [
        ("a", b"bad", MINE, "malformed"),
        ("a", b"", MINE, "malformed"),
        ("a", bytes(4097), MINE, "malformed"),
        ("a", b"good", b"", "malformed"),
        ("a", b"good", MINE + b"x", "malformed"),
        ("a", b"good", ANOTHERS, "malformed"),
        ("revoked", b"good", MINE, "identity"),
        ("early", b"good", MINE, "renewal_early"),
        ("", b"good", MINE, "identity"),
        ("", b"", b"", "identity"),
    ],
)
def test_a_renewal_is_refused_with_its_reason(device, signing_request, member_key, reason):
    request = enrollment_pb2.RenewCertificateRequest(signing_request=signing_request, member_key=member_key)
    refusal = refused(SERVICE.renew_certificate(device, request.SerializeToString()))
    assert refusal.name == reason
    assert refusal.detail.renewable_unix_seconds == (4_000_000_000 if device == "early" else 0)


def test_a_renewal_is_for_the_device_of_the_connection():
    request = enrollment_pb2.RenewCertificateRequest(signing_request=b"good", member_key=MINE)
    answer = asyncio.run(SERVICE.renew_certificate("a", request.SerializeToString()))
    answered = enrollment_pb2.RenewCertificateResponse.FromString(answer)
    assert (list(answered.certificates), answered.membership) == ([b"agood"], b"membership of " + MINE)


@pytest.mark.parametrize("method", ["Enroll", "RenewCertificate"])
def test_the_largest_legal_request_is_within_its_limit(method):
    request = enrollment_pb2.EnrollRequest(token="t" * 128, signing_request=bytes(4096), member_key=MINE)
    assert len(request.SerializeToString()) <= SERVICE.limit_bytes(method) == 4352
