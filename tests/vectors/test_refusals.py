"""What is refused, and by which reason a device knows it, as vectors/v1 says."""

import asyncio
import json

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from lightfr._wire.refusals import refusal
from lightfr.errors import IdentityRefusedError, RefusedError, ServerUnavailableError, UpdateRequiredError
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import enrollment_pb2, error_pb2, model_pb2
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.authority.certificates import requested_key
from lightfr_harness.server.authority.service import EnrollmentService
from lightfr_harness.server.coordinator.options import ItemList, Settings
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.refusals import STATUS_OF_CODE, Refusal
from lightfr_harness.server.rules.uploads import UploadError, UploadReader
from tests.harness.server.coordinator.helpers import Clock, Small
from tests.vectors.reading import by_name, vector

ROUNDS = vector("uploads_bad")["rounds"]
KINDS = {"IDENTITY": IdentityRefusedError, "OVERLOADED": ServerUnavailableError, "WIRE_VERSION": UpdateRequiredError}
ITEMS = ItemList([f"item-{i}" for i in range(80)], [10] * 72 + [9] * 8, "0" * 64)
SETTINGS = Settings(bits=32, gate=10, seed=3, integer_ids=False, privacy="clear")


def unhex(cases, name="request"):
    return [bytes.fromhex(case[name]) for case in cases]


async def reason_of(awaitable):
    """The reason of a refusal, or OK."""
    try:
        await awaitable
    except Refusal as refused:
        return error_pb2.ErrorReason.Name(refused.reason)
    return "OK"


def test_a_coordinator_refuses_each_bad_upload_with_its_reason(tmp_path):
    """One round with the ids of the vectors, and every case in it: what is refused leaves no trace."""
    known, ternary = vector("uploads_bad"), ROUNDS[0]

    async def story():
        it = Small(tmp_path, Clock(), Plan(goal=6, over_selection=2), SETTINGS, ITEMS)
        await it.coordinator.start()
        current = it.coordinator.book.current
        current.number, current.round_id = 2, bytes.fromhex(known["round_id"])
        current.manifest_sha256 = bytes.fromhex(known["manifest_sha256"])
        assert await it.coordinator._storage.open_round(current)
        await it.assignment("a")
        reasons = {c["name"]: await reason_of(it.upload("a", bytes.fromhex(c["request"]))) for c in ternary["refused"]}
        good = bytes.fromhex(ternary["good"][0])
        stranger, taken = await reason_of(it.upload("b", good)), await reason_of(it.upload("a", good))
        await it.coordinator.close()
        return it.coordinator.version.manifest.model, reasons, (stranger, taken)

    model, reasons, others = asyncio.run(story())
    assert model.SerializeToString().hex() == ternary["model"]
    assert reasons == {case["name"]: case["reason"] for case in ternary["refused"]}
    assert others == ("ERROR_REASON_NOT_ASSIGNED", "OK")


@pytest.mark.parametrize(**by_name(ROUNDS))
def test_a_reader_of_uploads_refuses_the_bad_and_takes_the_good(known):
    model = model_pb2.RoundModel.FromString(bytes.fromhex(known["model"]))
    reader = UploadReader(model, bytes.fromhex(known["open_rows"]))
    for good in known["good"]:
        reader.check(pb.UploadRequest.FromString(bytes.fromhex(good)).row_update)
    bad = [case for case in known["refused"] if case["reason"] == "ERROR_REASON_UPLOAD_INVALID"]
    assert bad
    for request in unhex(bad):
        update = pb.UploadRequest.FromString(request).row_update
        with pytest.raises(UploadError):
            reader.check(update)


def test_a_coordinator_refuses_other_bad_requests_with_their_reason(tmp_path):
    cases = vector("requests_bad")

    async def story():
        it = Small(tmp_path, Clock(), Plan(goal=2), SETTINGS, ITEMS)
        await it.coordinator.start()
        methods, requests = it.service.methods, unhex(cases)
        reasons = [await reason_of(methods[c["method"]]("a", r)) for c, r in zip(cases, requests, strict=True)]
        await it.coordinator.close()
        return reasons

    named = [(case["method"], case["name"]) for case in cases]
    expected = [case["reason"] for case in cases]
    assert list(zip(named, asyncio.run(story()), strict=True)) == list(zip(named, expected, strict=True))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority.init(tmp_path_factory.mktemp("authority") / "ca", ["localhost"])
    yield made
    made.close()


class KnownToken:
    """The authority, with the token of the vectors in the place of a random one."""

    def __init__(self, authority, said):
        self.authority, self.said = authority, said
        self.token = authority.invite("https://localhost:1", "https://localhost:2", 60)["token"]

    def enroll(self, token, signing_request, member_key):
        return self.authority.enroll(self.token if token == self.said else token, signing_request, member_key)


def test_bad_enrolments_are_refused_and_leave_the_token_unspent(authority):
    known = vector("enrollment")
    service = EnrollmentService(KnownToken(authority, known["token"]))
    requests, cases = unhex(known["refused"]), known["refused"]
    reasons = {c["name"]: asyncio.run(reason_of(service.enroll("", r))) for c, r in zip(cases, requests, strict=True)}
    assert reasons == {case["name"]: case["reason"] for case in cases}
    answer = asyncio.run(service.enroll("", bytes.fromhex(known["good"]["request"])))
    issued = enrollment_pb2.EnrollResponse.FromString(answer)
    assert len(issued.certificates) == 1
    assert issued.membership[:32].hex() == known["good"]["member_key"]


def test_a_renewal_refuses_the_same_requests(tmp_path):
    authority, known = Authority.init(tmp_path / "ca", ["localhost"]), vector("enrollment")
    good, member_key = (bytes.fromhex(known["good"][name]) for name in ("signing_request", "member_key"))
    device_id, _ = authority.issue(good, bytes(32))
    service = EnrollmentService(authority)

    def renewal(signing_request, member_key):
        request = enrollment_pb2.RenewCertificateRequest(signing_request=signing_request, member_key=member_key)
        return service.renew_certificate(device_id, request.SerializeToString())

    asked = {
        case["name"]: enrollment_pb2.EnrollRequest.FromString(request)
        for case, request in zip(known["refused"], unhex(known["refused"]), strict=True)
        if "token" not in case["name"]
    }
    refused = {name: asyncio.run(reason_of(renewal(r.signing_request, r.member_key))) for name, r in asked.items()}
    assert len(refused) == 15
    assert set(refused.values()) == {"ERROR_REASON_MALFORMED"}
    answer = enrollment_pb2.RenewCertificateResponse.FromString(asyncio.run(renewal(good, member_key)))
    assert (len(answer.certificates), answer.membership[:32]) == (1, member_key)
    authority.close()


def test_good_signing_requests_name_their_key():
    known = vector("enrollment")
    for content in (known["good"]["signing_request"], *known["also_good"].values()):
        key = requested_key(bytes.fromhex(content))
        point = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        assert point.hex() == known["good"]["public_key"]


def short(name):
    return name.removeprefix("ERROR_REASON_")


@pytest.mark.parametrize("known", vector("connect_errors")["answers"], ids=lambda known: short(known["reason"]))
def test_a_refusal_as_the_server_writes_it_and_as_a_device_reads_it(known):
    number = error_pb2.ErrorReason.Value(known["reason"])
    options = {
        "TOO_LARGE": {"limit_bytes": 1024},
        "WIRE_VERSION": {"wire_versions": [1, 2]},
        "RENEWAL_EARLY": {"renewable_unix_seconds": 4_000_000_000},
    }
    refused = Refusal(number, "why", **options.get(short(known["reason"]), {}))
    assert json.loads(refused.body()) == json.loads(known["body"])
    assert (refused.code, STATUS_OF_CODE[refused.code]) == (known["code"], known["status"])
    error = refusal(known["status"], known["body"].encode())
    kinds = {
        "IDENTITY": IdentityRefusedError,
        "OVERLOADED": ServerUnavailableError,
        "WIRE_VERSION": UpdateRequiredError,
    }
    assert type(error) is kinds.get(short(known["reason"]), RefusedError)
    if isinstance(error, RefusedError):
        assert (error.reason, error.code) == (short(known["reason"]), known["code"])


@pytest.mark.parametrize(**by_name(vector("connect_errors")["odd_answers"]))
def test_a_device_lives_with_odd_answers(known):
    error = refusal(known["status"], known["body"].encode())
    assert type(error) is RefusedError
    assert (error.reason, error.code) == (short(known["reason"]), known["code"])
