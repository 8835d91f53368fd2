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
from lightfr_harness.conformance.cases.enroll import require_membership
from lightfr_harness.conformance.client import ENROLLMENT, SERVICE, NoAnswer
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_between, expect_equal
from lightfr_harness.conformance.kit import make_signing_request
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import Device, World
from lightfr_harness.server.authority.certificates import new_key

PLACE = "docs/protocol.md#renewal"
LIMIT_BYTES = 4352
MOST_RENEWALS = 32


def _request(
    signing_request: bytes | None = None, member_key: bytes | None = None
) -> enrollment_pb2.RenewCertificateRequest:
    made = make_signing_request(new_key()) if signing_request is None else signing_request
    key = MemberKey.new().public if member_key is None else member_key
    return enrollment_pb2.RenewCertificateRequest(signing_request=made, member_key=key)


def _answer(device: Device, request: enrollment_pb2.RenewCertificateRequest) -> enrollment_pb2.RenewCertificateResponse:
    answer = device.renew(request).message(enrollment_pb2.RenewCertificateResponse)
    expect_between("number of certificates", len(answer.certificates), 1, 4)
    return answer


def _certificates(device: Device, request: enrollment_pb2.RenewCertificateRequest) -> list[bytes]:
    return list(_answer(device, request).certificates)


def _renewed(device: Device, signing_request: bytes | None = None) -> x509.Certificate:
    der = _certificates(device, _request(signing_request))[0]
    try:
        return x509.load_der_x509_certificate(der)
    except ValueError as error:
        raise Unexpected("a certificate in DER", f"{len(der)} bytes that are none") from error


def _first(world: World, number: int = 0) -> x509.Certificate:
    """The certificate that a device enrolled with."""
    return x509.load_pem_x509_certificates(world.identity(number).read_bytes())[0]


@case("renew.key", "The certificate must be for the new key, which never leaves the device.", PLACE)
def certificate_key(world: World) -> None:
    key = new_key()
    certificate = _renewed(world.device(0), make_signing_request(key))
    expect(certificate.public_key() == key.public_key(), "a certificate for the key of the request", "another key")


@case("renew.name", "A device that renews stays who it is, and can be revoked by the one name it has.", PLACE)
def certificate_name(world: World) -> None:
    expect_equal("subject of the new certificate", _renewed(world.device(0)).subject, _first(world).subject)


@case("renew.serial-number", "No two certificates of an authority may share a serial number.", PLACE)
def serial_number(world: World) -> None:
    numbers = [_first(world).serial_number, *(_renewed(world.device(0)).serial_number for _ in range(2))]
    expect_between("different serial numbers of three certificates", len(set(numbers)), 3, 3)


@case("renew.chain", "A certificate that the authority did not sign, or not for clients, names nobody.", PLACE)
def certificate_chain(world: World) -> None:
    certificate = _renewed(world.device(0))
    authority = x509.load_pem_x509_certificate((world.kit.authority / "authority.pem").read_bytes())
    try:
        certificate.verify_directly_issued_by(authority)
        use = list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except (InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound) as error:
        raise Unexpected("a client's certificate signed by the kit's authority", f"{type(error).__name__}") from error
    expect_equal("extended key usage", use, [ExtendedKeyUsageOID.CLIENT_AUTH])
    ends, before = certificate.not_valid_after_utc, _first(world).not_valid_after_utc
    expect(ends >= before, f"a certificate that ends no earlier than the old one, {before}", ends)


@case(
    "renew.both-serve",
    "The device goes on with the new certificate; a copy of the old one is good until it ends.",
    PLACE,
)
def both_serve(world: World) -> None:
    newcomer = world.renewed(0, lambda request, key: _answer(world.device(0), _request(request, key)))
    manifest = pb.GetManifestRequest(capabilities=world.capabilities)
    for device in (newcomer, world.device(0)):
        device.call("GetManifest", manifest).message(pb.GetManifestResponse)
    # Who renews with a renewed certificate is still the same device.
    expect_equal("subject after two renewals", _renewed(newcomer).subject, _first(world).subject)


@case(
    "renew.same-again",
    "A device that did not get its new certificate asks for it again, and has but one key for it.",
    PLACE,
)
def same_again(world: World) -> None:
    request = _request()
    first = _certificates(world.device(0), request)
    _renewed(world.device(0))
    expect_equal("certificates for the same request again", _certificates(world.device(0), request), first)


@case("renew.of-the-one-who-asks", "The same request of another device must not give it this one's name.", PLACE)
def of_the_one_who_asks(world: World) -> None:
    signing_request = make_signing_request(new_key())
    _renewed(world.device(0), signing_request)
    other = _renewed(world.device(1), signing_request)
    expect_equal("subject for the same request of another device", other.subject, _first(world, 1).subject)


@case("renew.subject-is-ignored", "A device that could choose its next name could take another's.", PLACE)
def subject_is_ignored(world: World) -> None:
    builder = x509.CertificateSigningRequestBuilder().subject_name(_first(world, 1).subject)
    request = builder.sign(new_key(), SHA256()).public_bytes(Encoding.DER)
    expect_equal("subject of the new certificate", _renewed(world.device(0), request).subject, _first(world).subject)


@case("renew.bad-request", "What is no request of a P-256 key that signs itself is a fault of the device.", PLACE)
def bad_request(world: World) -> None:
    good = make_signing_request(new_key())
    spoiled = good[:-1] + bytes([good[-1] ^ 1])
    others = (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1()))
    bad = (b"", bytes(4097), b"\x30\x03abc", good[:-1], good + b"\0", spoiled, *map(make_signing_request, others))
    for request in bad:
        world.device(0).renew(_request(request)).refusal("MALFORMED")


@case(
    "renew.garbage-message",
    "Bytes that are no RenewCertificateRequest must end in a typed refusal.",
    "docs/protocol.md#errors",
)
def garbage_message(world: World) -> None:
    world.device(0).renew(b"\xff" * 40).refusal("MALFORMED")


@case("renew.too-large", "A server must not read what is too large.", "docs/protocol.md#limits")
def too_large(world: World) -> None:
    detail = world.device(0).renew(bytes(LIMIT_BYTES + 1)).refusal("TOO_LARGE")
    expect_equal("limit_bytes of RenewCertificate", detail.limit_bytes, LIMIT_BYTES)


@case("renew.most", "A device must not be able to fill the disk with certificates.", PLACE)
def most(world: World) -> None:
    device, first = world.device(1), _request()
    certificates = _certificates(device, first)
    for _ in range(MOST_RENEWALS):
        answer = device.renew(_request())
        if answer.status != 200:
            break
    answer.refusal("IDENTITY")
    expect_equal("certificates for an earlier request", _certificates(device, first), certificates)
    request = pb.GetManifestRequest(capabilities=world.capabilities)
    device.call("GetManifest", request).message(pb.GetManifestResponse)


@case("renew.membership", "After a renewal the authority vouches for the new member key, for longer.", PLACE)
def membership(world: World) -> None:
    request = _request()
    answer = _answer(world.device(0), request)
    require_membership(world, answer.membership, request.member_key, answer.certificates[0])
    again = _answer(world.device(0), request)
    expect_equal("membership for the same request again", again.membership, answer.membership)


@case("renew.member-key", "A member key is 32 bytes that no other device has.", PLACE)
def member_key(world: World) -> None:
    key = MemberKey.new().public
    for bad in (b"", key[:-1], key + b"\0", world.device(1).member.key.public):
        world.device(0).renew(_request(member_key=bad)).refusal("MALFORMED")


@case("renew.member-key-of-before", "A key that a device had before it renewed is still no other device's.", PLACE)
def member_key_of_before(world: World) -> None:
    old, request = world.device(0).member.key.public, _request()
    _answer(world.device(0), request)
    for taken in (old, request.member_key):
        world.device(1).renew(_request(member_key=taken)).refusal("MALFORMED")


@case("renew.other-member-key", "The same signing request with another member key is another request.", PLACE)
def other_member_key(world: World) -> None:
    first = _request()
    earlier = _answer(world.device(0), first)
    request = _request(first.signing_request)
    later = _answer(world.device(0), request)
    expect(later.certificates[0] != earlier.certificates[0], "another certificate", "the one of the first request")
    require_membership(world, later.membership, request.member_key, later.certificates[0])


@case("renew.not-at-the-coordinator", "The coordinator has no key to renew with: the authority has.", PLACE)
def not_at_the_coordinator(world: World) -> None:
    for service in (SERVICE, ENROLLMENT):
        answer = world.device(0).client.post(service + "RenewCertificate", _request().SerializeToString())
        expect(answer.status in (403, 404, 405), "404 for RenewCertificate at the address for devices", answer)


@case("renew.no-certificate", "Who shows no certificate cannot say whose it is to renew.", PLACE)
def no_certificate(world: World) -> None:
    client = world.client(None, enrollment=True)
    client.post(ENROLLMENT + "RenewCertificate", _request().SerializeToString()).refusal("IDENTITY")


@case("renew.nobody", "Who is no device, or none any more, must not become one.", PLACE)
def nobody(world: World) -> None:
    for name in ("unnamed", "revoked", "expired", "other-authority"):
        client = world.client(world.kit.tester(name), enrollment=True)
        try:
            answer = client.post(ENROLLMENT + "RenewCertificate", _request().SerializeToString())
        except NoAnswer:
            continue
        answer.refusal("IDENTITY")


@case("renew.revoked-device", "A device that renewed and was then revoked is out with every certificate.", PLACE)
def revoked_device(world: World) -> None:
    manifest = pb.GetManifestRequest(capabilities=world.capabilities).SerializeToString()
    renewal = _request().SerializeToString()
    for at_authority, path, body in (
        (False, SERVICE + "GetManifest", manifest),
        (True, ENROLLMENT + "RenewCertificate", renewal),
    ):
        client = world.client(world.kit.tester("revoked-renewed"), enrollment=at_authority)
        try:
            answer = client.post(path, body)
        except NoAnswer:
            continue
        answer.refusal("IDENTITY")
