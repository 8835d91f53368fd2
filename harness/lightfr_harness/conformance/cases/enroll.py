"""How devices get their identity."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lightfr.errors import PrivacyError
from lightfr.membership import MEMBER_KEY_BYTES, MEMBERSHIP_BYTES, MemberKey, require_membership
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import enrollment_pb2
from lightfr_harness.conformance.client import SERVICE
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_between, expect_equal
from lightfr_harness.conformance.kit import make_signing_request
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import World
from lightfr_harness.server.authority.certificates import new_key

PLACE = "docs/protocol.md#enrolment"
LIMIT_BYTES = 4352
RACERS = 4
_DEVICE_ID = re.compile("[0-9a-f]{32}")


def _request(token: str, signing_request: bytes | None = None) -> enrollment_pb2.EnrollRequest:
    made = make_signing_request(new_key()) if signing_request is None else signing_request
    return enrollment_pb2.EnrollRequest(token=token, signing_request=made, member_key=MemberKey.new().public)


def _certificates(world: World, request: enrollment_pb2.EnrollRequest) -> list[bytes]:
    return list(world.enroll(request).message(enrollment_pb2.EnrollResponse).certificates)


def _certificate(world: World, signing_request: bytes | None = None) -> x509.Certificate:
    """The first certificate for a new token."""
    chain = _certificates(world, _request(world.token(), signing_request))
    expect_between("number of certificates", len(chain), 1, 4)
    try:
        return x509.load_der_x509_certificate(chain[0])
    except ValueError as error:
        raise Unexpected("a certificate in DER", f"{len(chain[0])} bytes that are none") from error


@case("enroll.key", "The certificate must be for the key that never leaves the device.", PLACE)
def certificate_key(world: World) -> None:
    key = new_key()
    certificate = _certificate(world, make_signing_request(key))
    expect(certificate.public_key() == key.public_key(), "a certificate for the key of the request", "another key")


@case("enroll.name", "The common name is what the server knows the device by in every later call.", PLACE)
def certificate_name(world: World) -> None:
    certificate = _certificate(world)
    names = [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    expect(len(names) == 1 and _DEVICE_ID.fullmatch(names[0]), "one common name of 32 hexadecimal digits", names)
    expect_equal("serial number", certificate.serial_number, int(names[0], 16))


@case("enroll.use", "A device's certificate is good for clients and for nothing else.", PLACE)
def certificate_use(world: World) -> None:
    require_use(_certificate(world))


@case(
    "enroll.extensions-are-ignored", "A device that could choose what its certificate is for could be a server.", PLACE
)
def extensions_are_ignored(world: World) -> None:
    require_use(_certificate(world, greedy_request()))


def greedy_request() -> bytes:
    """A signing request that asks to be an authority and a server."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return builder.sign(new_key(), SHA256()).public_bytes(Encoding.DER)


def require_use(certificate: x509.Certificate) -> None:
    """It is for a client, and for nothing else."""
    expect_equal("version of the certificate", certificate.version, x509.Version.v3)
    try:
        extensions = certificate.extensions
        authority = extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
        extended = list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound as error:
        raise Unexpected("basic constraints, key usage and extended key usage", str(error)) from error
    expect_equal("authority in the basic constraints", authority, False)
    expect(usage.digital_signature and not usage.key_cert_sign, "key usage digital signature", usage)
    expect_equal("extended key usage", extended, [ExtendedKeyUsageOID.CLIENT_AUTH])


@case("enroll.chain", "A certificate that the authority did not sign names nobody.", PLACE)
def certificate_chain(world: World) -> None:
    certificate = _certificate(world)
    authority = x509.load_pem_x509_certificate((world.kit.authority / "authority.pem").read_bytes())
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError) as error:
        raise Unexpected("a certificate signed by the kit's authority", f"{type(error).__name__}") from error
    expect(isinstance(certificate.signature_hash_algorithm, SHA256), "ECDSA with SHA-256", "another signature")
    now = datetime.now(UTC)
    is_valid = certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc
    expect(is_valid, "a certificate that is valid now", f"one until {certificate.not_valid_after_utc}")


@case("enroll.new-names", "Two devices under one name would share places and receipts.", PLACE)
def new_names(world: World) -> None:
    key = new_key()
    first, second = (_certificate(world, make_signing_request(key)) for _ in range(2))
    expect(first.subject != second.subject, "another name for another token", "the same one")


@case("enroll.subject-is-ignored", "A device that could choose its name could take another's.", PLACE)
def subject_is_ignored(world: World) -> None:
    taken = _certificate(world).subject
    builder = x509.CertificateSigningRequestBuilder().subject_name(taken)
    request = builder.sign(new_key(), SHA256())
    certificate = _certificate(world, request.public_bytes(Encoding.DER))
    expect(certificate.subject != taken, "a name that the server chose", "the one that the request asked for")


@case("enroll.same-again", "A device whose answer was lost asks again and must get the same certificate.", PLACE)
def same_again(world: World) -> None:
    request = _request(world.token())
    expect_equal("certificates for the same request again", *(_certificates(world, request) for _ in range(2)))


@case("enroll.spent-token", "An invitation is for one device.", PLACE)
def spent_token(world: World) -> None:
    token = world.token()
    first = _request(token)
    certificates = _certificates(world, first)
    for signing_request in (None, b"nothing"):
        world.enroll(_request(token, signing_request)).refusal("TOKEN")
    expect_equal("certificates of the first request after another one", _certificates(world, first), certificates)


@case("enroll.race-for-a-token", "Of devices that come with one invitation at once, one gets in.", PLACE)
def race_for_a_token(world: World) -> None:
    token = world.token()
    answers = world.at_once("Enroll", [_request(token) for _ in range(RACERS)])
    expect_equal("devices that got a certificate", sum(answer.status == 200 for answer in answers), 1)
    for answer in answers:
        if answer.status != 200:
            answer.refusal("TOKEN")


@case("enroll.race-for-a-member-key", "Of devices that come with one member key at once, one gets in.", PLACE)
def race_for_a_member_key(world: World) -> None:
    requests = [_request(world.token()) for _ in range(RACERS)]
    for request in requests:
        request.member_key = requests[0].member_key
    answers = world.at_once("Enroll", requests)
    expect_equal("devices that got a certificate", sum(answer.status == 200 for answer in answers), 1)
    for answer in answers:
        if answer.status != 200:
            answer.refusal("MALFORMED")


@case("enroll.same-at-once", "A device may ask again while its first try is still being answered.", PLACE)
def same_at_once(world: World) -> None:
    answers = world.at_once("Enroll", [_request(world.token())] * RACERS)
    messages = [answer.message(enrollment_pb2.EnrollResponse) for answer in answers]
    expect_equal("answers to the same request at once", messages, messages[:1] * RACERS)


@case("enroll.with-a-certificate", "Who has an identity may be invited again, and is then another device.", PLACE)
def with_a_certificate(world: World) -> None:
    device = world.device(0)
    answer = world.enroll(_request(world.token()), device.identity).message(enrollment_pb2.EnrollResponse)
    enrolled = x509.load_der_x509_certificate(answer.certificates[0])
    before = x509.load_pem_x509_certificates(device.identity.read_bytes())[0]
    expect(enrolled.subject != before.subject, "a new name for a new invitation", "that of the connection")


@case("enroll.unknown-token", "An invitation that nobody gave must open nothing.", PLACE)
def unknown_token(world: World) -> None:
    for signing_request in (None, b"nothing"):
        world.enroll(_request("never-given-out-to-anybody", signing_request)).refusal("TOKEN")


@case("enroll.expired-token", "An old invitation that turns up somewhere must open nothing.", PLACE)
def expired_token(world: World) -> None:
    for signing_request in (None, b"nothing"):
        world.enroll(_request(world.kit.tokens[-1], signing_request)).refusal("TOKEN")


@case("enroll.token-out-of-range", "A token of other than 16 to 128 ASCII characters is a fault of the device.", PLACE)
def token_out_of_range(world: World) -> None:
    for token in ("", "x" * 15, "x" * 129, "é" * 20):
        world.enroll(_request(token)).refusal("MALFORMED")


@case("enroll.signing-request-size", "No or too large a signing request is a fault of the device.", PLACE)
def signing_request_size(world: World) -> None:
    token = world.token()
    for size in (0, 4097):
        world.enroll(_request(token, bytes(size))).refusal("MALFORMED")


@case("enroll.garbage-request", "Bytes that are no signing request must end in a typed refusal.", PLACE)
def garbage_request(world: World) -> None:
    good = make_signing_request(new_key())
    for bad in (b"\x30\x03abc", good[:-1], good + b"\0"):
        world.enroll(_request(world.token(), bad)).refusal("MALFORMED")


@case("enroll.unsigned-request", "Only who holds a key may have a certificate for it.", PLACE)
def unsigned_request(world: World) -> None:
    good = bytearray(make_signing_request(new_key()))
    # The last byte belongs to the signature's second number.
    good[-1] ^= 1
    world.enroll(_request(world.token(), bytes(good))).refusal("MALFORMED")


@case("enroll.rsa-key", "All devices have P-256 keys; another kind is a fault of the device.", PLACE)
def rsa_key(world: World) -> None:
    key = rsa.generate_private_key(65537, 2048)
    world.enroll(_request(world.token(), make_signing_request(key))).refusal("MALFORMED")


@case("enroll.other-curve", "All devices have P-256 keys; another curve is a fault of the device.", PLACE)
def other_curve(world: World) -> None:
    key = ec.generate_private_key(ec.SECP384R1())
    world.enroll(_request(world.token(), make_signing_request(key))).refusal("MALFORMED")


@case("enroll.refusal-spends-nothing", "After a refused request the invitation must still be good.", PLACE)
def refusal_spends_nothing(world: World) -> None:
    token = world.token()
    world.enroll(_request(token, b"nothing")).refusal("MALFORMED")
    expect(_certificates(world, _request(token)), "certificates for a token that was not spent", "none")


@case("enroll.membership", "Other devices share masks only with whom the authority vouches for.", PLACE)
def membership(world: World) -> None:
    request = _request(world.token())
    answer = world.enroll(request).message(enrollment_pb2.EnrollResponse)
    require_vouched(world, answer.membership, request.member_key, answer.certificates[0])


def require_vouched(world: World, membership: bytes, member_key: bytes, certificate: bytes) -> None:
    """The authority vouches for this key, as long as the certificate lasts."""
    expect_equal("bytes of the membership", len(membership), MEMBERSHIP_BYTES)
    ends = int(x509.load_der_x509_certificate(certificate).not_valid_after_utc.timestamp())
    expect_equal("end of the membership", int.from_bytes(membership[MEMBER_KEY_BYTES:][:8], "little"), ends)
    try:
        vouched = require_membership(membership, world.trusted_keys[1], datetime.now(UTC).timestamp())
    except PrivacyError as error:
        raise Unexpected("a membership that the authority's membership key signed", str(error)) from error
    expect_equal("member key of the membership", vouched, member_key)


@case("enroll.member-key-length", "A member key of other than 32 bytes is a fault of the device.", PLACE)
def member_key_length(world: World) -> None:
    request = _request(world.token())
    for size in (0, 31, 33):
        request.member_key = bytes(size)
        world.enroll(request).refusal("MALFORMED")


@case("enroll.member-key-of-another", "Two devices with one member key could not be told apart in a roster.", PLACE)
def member_key_of_another(world: World) -> None:
    request = _request(world.token())
    request.member_key = world.device(0).member.key.public
    world.enroll(request).refusal("MALFORMED")
    request.member_key = MemberKey.new().public
    expect(_certificates(world, request), "certificates for a token that was not spent", "none")


@case("enroll.other-member-key", "The same signing request with another member key is another request.", PLACE)
def other_member_key(world: World) -> None:
    request = _request(world.token())
    _certificates(world, request)
    request.member_key = MemberKey.new().public
    world.enroll(request).refusal("TOKEN")


@case("enroll.too-large", "Anybody can reach this door: it must not read what is too large.", "docs/protocol.md#limits")
def too_large(world: World) -> None:
    detail = world.enroll(bytes(LIMIT_BYTES + 1)).refusal("TOO_LARGE")
    expect_equal("limit_bytes of Enroll", detail.limit_bytes, LIMIT_BYTES)


@case("enroll.garbage-message", "Bytes that do not parse must end in a typed refusal.", "docs/protocol.md#errors")
def garbage_message(world: World) -> None:
    world.enroll(b"\xff" * 40).refusal("MALFORMED")


@case("enroll.nothing-else-behind-the-door", "Without a certificate there is enrolment and nothing else.", PLACE)
def nothing_else(world: World) -> None:
    client = world.client(None, enrollment=True)
    request = pb.GetManifestRequest(capabilities=world.capabilities)
    answer = client.post(SERVICE + "GetManifest", request.SerializeToString())
    expect(answer.status in (403, 404, 405), "404 for CoordinatorService at the address for enrolment", answer)
