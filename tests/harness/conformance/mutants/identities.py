"""Faults of enrolment and renewal."""

from __future__ import annotations

import os
import time

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from lightfr_harness.server.authority import Authority, SigningRequestError, TokenError, authority
from lightfr_harness.server.authority.credentials import Admission
from tests.harness.conformance.mutants import around, mutant
from tests.harness.conformance.mutants.doors import with_context, without_list

# Between two steps that should be one: long enough for a busy machine.
GAP_SECONDS = 1.0


@mutant("token-twice", "a token opens the door to a second device", "enroll.spent-token")
def token_twice():
    @around(Authority, "enroll")
    def _(original, self, token, *request):
        try:
            return original(self, token, *request)
        except TokenError as error:
            if "spent" not in str(error):
                raise
            return self.issue(request[0], os.urandom(32))[1]


@mutant("enrolment-not-repeated", "the same request again gets another certificate", "enroll.same-again")
def enrolment_not_repeated():
    seen = set()

    @around(Authority, "enroll")
    def _(original, self, token, *request):
        if (token, request) in seen:
            return self.issue(request[0], os.urandom(32))[1]
        seen.add((token, request))
        return original(self, token, *request)


@mutant("refusal-spends-token", "a refused signing request spends the token", "enroll.refusal-spends-nothing")
def refusal_spends_token():
    spent = set()

    @around(Authority, "enroll")
    def _(original, self, token, *request):
        if token in spent:
            raise TokenError("spent")
        try:
            return original(self, token, *request)
        except SigningRequestError:
            spent.add(token)
            raise


@mutant("token-looked-up-first", "two devices that come at once both find the token unspent", "enroll.race-for-a-token")
def token_looked_up_first():
    @around(Authority, "enroll")
    def _(original, self, token, *request):
        known = self._registry.find_token(authority._token_sha256(token))
        time.sleep(GAP_SECONDS)
        try:
            return original(self, token, *request)
        except TokenError:
            if known is None or known.request_sha256 is not None:
                raise
            return self.issue(request[0], os.urandom(32))[1]


@mutant("request-before-token", "the signing request is judged before the token", "enroll.unknown-token")
def request_before_token():
    @around(Authority, "enroll")
    def _(original, self, token, *request):
        authority.requested_key(request[0])
        return original(self, token, *request)


@mutant("name-from-request", "a device chooses its name by the subject of its request", "enroll.subject-is-ignored")
def name_from_request():
    @around(Authority, "_add_device")
    def _(original, self, signing_request, member_key, now):
        subject = x509.load_der_x509_csr(signing_request).subject
        wanted = str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
        if not self._registry.has_device(wanted):
            return original(self, signing_request, member_key, now)
        key = authority.requested_key(signing_request)
        signed = authority.make_device_certificate(self._issuer, key, wanted, now)
        return wanted, self._issued(signed.public_bytes(Encoding.DER), member_key)


@mutant("any-curve", "keys of another curve than P-256 get a certificate", "enroll.other-curve")
def any_curve():
    authority.requested_key = lambda signing_request: x509.load_der_x509_csr(signing_request).public_key()


@mutant("member-key-of-another", "two devices may have one member key", "enroll.member-key-of-another")
def member_key_of_another():
    Authority._claim = lambda self, member_key, device_id: None


@mutant("membership-without-label", "memberships are signed without their label", "enroll.membership")
def membership_without_label():
    authority.MEMBERSHIP_CONTEXT = b""


@mutant(
    "member-key-not-compared",
    "the same signing request is the same, whatever the member key",
    "enroll.other-member-key",
)
def member_key_not_compared():
    authority._request_sha256 = lambda signing_request, member_key: authority._sha256(signing_request)


@mutant("renewals-without-end", "a device may renew as often as it likes", "renew.most")
def renewals_without_end():
    authority.MOST_RENEWALS = 10**6


@mutant("revoked-renew", "a revoked device gets a new certificate", "renew.nobody")
def revoked_renew():
    with_context(without_list)

    @around(Admission, "device_of")
    def _(original, self, certificate):
        self._revoked = frozenset()
        return original(self, certificate)

    @around(authority.Registry, "revoked")
    def _(original, self):
        return frozenset()
