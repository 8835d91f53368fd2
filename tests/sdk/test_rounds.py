"""A round without I/O: messages in, messages out, and after a crash the same bytes again."""

import json
import os
from array import array

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr._wire import coordinator, secure
from lightfr.errors import (
    CohortTooSmallError,
    PrivacyError,
    ProtocolError,
    RefusedError,
    ServerUnavailableError,
)
from lightfr.rounds import TOO_LATE, ClearRound, RoundParticipant, Trusted, is_too_late
from lightfr.secagg import Vector, round_blocks
from lightfr.training import RowUpdate
from lightfr.training.model import TERNARY
from lightfr.v1 import coordinator_pb2, secure_pb2
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.deliveries import RoundFacts
from lightfr_harness.server.coordinator.phases import PHASES
from tests.sdk.secagg.cohorts import NOW, new_member, raw_key

ROUND_ID, DIGEST = b"r" * 16, b"m" * 32
OPEN_ROWS, BITS, COHORT = 3, 8, 4
REQUESTS = {
    "AdvertiseKeys": secure_pb2.AdvertiseKeysRequest,
    "ShareKeys": secure_pb2.ShareKeysRequest,
    "AcknowledgeShares": secure_pb2.AcknowledgeSharesRequest,
    "SignIncluded": secure_pb2.SignIncludedRequest,
    "Upload": coordinator_pb2.UploadRequest,
    "SignSurvivors": secure_pb2.SignSurvivorsRequest,
    "RevealShares": secure_pb2.RevealSharesRequest,
}
METHODS = list(REQUESTS)


def place(number=0, **changes):
    usual = {
        "round_id": ROUND_ID,
        "model_version": 1,
        "manifest_sha256": DIGEST,
        "upload_limit_bytes": 10_000,
        "deadline_seconds": 60.0,
        "peer_id": bytes([number]) * 16,
        "kind": coordinator.TRAINING,
    }
    return coordinator.Assignment(**{**usual, **changes})


class Server:
    """The other side, in memory: it passes on what the participants send and says what is due."""

    def __init__(self):
        self.key, self.authority = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
        facts = RoundFacts(ROUND_ID, DIGEST, coordinator.TRAINING, [raw_key(self.authority)], lambda: NOW)
        peers = {str(number): bytes([number]) * 16 for number in range(COHORT)}
        self.cohort = Cohort(facts, COHORT, peers, lambda size: round_blocks(OPEN_ROWS, BITS, size))

    def trusted(self):
        """What a new device of this server and its authority goes by."""
        return Trusted(raw_key(self.key), [raw_key(self.authority)], new_member(self.authority), NOW)

    def take(self, number, outgoing):
        phase = PHASES[METHODS.index(outgoing.method)]
        request = REQUESTS[outgoing.method].FromString(outgoing.request)
        assert request.round_id == ROUND_ID
        assert getattr(request, "manifest_sha256", DIGEST) == DIGEST
        self.cohort.take(phase, str(number), b"", request)

    def step(self, method, number):
        """The answer to GetStep that makes a device send this method."""
        if self.cohort.phase < PHASES[METHODS.index(method)]:
            self.cohort.advance(self.key)
        return secure.decode_step(self.cohort.step_for(str(number)))

    def sums(self):
        return self.cohort.finish()


def vector_of(number):
    def make(kind, cohort):
        assert (kind, cohort) == (coordinator.TRAINING, COHORT)
        vector = Vector(round_blocks(OPEN_ROWS, BITS, cohort))
        vector["user_sum"][:] = array(vector["user_sum"].format, [number + 1] * BITS)
        return vector

    return make


def begun(server, **how):
    return [RoundParticipant.begin(place(i, **how), server.trusted(), 2) for i in range(COHORT)]


def one(**how):
    """A participant of no particular server."""
    return RoundParticipant.begin(place(**how), Server().trusted(), 2)


def walk(server, participants, last, between=lambda participant: participant, left_before=()):
    """Take all devices through the steps up to `last`; `between` may replace a participant before each step.

    `left_before` is a step, and the number of a device that does not take it, nor any that follows.
    """
    for at, method in enumerate(METHODS[: METHODS.index(last) + 1]):
        left = left_before[1:] if left_before and at >= METHODS.index(left_before[0]) else ()
        for number in sorted({*range(COHORT)} - {*left}):
            participants[number] = between(participants[number])
            if method != "AdvertiseKeys":
                assert participants[number].answer(server.step(method, number), vector_of(number))
            assert participants[number].outgoing.method == method
            server.take(number, participants[number].outgoing)


def restarted(participant):
    """The participant as another process takes it up from what was kept."""
    return RoundParticipant.from_values(participant.values().get)


def test_a_cohort_learns_the_sum_and_each_message_is_one_call():
    server = Server()
    walk(server, begun(server), "RevealShares")
    sums = server.sums()
    assert sums["user_sum"].tolist() == [1 + 2 + 3 + 4] * BITS
    assert not sums["rows"].any()


def test_a_round_that_is_restarted_before_every_step_ends_alike():
    server = Server()
    walk(server, begun(server), "RevealShares", between=restarted)
    assert server.sums()["user_sum"].tolist() == [10] * BITS


@pytest.mark.parametrize("last", METHODS)
def test_what_was_kept_before_a_crash_is_sent_again_byte_for_byte(last):
    server = Server()
    participants = begun(server)
    walk(server, participants, last)
    for participant in participants:
        again = restarted(participant)
        assert again.outgoing == participant.outgoing
        assert (again.round_id, again.manifest_sha256, again.deadline_seconds) == (ROUND_ID, DIGEST, 60.0)


def test_an_upload_that_was_kept_cannot_be_made_anew_with_another_vector():
    """One mask for two vectors would give both away."""
    server = Server()
    participants = begun(server)
    walk(server, participants, "SignIncluded")
    step = server.step("Upload", 1)
    assert participants[1].answer(step, vector_of(1))
    with pytest.raises(PrivacyError, match="step 'mask' was asked for where 'sign_survivors' is next"):
        restarted(participants[1]).answer(step, vector_of(1))


def test_a_server_that_asks_for_the_upload_before_the_roster_gets_no_vector_and_the_device_leaves():
    """An error of another kind would blame the app, and the device would go back to this round for ever."""
    server = Server()
    participant = begun(server)[0]
    made = []
    with pytest.raises(PrivacyError, match="step 'mask' was asked for where 'share' is next") as refused:
        participant.answer(secure.Upload(b"", b""), lambda *asked: made.append(asked))
    assert made == []
    assert participant.is_over_after(refused.value)


def test_the_kept_values_have_the_names_and_forms_that_a_restart_finds():
    participant = one(kind=coordinator.EVALUATION)
    values = participant.values()
    assert json.loads(values["secure_round"]) == {"deadline_seconds": "60.0", "limit_bytes": "10000"}
    assert json.loads(values["secure_session"])["version"] == "lightfr session v2"
    assert values["secure_outgoing"] == b"AdvertiseKeys\n" + participant.outgoing.request
    assert values.keys() == participant.values_to_clear.keys()
    assert set(participant.values_to_clear.values()) == {None}
    assert restarted(participant).kind == coordinator.EVALUATION
    assert restarted(one()).kind == coordinator.TRAINING


def test_a_round_that_another_release_began_is_over():
    values = one().values()
    values["secure_session"] = b'{"version": "lightfr session v1"}'
    assert RoundParticipant.from_values(values.get) is None


def test_a_view_has_what_the_server_told_so_far():
    server = Server()
    participants = begun(server)
    assert participants[0].view().roster_digest == b""
    walk(server, participants, "RevealShares")
    views = {participant.view() for participant in participants}
    assert len(views) == 1
    view = views.pop()
    assert (view.round_id, view.manifest_sha256, view.kind) == (ROUND_ID, DIGEST, coordinator.TRAINING)
    assert view.roster_digest == server.cohort.roster.digest
    assert view.included == view.survivors == b"\x0f"


@pytest.mark.parametrize(
    ("left_before", "others"),
    [
        ((), [None, None, 3, 3, 3, 3, 3, 3]),
        (("ShareKeys", 3), [None, None, 3, 3, 2, 2, 2, 2]),
        (("Upload", 3), [None, None, 3, 3, 3, 3, 2, 2]),
    ],
)
def test_a_device_can_say_how_many_others_are_in_its_round_as_the_server_last_told_it(left_before, others):
    server, told = Server(), []
    participants = begun(server)

    def noted(participant):
        if participant is participants[0]:
            told.append(participant.others)
        return restarted(participant)

    walk(server, participants, "RevealShares", noted, left_before)
    assert [*told, participants[0].others] == others


@pytest.mark.parametrize("missing", ["secure_round", "secure_session", "secure_outgoing"])
def test_values_that_are_not_complete_are_no_round(missing):
    values = one().values()
    del values[missing]
    assert RoundParticipant.from_values(values.get) is None


@pytest.mark.parametrize("step", [secure.Wait(1.0), secure.Done()])
def test_there_is_nothing_to_send_after_a_wait_and_at_the_end(step):
    participant = one()
    before = participant.outgoing
    assert not participant.answer(step, vector_of(0))
    assert participant.outgoing == before


def test_randomness_comes_from_outside():
    trusted = Server().trusted()

    def made():
        count = 0

        def fake(n):
            nonlocal count
            count += 1
            return bytes([count]) * n

        return RoundParticipant.begin(place(), trusted, 2, fake)

    assert made().outgoing == made().outgoing
    other = RoundParticipant.begin(place(), trusted, 2, os.urandom)
    assert other.outgoing != made().outgoing


def test_a_masked_round_needs_a_peer_id():
    with pytest.raises(ProtocolError, match="peer_id"):
        one(peer_id=b"")


def test_a_masked_upload_above_the_servers_limit_is_not_made():
    server = Server()
    participants = begun(server, upload_limit_bytes=50)
    walk(server, participants, "SignIncluded")
    with pytest.raises(ProtocolError, match="the server takes 50"):
        participants[0].answer(server.step("Upload", 0), vector_of(0))


def test_a_cohort_below_the_devices_minimum_is_refused():
    server = Server()
    participants = [RoundParticipant.begin(place(i), server.trusted(), COHORT + 1) for i in range(COHORT)]
    for number, participant in enumerate(participants):
        server.take(number, participant.outgoing)
    with pytest.raises(CohortTooSmallError):
        participants[0].answer(server.step("ShareKeys", 0), vector_of(0))


def clear_round(**changes):
    update = RowUpdate(8, TERNARY, array("I", [1, 2]), nonzero=b"\x01\x02", positive=b"\x01\x00", user_code=b"u")
    return ClearRound.begin(place(peer_id=b"", **changes), update, lambda n: b"i" * n)


def test_a_round_in_the_clear_is_one_upload():
    method, request = clear_round().outgoing
    upload = coordinator_pb2.UploadRequest.FromString(request)
    assert (method, upload.round_id, upload.manifest_sha256, upload.upload_id) == (
        "Upload",
        ROUND_ID,
        DIGEST,
        b"i" * 16,
    )
    assert list(memoryview(upload.row_update.item_indices).cast("I")) == [1, 2]


def test_an_upload_in_the_clear_is_kept_and_sent_again():
    values = clear_round().values()
    assert values.keys() == ClearRound.values_to_clear.keys() == {"pending_upload"}
    assert ClearRound.from_values(values.get).outgoing == clear_round().outgoing
    assert ClearRound.from_values({}.get) is None


def test_an_upload_in_the_clear_above_the_servers_limit_is_not_made():
    with pytest.raises(ProtocolError, match="the server takes 20"):
        clear_round(upload_limit_bytes=20)


def test_an_upload_of_exactly_the_servers_limit_is_made():
    size = len(clear_round().outgoing.request)
    assert clear_round(upload_limit_bytes=size).outgoing == clear_round().outgoing
    with pytest.raises(ProtocolError, match=f"has {size} bytes"):
        clear_round(upload_limit_bytes=size - 1)


@pytest.mark.parametrize(
    ("error", "ends_clear", "ends_masked"),
    [
        *((RefusedError("not_found", reason, "late"), True, True) for reason in sorted(TOO_LATE)),
        *((RefusedError("x", reason, ""), True, True) for reason in ("UPLOAD_INVALID", "MALFORMED", "TOO_LARGE")),
        (RefusedError("x", "OVERLOADED", ""), False, True),
        (ProtocolError("broken"), False, True),
        (PrivacyError("refused"), False, True),
        (ServerUnavailableError("gone"), False, False),
    ],
)
def test_an_error_ends_a_round_when_going_on_cannot_help_or_would_not_be_safe(error, ends_clear, ends_masked):
    masked = one()
    assert (clear_round().is_over_after(error), masked.is_over_after(error)) == (ends_clear, ends_masked)
    assert is_too_late(error) == (getattr(error, "reason", "") in TOO_LATE)
