"""Faults at the doors: TLS, calls and their errors, the manifest."""

from __future__ import annotations

import hashlib
import json
import ssl

from aiohttp import web as aiohttp_web
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from google.protobuf.unknown_fields import UnknownFieldSet

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2
from lightfr_harness.server.authority import credentials
from lightfr_harness.server.authority.credentials import Admission
from lightfr_harness.server.coordinator import refusals, service, web
from lightfr_harness.server.coordinator.publishing import Publisher
from lightfr_harness.server.coordinator.refusals import Refusal
from tests.harness.conformance.mutants import around, mutant


@mutant("tls-1-2", "TLS 1.2 is accepted too", "tls.version-1-2")
def tls_1_2():
    with_context(lambda context: setattr(context, "minimum_version", ssl.TLSVersion.TLSv1_2))


@mutant(
    "certificate-optional",
    "the client certificate is optional, and missed only when a call comes",
    "tls.no-certificate",
)
def certificate_optional():
    with_context(lambda context: setattr(context, "verify_mode", ssl.CERT_OPTIONAL))


@mutant("revoked-accepted", "the revocation list is not read", "tls.revoked")
def revoked_accepted():
    with_context(without_list)

    @around(Admission, "device_of")
    def _(original, self, certificate):
        self._revoked = frozenset()
        return original(self, certificate)


@mutant(
    "revoked-by-serial-number",
    "a device is revoked by the serial number of its first certificate, and comes in with the next one",
    "tls.revoked-renewed",
)
def revoked_by_serial_number():
    with_context(without_list)

    @around(Admission, "device_of")
    def _(original, self, certificate):
        self._revoked, revoked = frozenset(), self._read_revocation_list()
        device = original(self, certificate)
        is_first = device is not None and int(certificate["serialNumber"], 16) == int(device, 16)
        return None if is_first and int(device, 16) in revoked else device


@mutant("expired-accepted", "dates of client certificates are not looked at", "tls.expired")
def expired_accepted():
    # OpenSSL's X509_V_FLAG_NO_CHECK_TIME.
    with_context(lambda context: setattr(context, "verify_flags", ssl.VerifyFlags(context.verify_flags | 0x200000)))


def without_list(context):
    context.verify_flags &= ~ssl.VERIFY_CRL_CHECK_LEAF


def with_context(change):
    @around(Admission, "_new_context")
    def _(original, self):
        context = original(self)
        change(context)
        return context


@mutant("any-common-name", "whoever has a certificate of the authority is a device", "tls.unnamed")
def any_common_name():
    @around(Admission, "device_of")
    def _(original, self, certificate):
        device = original(self, certificate)
        if device is None and certificate:
            return dict(part[0] for part in certificate["subject"])["commonName"]
        return device


@mutant("downloads-for-anybody", "only calls ask which device it is", "artifacts.unnamed")
def downloads_for_anybody():
    original = web.HttpService._limited

    @aiohttp_web.middleware
    async def limited(self, request, handler):
        identify = self._identify
        if request.path.startswith("/artifacts/"):
            self._identify = lambda certificate: identify(certificate) or "somebody"
        try:
            return await original(self, request, handler)
        finally:
            self._identify = identify

    web.HttpService._limited = limited


@mutant("no-ticket", "session tickets are turned off", "tls.ticket")
def no_ticket():
    with_context(lambda context: setattr(context, "num_tickets", 0))


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


@mutant("last-piece-counts", "of a message that comes in pieces the last one counts", "connect.in-two-pieces")
def last_piece_counts():
    _with_capabilities(lambda pieces: pieces[-1])


@mutant("first-piece-counts", "of a message that comes in pieces the first one counts", "connect.in-two-pieces")
def first_piece_counts():
    _with_capabilities(lambda pieces: pieces[0])


def _with_capabilities(chosen):
    @around(service, "parse")
    def _(original, kind, body):
        message = original(kind, body)
        if kind is pb.CheckInRequest and body[:1] == b"\x0a" and body[2 + body[1] :][:1] == b"\x0a":
            pieces = [body[2 : 2 + body[1]], body[4 + body[1] :][: body[3 + body[1]]]]
            message.capabilities.ParseFromString(chosen(pieces))
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
    credentials.MANIFEST_CONTEXT = b""


@mutant("key-id-of-der", "key_id is of the key's DER, not of its 32 bytes", "manifest.signature")
def key_id_of_der():
    @around(credentials.Credentials, "sign")
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
