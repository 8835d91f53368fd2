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
from lightfr_harness.conformance.cases.enroll import require_vouched
from lightfr_harness.conformance.client import ENROLLMENT, NoAnswer
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_between, expect_equal
from lightfr_harness.conformance.kit import make_signing_request
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import Device, World
from lightfr_harness.server.authority.certificates import new_key

PLACE = "docs/protocol.md#renewal"
LIMIT_BYTES = 4352
MOST_RENEWALS = 32


def _request(signing_request: bytes | None = None) -> enrollment_pb2.RenewCertificateRequest:
    made = make_signing_request(new_key()) if signing_request is None else signing_request
    return enrollment_pb2.RenewCertificateRequest(signing_request=made, member_key=MemberKey.new().public)


def _issued(
    world: World, device: Device, request: enrollment_pb2.RenewCertificateRequest
) -> enrollment_pb2.RenewCertificateResponse:
    answer = world.renew(device, request).message(enrollment_pb2.RenewCertificateResponse)
    expect_between("number of certificates", len(answer.certificates), 1, 4)
    return answer


def _renewed(world: World, number: int = 0, signing_request: bytes | None = None) -> x509.Certificate:
    """The new certificate of a device."""
    der = _issued(world, world.device(number), _request(signing_request)).certificates[0]
    try:
        return x509.load_der_x509_certificate(der)
    except ValueError as error:
        raise Unexpected("a certificate in DER", f"{len(der)} bytes that are none") from error


def _first(world: World, number: int = 0) -> x509.Certificate:
    """The certificate that a device enrolled with."""
    return x509.load_pem_x509_certificates(world.device(number).identity.read_bytes())[0]


@case("renew.key", "The certificate must be for the new key, which never leaves the device.", PLACE)
def certificate_key(world: World) -> None:
    key = new_key()
    certificate = _renewed(world, 0, make_signing_request(key))
    expect(certificate.public_key() == key.public_key(), "a certificate for the key of the request", "another key")


@case("renew.name", "A device that renews stays who it is, and can be revoked by the one name it has.", PLACE)
def certificate_name(world: World) -> None:
    expect_equal("subject of the new certificate", _renewed(world).subject, _first(world).subject)


@case("renew.serial-number", "No two certificates of an authority may share a serial number.", PLACE)
def serial_number(world: World) -> None:
    numbers = [_first(world).serial_number, *(_renewed(world).serial_number for _ in range(2))]
    expect_between("different serial numbers of three certificates", len(set(numbers)), 3, 3)


@case("renew.chain", "A certificate that the authority did not sign, or not for clients, names nobody.", PLACE)
def certificate_chain(world: World) -> None:
    certificate = _renewed(world)
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
    newcomer = _with_new_keys(world, world.device(0))
    manifest = pb.GetManifestRequest(capabilities=world.capabilities)
    for device in (newcomer, world.device(0)):
        device.call("GetManifest", manifest).message(pb.GetManifestResponse)
    # Who renews with a renewed certificate is still the same device.
    again = x509.load_der_x509_certificate(_issued(world, newcomer, _request()).certificates[0])
    expect_equal("subject after two renewals", again.subject, _first(world).subject)


def _with_new_keys(world: World, device: Device) -> Device:
    """The same device with another identity."""

    def certify(signing_request: bytes, member_key: bytes) -> enrollment_pb2.RenewCertificateResponse:
        request = enrollment_pb2.RenewCertificateRequest(signing_request=signing_request, member_key=member_key)
        return _issued(world, device, request)

    return world.certified(f"{device}, renewed", certify)


@case("renew.membership", "A device that renews goes on to be vouched for, with the member key that it has now.", PLACE)
def membership(world: World) -> None:
    request = _request()
    issued = _issued(world, world.device(0), request)
    require_vouched(world, issued.membership, request.member_key, issued.certificates[0])


@case("renew.member-key", "A member key of another length, or of another device, is a fault of the device.", PLACE)
def member_key(world: World) -> None:
    for key in (b"", bytes(31), bytes(33), world.device(1).member.key.public):
        request = _request()
        request.member_key = key
        world.renew(world.device(0), request).refusal("MALFORMED")


@case(
    "renew.same-again",
    "A device that did not get its new certificate asks for it again, and has but one key for it.",
    PLACE,
)
def same_again(world: World) -> None:
    request = _request()
    first = _issued(world, world.device(0), request)
    _renewed(world)
    expect_equal("the answer to the same request again", _issued(world, world.device(0), request), first)


@case("renew.of-the-one-who-asks", "The same request of another device must not give it this one's name.", PLACE)
def of_the_one_who_asks(world: World) -> None:
    signing_request = make_signing_request(new_key())
    _renewed(world, 0, signing_request)
    other = _renewed(world, 1, signing_request)
    expect_equal("subject for the same request of another device", other.subject, _first(world, 1).subject)


@case("renew.subject-is-ignored", "A device that could choose its next name could take another's.", PLACE)
def subject_is_ignored(world: World) -> None:
    builder = x509.CertificateSigningRequestBuilder().subject_name(_first(world, 1).subject)
    request = builder.sign(new_key(), SHA256()).public_bytes(Encoding.DER)
    expect_equal("subject of the new certificate", _renewed(world, 0, request).subject, _first(world).subject)


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


@case("renew.most", "A device must not be able to fill the disk with certificates.", PLACE)
def most(world: World) -> None:
    device, first = world.device(1), _request()
    issued = _issued(world, device, first)
    for _ in range(MOST_RENEWALS):
        answer = world.renew(device, _request())
        if answer.status != 200:
            break
    answer.refusal("IDENTITY")
    expect_equal("the answer to an earlier request", _issued(world, device, first), issued)
    request = pb.GetManifestRequest(capabilities=world.capabilities)
    device.call("GetManifest", request).message(pb.GetManifestResponse)


@case("renew.nobody", "Who is no device, or none any more, must not become one.", PLACE)
def nobody(world: World) -> None:
    identities = (None, *(world.kit.tester(name) for name in ("unnamed", "revoked", "revoked-renewed", "expired")))
    for identity in identities:
        try:
            answer = world.client(identity, enrollment=True).post(
                ENROLLMENT + "RenewCertificate", _request().SerializeToString()
            )
        except NoAnswer:
            continue
        answer.refusal("IDENTITY")
