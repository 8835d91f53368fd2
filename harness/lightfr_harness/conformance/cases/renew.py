"""How devices keep their identity when a certificate comes to its end."""

from __future__ import annotations

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from lightfr.membership import MemberKey
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import enrollment_pb2
from lightfr_harness.conformance.cases.enroll import greedy_request, require_use, require_vouched
from lightfr_harness.conformance.client import ENROLLMENT, NoAnswer
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_between, expect_equal
from lightfr_harness.conformance.kit import make_signing_request
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import Device, World
from lightfr_harness.server.authority.certificates import new_key

PLACE = "docs/protocol.md#renewal"
LIMIT_BYTES = 4352
RACERS = 4


def _request(signing_request: bytes | None = None) -> enrollment_pb2.RenewCertificateRequest:
    made = make_signing_request(new_key()) if signing_request is None else signing_request
    return enrollment_pb2.RenewCertificateRequest(signing_request=made, member_key=MemberKey.new().public)


def _issued(
    world: World, device: Device, request: enrollment_pb2.RenewCertificateRequest
) -> enrollment_pb2.RenewCertificateResponse:
    answer = world.renew(device, request).message(enrollment_pb2.RenewCertificateResponse)
    expect_between("number of certificates", len(answer.certificates), 1, 4)
    return answer


def _renewed(world: World, device: Device, signing_request: bytes | None = None) -> x509.Certificate:
    """The new certificate of a device. A device can renew once: the certificate that it enrolled with lasts."""
    der = _issued(world, device, _request(signing_request)).certificates[0]
    try:
        return x509.load_der_x509_certificate(der)
    except ValueError as error:
        raise Unexpected("a certificate in DER", f"{len(der)} bytes that are none") from error


def _first(device: Device) -> x509.Certificate:
    """The certificate that a device enrolled with."""
    return x509.load_pem_x509_certificates(device.identity.read_bytes())[0]


@case("renew.key", "The certificate must be for the new key, which never leaves the device.", PLACE)
def certificate_key(world: World) -> None:
    key = new_key()
    certificate = _renewed(world, world.newcomer(), make_signing_request(key))
    expect(certificate.public_key() == key.public_key(), "a certificate for the key of the request", "another key")


@case("renew.name", "A device that renews stays who it is, and can be revoked by the one name it has.", PLACE)
def certificate_name(world: World) -> None:
    device = world.newcomer()
    expect_equal("subject of the new certificate", _renewed(world, device).subject, _first(device).subject)


@case("renew.serial-number", "No two certificates of an authority may share a serial number.", PLACE)
def serial_number(world: World) -> None:
    device = world.newcomer()
    numbers = {_first(device).serial_number, _renewed(world, device).serial_number}
    expect_equal("different serial numbers of two certificates", len(numbers), 2)


@case("renew.chain", "A certificate that the authority did not sign, or not for clients, names nobody.", PLACE)
def certificate_chain(world: World) -> None:
    device = world.newcomer()
    certificate = _renewed(world, device)
    authority = x509.load_pem_x509_certificate((world.kit.authority / "authority.pem").read_bytes())
    try:
        certificate.verify_directly_issued_by(authority)
        use = list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except (InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound) as error:
        raise Unexpected("a client's certificate signed by the kit's authority", f"{type(error).__name__}") from error
    expect_equal("extended key usage", use, [ExtendedKeyUsageOID.CLIENT_AUTH])
    ends, before = certificate.not_valid_after_utc, _first(device).not_valid_after_utc
    expect(ends >= before, f"a certificate that ends no earlier than the old one, {before}", ends)


@case(
    "renew.both-serve",
    "The device goes on with the new certificate; a copy of the old one is good until it ends.",
    PLACE,
)
def both_serve(world: World) -> None:
    old = world.newcomer()
    for device in (_with_new_keys(world, old), old):
        _require_served(world, device)


def _require_served(world: World, device: Device) -> None:
    manifest = pb.GetManifestRequest(capabilities=world.capabilities)
    device.call("GetManifest", manifest).message(pb.GetManifestResponse)


def _with_new_keys(world: World, device: Device) -> Device:
    """The same device with another identity."""

    def certify(signing_request: bytes, member_key: bytes) -> enrollment_pb2.RenewCertificateResponse:
        request = enrollment_pb2.RenewCertificateRequest(signing_request=signing_request, member_key=member_key)
        return _issued(world, device, request)

    return world.certified(f"{device}, renewed", certify)


@case("renew.membership", "A device that renews goes on to be vouched for, with the member key that it has now.", PLACE)
def membership(world: World) -> None:
    request = _request()
    issued = _issued(world, world.newcomer(), request)
    require_vouched(world, issued.membership, request.member_key, issued.certificates[0])


@case("renew.member-key", "A member key of another length, or of another device, is a fault of the device.", PLACE)
def member_key(world: World) -> None:
    for key in (b"", bytes(31), bytes(33), world.device(1).member.key.public):
        request = _request()
        request.member_key = key
        world.renew(world.device(0), request).refusal("MALFORMED")


@case("renew.member-key-of-before", "A member key that a device had before it renewed is still its own.", PLACE)
def member_key_of_before(world: World) -> None:
    device, request = world.newcomer(), _request()
    _renewed(world, device)
    request.member_key = device.member.key.public
    world.renew(world.device(0), request).refusal("MALFORMED")


@case("renew.own-member-key", "A device may go on with the member key that it has.", PLACE)
def own_member_key(world: World) -> None:
    device, request = world.newcomer(), _request()
    request.member_key = device.member.key.public
    issued = _issued(world, device, request)
    require_vouched(world, issued.membership, request.member_key, issued.certificates[0])


@case(
    "renew.other-member-key", "With another member key the same signing request would give one more membership.", PLACE
)
def other_member_key(world: World) -> None:
    device, request = world.newcomer(), _request()
    _issued(world, device, request)
    request.member_key = MemberKey.new().public
    world.renew(device, request).refusal("RENEWAL_EARLY")


@case(
    "renew.same-again",
    "A device that did not get its new certificate asks for it again, and has but one key for it.",
    PLACE,
)
def same_again(world: World) -> None:
    device, request = world.newcomer(), _request()
    first = _issued(world, device, request)
    world.renew(device, _request()).refusal("RENEWAL_EARLY")
    expect_equal("the answer to the same request again", _issued(world, device, request), first)


@case("renew.of-the-one-who-asks", "The same request of another device must not give it this one's name.", PLACE)
def of_the_one_who_asks(world: World) -> None:
    signing_request, other = make_signing_request(new_key()), world.newcomer()
    _renewed(world, world.newcomer(), signing_request)
    subject = _renewed(world, other, signing_request).subject
    expect_equal("subject for the same request of another device", subject, _first(other).subject)


@case("renew.subject-is-ignored", "A device that could choose its next name could take another's.", PLACE)
def subject_is_ignored(world: World) -> None:
    device = world.newcomer()
    builder = x509.CertificateSigningRequestBuilder().subject_name(_first(world.device(0)).subject)
    request = builder.sign(new_key(), SHA256()).public_bytes(Encoding.DER)
    expect_equal("subject of the new certificate", _renewed(world, device, request).subject, _first(device).subject)


@case("renew.extensions-are-ignored", "A device must not become more than a client when it renews.", PLACE)
def extensions_are_ignored(world: World) -> None:
    require_use(_renewed(world, world.newcomer(), greedy_request()))


@case("renew.bad-request", "What is no request of a P-256 key that signs itself is a fault of the device.", PLACE)
def bad_request(world: World) -> None:
    good = make_signing_request(new_key())
    spoiled = good[:-1] + bytes([good[-1] ^ 1])
    others = (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1()))
    bad = (b"", bytes(4097), b"\x30\x03abc", good[:-1], good + b"\0", spoiled, *map(make_signing_request, others))
    for request in bad:
        world.renew(world.device(0), _request(request)).refusal("MALFORMED")


@case(
    "renew.garbage-message",
    "Bytes that are no RenewCertificateRequest must end in a typed refusal.",
    "docs/protocol.md#errors",
)
def garbage_message(world: World) -> None:
    world.renew(world.device(0), b"\xff" * 40).refusal("MALFORMED")


@case("renew.too-large", "A server must not read what is too large.", "docs/protocol.md#limits")
def too_large(world: World) -> None:
    detail = world.renew(world.device(0), bytes(LIMIT_BYTES + 1)).refusal("TOO_LARGE")
    expect_equal("limit_bytes of RenewCertificate", detail.limit_bytes, LIMIT_BYTES)


@case("renew.most", "A device with many memberships could stand for many in a cohort: it has at most two.", PLACE)
def most(world: World) -> None:
    old = world.newcomer()
    new = _with_new_keys(world, old)
    # The old certificate ends first.
    ends = int(_first(old).not_valid_after_utc.timestamp())
    for device in (old, new):
        detail = world.renew(device, _request()).refusal("RENEWAL_EARLY")
        expect_equal("renewable_unix_seconds", detail.renewable_unix_seconds, ends)
        _require_served(world, device)


@case("renew.race", "Of requests that a device sends at once, one gets the second certificate.", PLACE)
def race(world: World) -> None:
    requests = [_request() for _ in range(RACERS)]
    answers = world.at_once("RenewCertificate", requests, world.newcomer().identity)
    expect_equal("requests that got a certificate", sum(answer.status == 200 for answer in answers), 1)
    for answer in answers:
        if answer.status != 200:
            answer.refusal("RENEWAL_EARLY")


@case("renew.no-certificate", "Who shows no certificate is no device, whatever the request says.", PLACE)
def no_certificate(world: World) -> None:
    for request in (_request(), _request(b"")):
        world.renew(None, request).refusal("IDENTITY")


@case(
    "renew.not-at-the-coordinator",
    "The coordinator must not have the keys that name devices, so it cannot renew.",
    "docs/protocol.md#tls",
)
def not_at_the_coordinator(world: World) -> None:
    answer = world.newcomer().client.post(ENROLLMENT + "RenewCertificate", _request().SerializeToString())
    expect(answer.status in (404, 405), "404 for RenewCertificate at the coordinator's address", answer)


@case("renew.nobody", "Who is no device, or none any more, must not become one.", PLACE)
def nobody(world: World) -> None:
    for identity in map(world.kit.tester, ("unnamed", "revoked", "revoked-renewed", "expired")):
        try:
            answer = world.client(identity, enrollment=True).post(
                ENROLLMENT + "RenewCertificate", _request().SerializeToString()
            )
        except NoAnswer:
            continue
        answer.refusal("IDENTITY")
