"""Faults at the doors: TLS, enrolment, calls and their errors, the manifest."""

from __future__ import annotations

import hashlib
import json
import ssl
import time

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID
from google.protobuf.unknown_fields import UnknownFieldSet

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2
from lightfr_harness.server.authority import Authority, SigningRequestError, TokenError, authority
from lightfr_harness.server.coordinator import refusals, service, web
from lightfr_harness.server.coordinator.publishing import Publisher
from lightfr_harness.server.coordinator.refusals import Refusal
from tests.harness.conformance.mutants import around, mutant

# Between two steps that should be one: long enough for a busy machine.
GAP_SECONDS = 1.0


@mutant("tls-1-2", "TLS 1.2 is accepted too", "tls.version-1-2")
def tls_1_2():
    @around(Authority, "enrollment_context")
    def _(original, self):
        context = original(self)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context


@mutant(
    "certificate-optional",
    "the client certificate is optional, and missed only when a call comes",
    "tls.no-certificate",
)
def certificate_optional():
    @around(Authority, "_mutual_context")
    def _(original, self):
        context = original(self)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


@mutant("revoked-accepted", "the revocation list is not read", "tls.revoked")
def revoked_accepted():
    @around(Authority, "_mutual_context")
    def _(original, self):
        context = original(self)
        context.verify_flags &= ~ssl.VERIFY_CRL_CHECK_LEAF
        return context

    @around(Authority, "device_of")
    def _(original, self, certificate):
        self._revoked = frozenset()
        return original(self, certificate)


@mutant("expired-accepted", "dates of client certificates are not looked at", "tls.expired")
def expired_accepted():
    @around(Authority, "_mutual_context")
    def _(original, self):
        context = original(self)
        # OpenSSL's X509_V_FLAG_NO_CHECK_TIME.
        context.verify_flags = ssl.VerifyFlags(context.verify_flags | 0x200000)
        return context


@mutant("any-common-name", "whoever has a certificate of the authority is a device", "tls.unnamed")
def any_common_name():
    @around(Authority, "device_of")
    def _(original, self, certificate):
        device = original(self, certificate)
        return dict(part[0] for part in certificate["subject"])["commonName"] if device is None else device


@mutant("no-ticket", "session tickets are turned off", "tls.ticket")
def no_ticket():
    @around(Authority, "enrollment_context")
    def _(original, self):
        context = original(self)
        context.num_tickets = 0
        return context


@mutant("token-twice", "a token opens the door to a second device", "enroll.spent-token")
def token_twice():
    @around(Authority, "enroll")
    def _(original, self, token, signing_request):
        try:
            return original(self, token, signing_request)
        except TokenError as error:
            if "spent" not in str(error):
                raise
            return [self.issue(signing_request)[1]]


@mutant("enrolment-not-repeated", "the same request again gets another certificate", "enroll.same-again")
def enrolment_not_repeated():
    seen = set()

    @around(Authority, "enroll")
    def _(original, self, token, signing_request):
        if (token, signing_request) in seen:
            return [self.issue(signing_request)[1]]
        seen.add((token, signing_request))
        return original(self, token, signing_request)


@mutant("refusal-spends-token", "a refused signing request spends the token", "enroll.refusal-spends-nothing")
def refusal_spends_token():
    spent = set()

    @around(Authority, "enroll")
    def _(original, self, token, signing_request):
        if token in spent:
            raise TokenError("spent")
        try:
            return original(self, token, signing_request)
        except SigningRequestError:
            spent.add(token)
            raise


@mutant("token-looked-up-first", "two devices that come at once both find the token unspent", "enroll.race-for-a-token")
def token_looked_up_first():
    @around(Authority, "enroll")
    def _(original, self, token, signing_request):
        known = self._registry.find_token(authority._token_sha256(token))
        time.sleep(GAP_SECONDS)
        try:
            return original(self, token, signing_request)
        except TokenError:
            if known is None or known.request_sha256 is not None:
                raise
            return [self.issue(signing_request)[1]]


@mutant("request-before-token", "the signing request is judged before the token", "enroll.unknown-token")
def request_before_token():
    @around(Authority, "enroll")
    def _(original, self, token, signing_request):
        authority.requested_key(signing_request)
        return original(self, token, signing_request)


@mutant("name-from-request", "a device chooses its name by the subject of its request", "enroll.subject-is-ignored")
def name_from_request():
    @around(Authority, "_add_device")
    def _(original, self, signing_request, now):
        subject = x509.load_der_x509_csr(signing_request).subject
        wanted = str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
        if not self._registry.has_device(wanted):
            return original(self, signing_request, now)
        key = authority.requested_key(signing_request)
        signed = authority.make_device_certificate(self._issuer, key, wanted, now)
        return wanted, signed.public_bytes(Encoding.DER)


@mutant("any-curve", "keys of another curve than P-256 get a certificate", "enroll.other-curve")
def any_curve():
    authority.requested_key = lambda signing_request: x509.load_der_x509_csr(signing_request).public_key()


@mutant(
    "unknown-fields-refused",
    "a message with a field that the server does not know is refused",
    "connect.unknown-fields",
)
def unknown_fields_refused():
    @around(service, "parse")
    def _(original, kind, body):
        message = original(kind, body)
        if len(UnknownFieldSet(message)):
            raise service.malformed("unknown field")
        return message


@mutant("no-detail", "errors have a code and no detail", "connect.error-shape")
def no_detail():
    Refusal.body = lambda self: refusals.connect_error(self.code, str(self))


@mutant("padded-detail", "the detail of an error is in base64 with padding", "connect.error-shape")
def padded_detail():
    @around(Refusal, "body")
    def _(original, self):
        error = json.loads(original(self))
        for detail in error["details"]:
            detail["value"] += "=" * (-len(detail["value"]) % 4)
        return json.dumps(error).encode()


@mutant("status-413", "too large is HTTP 413, not what Connect has for its code", "connect.too-large")
def status_413():
    refusals.STATUS_OF_CODE["resource_exhausted"] = 413


@mutant("conflict-as-precondition", "a conflict has the Connect code of a precondition", "upload.other-bytes")
def conflict_as_precondition():
    refusals.CODE_OF_REASON[error_pb2.ERROR_REASON_UPLOAD_CONFLICT] = "failed_precondition"


@mutant("no-limit", "requests above the limit are read and judged like others", "connect.too-large")
def no_limit():
    @around(web, "_read")
    async def _(original, request, limit_bytes, limits):
        return await original(request, 2**40, limits)


@mutant("limit-after-reading", "the limit is looked at when the whole body has come", "connect.announced-too-large")
def limit_after_reading():
    @around(web, "_read")
    async def _(original, request, limit_bytes, limits):
        body = await original(request, 2**60, limits)
        web._require_size(len(body), limit_bytes)
        return body


@mutant(
    "first-wire-version", "only the first wire version that a device lists is looked at", "version.highest-in-common"
)
def first_wire_version():
    @around(service, "_require_capabilities")
    def _(original, capabilities):
        original(capabilities)
        if capabilities.wire_versions[0] != service.WIRE_VERSION:
            raise Refusal(error_pb2.ERROR_REASON_WIRE_VERSION, "no wire version in common", wire_versions=[1])


@mutant("manifest-without-label", "the manifest is signed without its label", "manifest.signature")
def manifest_without_label():
    authority.MANIFEST_CONTEXT = b""


@mutant("key-id-of-der", "key_id is of the key's DER, not of its 32 bytes", "manifest.signature")
def key_id_of_der():
    @around(Authority, "sign")
    def _(original, self, manifest):
        signed = original(self, manifest)
        der = self.manifest_key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        signed.key_id = hashlib.sha256(der).digest()[:8]
        return signed


@mutant("known-version-ignored", "the manifest is sent to who holds it already", "manifest.known")
def known_version_ignored():
    _with_known_version(lambda known, newest: 0)


@mutant(
    "known-version-newer", "a device that holds a newer version than the server is told nothing", "manifest.known-newer"
)
def known_version_newer():
    _with_known_version(min)


def _with_known_version(changed):
    @around(service.CoordinatorService, "get_manifest")
    async def _(original, self, device, body):
        request = pb.GetManifestRequest.FromString(body)
        newest = self._coordinator.version.manifest.model_version
        request.known_model_version = changed(request.known_model_version, newest)
        return await original(self, device, request.SerializeToString())


@mutant("created-in-milliseconds", "the manifest says in milliseconds when it was made", "manifest.created")
def created_in_milliseconds():
    @around(Publisher, "publish")
    def _(original, self, server, version, created, *more):
        return original(self, server, version, 1000 * created, *more)
