"""Faults of enrolment and renewal."""

from __future__ import annotations

import os
import time

from aiohttp import web as aiohttp_web
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from lightfr.v1 import enrollment_pb2, error_pb2
from lightfr_harness.server.authority import (
    Authority,
    EarlyRenewalError,
    MemberKeyError,
    SigningRequestError,
    TokenError,
    authority,
)
from lightfr_harness.server.authority.credentials import Admission
from lightfr_harness.server.authority.service import EnrollmentService
from lightfr_harness.server.coordinator import serving, web
from lightfr_harness.server.coordinator.refusals import Refusal
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


@mutant(
    "member-key-looked-up-first",
    "two devices that come at once both find a member key free",
    "enroll.race-for-a-member-key",
)
def member_key_looked_up_first():
    @around(Authority, "enroll")
    def _(original, self, token, signing_request, member_key):
        known = self._registry._run("SELECT 1 FROM member_keys WHERE member_key = ?", member_key)
        time.sleep(GAP_SECONDS)
        try:
            return original(self, token, signing_request, member_key)
        except MemberKeyError:
            if known:
                raise
            return self.issue(signing_request, os.urandom(32))[1]


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


@mutant(
    "extensions-of-the-request",
    "a certificate has the extensions that the signing request asks for",
    "enroll.extensions-are-ignored",
)
def extensions_of_the_request():
    asked = {}

    @around(authority, "requested_key")
    def _(original, signing_request):
        key = original(signing_request)
        asked.clear()
        asked.update({one.oid: one for one in x509.load_der_x509_csr(signing_request).extensions})
        return key

    @around(authority, "make_device_certificate")
    def _(original, issuer, *more):
        made = original(issuer, *more)
        extensions = [asked.get(one.oid, one) for one in made.extensions]
        times = made.not_valid_before_utc, made.not_valid_after_utc
        names = made.issuer, made.subject, made.public_key(), made.serial_number
        return x509.CertificateBuilder(*names, *times, extensions).sign(issuer.key, SHA256())


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


@mutant("known-devices-turned-away", "who has a certificate cannot enrol", "enroll.with-a-certificate")
def known_devices_turned_away():
    @around(EnrollmentService, "enroll")
    async def _(original, self, device, body):
        if device:
            raise Refusal(error_pb2.ERROR_REASON_IDENTITY, "this device is enrolled")
        return await original(self, device, body)


@mutant("renewals-without-end", "a device may renew as often as it likes", "renew.most")
def renewals_without_end():
    authority.MOST_UNENDED = 10**6


@mutant("first-certificate-not-counted", "a device may have two certificates beside its first", "renew.most")
def first_certificate_not_counted():
    authority.MOST_UNENDED += 1


@mutant("renewals-looked-up-first", "requests that come at once all find one certificate", "renew.race")
def renewals_looked_up_first():
    @around(Authority, "renew")
    def _(original, self, device_id, signing_request, member_key):
        known = self._registry.renewals(device_id)
        time.sleep(GAP_SECONDS)
        try:
            return original(self, device_id, signing_request, member_key)
        except EarlyRenewalError:
            if known:
                raise
            return self.issue(signing_request, member_key)[1]


@mutant(
    "member-key-not-compared-at-renewal",
    "the same signing request is the same renewal, whatever the member key",
    "renew.other-member-key",
)
def member_key_not_compared_at_renewal():
    seen = {}

    @around(Authority, "renew")
    def _(original, self, device_id, signing_request, member_key):
        member_key = seen.setdefault((device_id, signing_request), member_key)
        return original(self, device_id, signing_request, member_key)


@mutant(
    "member-keys-of-before-free",
    "a member key is free for others when its device has renewed",
    "renew.member-key-of-before",
)
def member_keys_of_before_free():
    @around(Authority, "renew")
    def _(original, self, device_id, signing_request, member_key):
        issued = original(self, device_id, signing_request, member_key)
        forget = "DELETE FROM member_keys WHERE device_id = ? AND member_key != ?"
        self._registry._run(forget, device_id, member_key)
        return issued


@mutant("own-member-key-refused", "a member key that is known is refused to its own device too", "renew.own-member-key")
def own_member_key_refused():
    @around(authority.Registry, "claim")
    def _(original, self, member_key, device_id):
        is_known = self._run("SELECT 1 FROM member_keys WHERE member_key = ?", member_key)
        return "another" if is_known else original(self, member_key, device_id)


@mutant("renewal-for-anybody", "who renews without a certificate gets a new name", "renew.no-certificate")
def renewal_for_anybody():
    @around(EnrollmentService, "renew_certificate")
    async def _(original, self, device, body):
        request = enrollment_pb2.RenewCertificateRequest.FromString(body)
        if not device and request.signing_request:
            device, _ = self._authority.issue(request.signing_request, request.member_key)
        return await original(self, device, body)


@mutant(
    "renewal-at-both-doors",
    "the coordinator has the authority's keys, and renews certificates too",
    "renew.not-at-the-coordinator",
)
def renewal_at_both_doors():
    services = []

    @around(serving, "authority_beside")
    def _(original, folder, *more):
        services.append(EnrollmentService(Authority.open(folder)))
        return original(folder, *more)

    @around(web.HttpService, "application")
    def _(original, self, *artifacts):
        async def renew(request):
            device = self._identify(request.get_extra_info("peercert"))
            answer = await services[0].renew_certificate(device, await request.read())
            return aiohttp_web.Response(body=answer, content_type="application/proto")

        application = original(self, *artifacts)
        if artifacts:
            application.router.add_post(f"/{EnrollmentService.name}/RenewCertificate", renew)
        return application


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
