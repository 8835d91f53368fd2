"""What a device asks of the coordinator and the authority, and which answers it takes: each bound from both sides."""

import hashlib

import pytest

from lightfr._wire import coordinator
from lightfr._wire.coordinator import Assignment, RetryWindow
from lightfr.errors import ProtocolError
from lightfr.v1 import coordinator_pb2, enrollment_pb2, manifest_pb2, model_pb2

DAY_MS = 86_400_000
MEMBERSHIP = bytes(range(104))


class Answering:
    """Stands for the channel: gives one answer, and remembers what was asked and the largest answer it would take."""

    def __init__(self, answer):
        self._answer = answer.SerializeToString()

    def call(self, method, request, limit_bytes):
        self.method, self.request, self.limit_bytes = method, request, limit_bytes
        if len(self._answer) > limit_bytes:
            raise ProtocolError("too long")
        return self._answer


# Manifests.


def manifest_of(size_bytes):
    """A signed manifest that is serialised to this many bytes."""
    signed = manifest_pb2.SignedManifest(manifest=bytes(65_536), signature=bytes(64))
    signed.key_id = bytes(size_bytes - signed.ByteSize() - 2)
    assert signed.ByteSize() == size_bytes
    return signed


def test_a_device_asks_for_a_manifest_with_what_it_can_do_and_what_it_has():
    channel = Answering(coordinator_pb2.GetManifestResponse())
    assert coordinator.get_manifest(channel, 7) is None
    assert channel.method == "CoordinatorService/GetManifest"
    kinds = [model_pb2.UPLOAD_KIND_TERNARY, model_pb2.UPLOAD_KIND_EXACT, model_pb2.UPLOAD_KIND_CODES]
    able = coordinator_pb2.Capabilities(wire_versions=[1], upload_kinds=kinds)
    asked = coordinator_pb2.GetManifestRequest.FromString(channel.request)
    assert asked == coordinator_pb2.GetManifestRequest(capabilities=able, known_model_version=7)


def test_a_signed_manifest_is_read_up_to_the_size_that_the_protocol_states_and_no_further():
    whole, too_long = (coordinator_pb2.GetManifestResponse(signed_manifest=manifest_of(n)) for n in (65_664, 65_665))
    assert coordinator.get_manifest(Answering(whole), 0) == whole.signed_manifest.SerializeToString()
    with pytest.raises(ProtocolError, match="too long"):
        coordinator.get_manifest(Answering(too_long), 0)


# Places in rounds.


def check_in(**answer):
    return coordinator.check_in(Answering(coordinator_pb2.CheckInResponse(**answer)), 7, [])


def place(**changes):
    usual = {
        "round_id": b"r" * 16,
        "model_version": 7,
        "manifest_sha256": b"m" * 32,
        "deadline_ms": 60_500,
        "upload_limit_bytes": 4096,
        "peer_id": b"p" * 16,
        "kind": coordinator_pb2.ROUND_KIND_EVALUATION,
    }
    return coordinator_pb2.Assignment(**{**usual, **changes})


def test_a_device_checks_in_with_the_modes_that_it_agrees_to():
    channel = Answering(coordinator_pb2.CheckInResponse(assignment=place()))
    coordinator.check_in(channel, 7, [model_pb2.PRIVACY_MODE_SECAGG])
    assert channel.method == "CoordinatorService/CheckIn"
    asked = coordinator_pb2.CheckInRequest.FromString(channel.request)
    assert (asked.known_model_version, asked.capabilities.wire_versions) == (7, [1])
    assert asked.capabilities.privacy_modes == [model_pb2.PRIVACY_MODE_SECAGG]


def test_an_assignment_says_all_that_the_server_said():
    assert check_in(assignment=place()) == Assignment(
        b"r" * 16, 7, b"m" * 32, 4096, 60.5, b"p" * 16, coordinator.EVALUATION
    )


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"deadline_ms": 1}, "deadline_seconds", 0.001),
        ({"deadline_ms": DAY_MS}, "deadline_seconds", 86_400.0),
        ({"peer_id": b""}, "peer_id", b""),
        ({"kind": coordinator_pb2.ROUND_KIND_UNSPECIFIED}, "kind", coordinator_pb2.ROUND_KIND_TRAINING),
        ({"kind": coordinator_pb2.ROUND_KIND_TRAINING}, "kind", coordinator_pb2.ROUND_KIND_TRAINING),
        ({"kind": coordinator_pb2.ROUND_KIND_GATE_REFRESH}, "kind", coordinator_pb2.ROUND_KIND_GATE_REFRESH),
    ],
)
def test_an_assignment_at_the_edge_of_what_the_protocol_allows_is_taken(changes, field, value):
    assert getattr(check_in(assignment=place(**changes)), field) == value


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        *(({"round_id": bytes(size)}, "round_id must be 16 bytes") for size in (0, 15, 17)),
        *(({"manifest_sha256": bytes(size)}, "manifest_sha256 must be 32 bytes") for size in (0, 31, 33)),
        *(({"deadline_ms": ms}, "a deadline is out of range") for ms in (0, DAY_MS + 1)),
        *(({"peer_id": bytes(size)}, "peer_id must be 16 bytes") for size in (1, 15, 17)),
        ({"kind": 4}, "does not know the kind of the round"),
    ],
)
def test_an_assignment_beyond_what_the_protocol_allows_is_refused(changes, reason):
    with pytest.raises(ProtocolError, match=f"the server broke the protocol: .*{reason}"):
        check_in(assignment=place(**changes))


@pytest.mark.parametrize(
    ("window", "taken"),
    [
        ((0, 0, coordinator_pb2.RETRY_REASON_UNSPECIFIED), (0.0, 0.0, "round_full")),
        ((1500, 1500, coordinator_pb2.RETRY_REASON_FAULTY), (1.5, 1.5, "faulty")),
        ((2, DAY_MS, coordinator_pb2.RETRY_REASON_AGGREGATING), (0.002, 86_400.0, "aggregating")),
        ((DAY_MS, DAY_MS, 99), (86_400.0, 86_400.0, "round_full")),
    ],
)
def test_a_retry_window_is_taken_up_to_a_day_and_may_be_a_moment(window, taken):
    earliest, latest, reason = window
    message = coordinator_pb2.RetryWindow(earliest_ms=earliest, latest_ms=latest, reason=reason)
    assert check_in(retry_window=message) == RetryWindow(*taken)


@pytest.mark.parametrize(("earliest", "latest"), [(2, 1), (0, DAY_MS + 1)])
def test_a_retry_window_beyond_a_day_or_that_ends_before_it_begins_is_refused(earliest, latest):
    with pytest.raises(ProtocolError, match="a retry window is out of range"):
        check_in(retry_window=coordinator_pb2.RetryWindow(earliest_ms=earliest, latest_ms=latest))


def test_an_answer_to_a_check_in_without_a_place_or_a_window_is_refused():
    with pytest.raises(ProtocolError, match="answered with nothing"):
        check_in()


# Uploads.


def test_an_upload_is_sent_as_it_is_and_its_receipt_compared():
    receipt = coordinator_pb2.UploadResponse(upload_id=bytes(16), request_sha256=hashlib.sha256(b"request").digest())
    channel = Answering(receipt)
    coordinator.upload(channel, b"request")
    assert (channel.method, channel.request) == ("CoordinatorService/Upload", b"request")
    with pytest.raises(ProtocolError, match="a receipt is for another upload"):
        coordinator.upload(channel, b"another")


# Identities.


def enroll(channel):
    return coordinator.enroll(channel, "t" * 20, b"request", b"k" * 32)


def renew(channel):
    return coordinator.renew(channel, b"request", b"k" * 32)


IDENTITIES = [(enroll, enrollment_pb2.EnrollResponse), (renew, enrollment_pb2.RenewCertificateResponse)]


def test_the_token_the_signing_request_and_the_member_key_are_sent_to_the_authority():
    channel = Answering(enrollment_pb2.EnrollResponse(certificates=[b"c"], membership=MEMBERSHIP))
    enroll(channel)
    assert channel.method == "EnrollmentService/Enroll"
    sent = {"signing_request": b"request", "member_key": b"k" * 32}
    asked = enrollment_pb2.EnrollRequest.FromString(channel.request)
    assert asked == enrollment_pb2.EnrollRequest(token="t" * 20, **sent)
    renew(channel)
    assert channel.method == "EnrollmentService/RenewCertificate"
    renewal = enrollment_pb2.RenewCertificateRequest.FromString(channel.request)
    assert renewal == enrollment_pb2.RenewCertificateRequest(**sent)


@pytest.mark.parametrize(("ask", "answer"), IDENTITIES)
@pytest.mark.parametrize("count", [1, 4])
def test_one_to_four_certificates_and_a_membership_are_taken(ask, answer, count):
    certificates = [bytes([number]) * 500 for number in range(count)]
    issued = ask(Answering(answer(certificates=certificates, membership=MEMBERSHIP)))
    assert (issued.certificates, issued.membership) == (certificates, MEMBERSHIP)


@pytest.mark.parametrize(("ask", "answer"), IDENTITIES)
@pytest.mark.parametrize(
    ("count", "membership", "reason"),
    [
        (0, MEMBERSHIP, "without a certificate, or with too many"),
        (5, MEMBERSHIP, "without a certificate, or with too many"),
        (1, MEMBERSHIP[:-1], "a membership must be 104 bytes"),
        (1, MEMBERSHIP + b"!", "a membership must be 104 bytes"),
        (1, b"", "a membership must be 104 bytes"),
    ],
)
def test_other_counts_of_certificates_and_lengths_of_memberships_are_refused(ask, answer, count, membership, reason):
    with pytest.raises(ProtocolError, match=reason):
        ask(Answering(answer(certificates=[b"c"] * count, membership=membership)))


@pytest.mark.parametrize(
    ("ask", "limit_bytes"),
    [
        (lambda channel: coordinator.check_in(channel, 0, []), 4_096),
        (lambda channel: coordinator.upload(channel, b""), 4_096),
        (enroll, 65_536),
        (renew, 65_536),
    ],
)
def test_of_other_answers_a_device_reads_as_many_bytes_as_the_protocol_states(ask, limit_bytes):
    channel = Answering(coordinator_pb2.CheckInResponse())
    with pytest.raises(ProtocolError):
        ask(channel)
    assert channel.limit_bytes == limit_bytes


def test_bytes_that_are_no_message_are_refused_with_their_number_and_the_name_of_the_message():
    with pytest.raises(ProtocolError, match="3 bytes of the server are not a UploadResponse"):
        coordinator.decode(coordinator_pb2.UploadResponse, b"\x0a\xff\xff")
