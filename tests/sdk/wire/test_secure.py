"""The calls of secure aggregation: what each step sends, and which answers of GetStep a device takes."""

import hashlib

import pytest

from lightfr._wire import secure
from lightfr.errors import ProtocolError
from lightfr.secagg import RevealedShares
from lightfr.v1 import coordinator_pb2, secure_pb2

DAY_MS = 86_400_000
ROUND_ID = b"r" * 16
RECORDS = [(1, b"a" * 94), (2**32 - 1, b"b" * 94)]
SEALED = b"\x01\x00\x00\x00" + b"a" * 94 + b"\xff\xff\xff\xff" + b"b" * 94


class Answering:
    """Stands for the channel: gives one answer, and remembers what was asked."""

    def __init__(self, answer):
        self._answer, self.asked = answer, []

    def call(self, *asked):
        self.asked.append(asked)
        return self._answer


def step_of(**fields):
    return secure.decode_step(secure_pb2.GetStepResponse(**fields).SerializeToString())


@pytest.mark.parametrize(
    ("answer", "step"),
    [
        ({"wait_ms": 1}, secure.Wait(0.001)),
        ({"wait_ms": 2500}, secure.Wait(2.5)),
        ({"wait_ms": DAY_MS}, secure.Wait(86_400.0)),
        (
            {
                "share": secure_pb2.ShareStep(
                    entries=b"entries", vouchers=b"vouchers", degree=4, holders=5, threshold=3, signature=b"signature"
                )
            },
            secure.Share(b"entries", b"vouchers", 4, 5, 3, b"signature"),
        ),
        ({"acknowledge": secure_pb2.AcknowledgeStep(sealed_shares=SEALED)}, secure.Acknowledge(RECORDS)),
        ({"acknowledge": secure_pb2.AcknowledgeStep()}, secure.Acknowledge([])),
        ({"included": secure_pb2.IncludedStep(included=b"i", signature=b"s")}, secure.Included(b"i", b"s")),
        ({"upload": secure_pb2.UploadStep(signers=b"w", signatures=b"s")}, secure.Upload(b"w", b"s")),
        ({"survivors": secure_pb2.SurvivorsStep(survivors=b"l", signature=b"s")}, secure.Survivors(b"l", b"s")),
        ({"reveal": secure_pb2.RevealStep(signers=b"w", signatures=b"s")}, secure.Reveal(b"w", b"s")),
        ({"done": secure_pb2.RoundDone()}, secure.Done()),
    ],
)
def test_every_step_is_read_with_all_its_fields(answer, step):
    taken = step_of(**answer)
    assert (type(taken), taken) == (type(step), step)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"wait_ms": 0}, "a wait is out of range"),
        ({"wait_ms": DAY_MS + 1}, "a wait is out of range"),
        ({}, "does not know the step"),
        ({"acknowledge": secure_pb2.AcknowledgeStep(sealed_shares=SEALED[:-1])}, "not whole records"),
        ({"acknowledge": secure_pb2.AcknowledgeStep(sealed_shares=SEALED + b"!")}, "not whole records"),
    ],
)
def test_a_step_beyond_what_the_protocol_allows_is_refused(answer, reason):
    with pytest.raises(ProtocolError, match=f"the server broke the protocol: .*{reason}"):
        step_of(**answer)


def test_a_device_asks_what_is_due_and_lets_the_server_wait_before_it_answers():
    channel = Answering(secure_pb2.GetStepResponse(wait_ms=7).SerializeToString())
    assert secure.next_step(channel, ROUND_ID) == secure.Wait(0.007)
    ((method, request, limit_bytes),) = channel.asked
    assert method == "CoordinatorService/GetStep"
    asked = secure_pb2.GetStepRequest.FromString(request)
    assert (asked.round_id, asked.max_wait_ms) == (ROUND_ID, 15_000), "as the protocol says of our device"
    assert limit_bytes == 2_035_712, "as the protocol states"


def test_a_step_is_sent_to_the_method_of_its_name_and_a_later_server_may_say_more_than_nothing():
    """Within a version fields are added, and of a small answer a device reads 4,096 bytes."""
    channel = Answering(b"")
    secure.send(channel, "SignIncluded", b"request")
    assert channel.asked == [("CoordinatorService/SignIncluded", b"request", 4_096)]


def test_the_receipt_of_a_masked_upload_is_compared():
    digest = hashlib.sha256(b"request").digest()
    channel = Answering(coordinator_pb2.UploadResponse(request_sha256=digest).SerializeToString())
    secure.send(channel, "Upload", b"request")
    assert channel.asked[0][:2] == ("CoordinatorService/Upload", b"request")
    with pytest.raises(ProtocolError, match="another upload"):
        secure.send(channel, "Upload", b"another")


def test_sealed_shares_are_records_of_an_index_and_94_bytes():
    assert secure.encode_sealed_records(RECORDS) == SEALED
    assert secure.sealed_records(SEALED) == RECORDS
    sent = secure_pb2.ShareKeysRequest.FromString(secure.encode_shares(ROUND_ID, RECORDS))
    assert (sent.round_id, sent.sealed_shares) == (ROUND_ID, SEALED)


def test_every_other_step_is_sent_with_all_its_fields():
    pb = secure_pb2
    signed = {"round_id": ROUND_ID, "signature": b"s"}
    for made, message in [
        (secure.encode_acknowledgement(ROUND_ID, b"u"), pb.AcknowledgeSharesRequest(round_id=ROUND_ID, unopened=b"u")),
        (secure.encode_signed_included(ROUND_ID, b"s"), pb.SignIncludedRequest(**signed)),
        (secure.encode_signed_survivors(ROUND_ID, b"s"), pb.SignSurvivorsRequest(**signed)),
        (
            secure.encode_revealed(ROUND_ID, RevealedShares(b"seeds", b"keys")),
            pb.RevealSharesRequest(round_id=ROUND_ID, seeds=b"seeds", mask_keys=b"keys"),
        ),
        (
            secure.encode_masked(ROUND_ID, b"m" * 32, b"u" * 16, b"masked"),
            coordinator_pb2.UploadRequest(
                round_id=ROUND_ID, manifest_sha256=b"m" * 32, upload_id=b"u" * 16, masked_vector=b"masked"
            ),
        ),
    ]:
        assert type(message).FromString(made) == message
