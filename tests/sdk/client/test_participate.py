"""Taking part in rounds: an upload is sent until the server has it or will never take it, and never made anew."""

import hashlib
import threading

import numpy as np
import pytest

from lightfr import evaluation, kept_rounds
from lightfr._wire import coordinator
from lightfr.errors import (
    IdentityRefusedError,
    NotPrivateError,
    ProtocolError,
    RefusedError,
    ServerUnavailableError,
    UpdateRequiredError,
)
from lightfr.kept_rounds import Offer
from lightfr.rounds import TOO_LATE
from lightfr.v1 import coordinator_pb2, model_pb2
from tests.sdk.client.publisher import random_codes, refusal
from tests.sdk.store.faults import CrashError


@pytest.fixture
def device(publisher, open_device):
    """A device with ratings that holds version 1, and a round of that version."""
    publisher.publish(1, random_codes(1))
    publisher.assignment()
    client = open_device()
    client.sync()
    client.rate_many([(f"item {number}", 5) for number in range(20)])
    # Kept back from training, being the newest.
    client.like("item 30")
    return client


def calls(publisher):
    """The methods that were called, in order."""
    paths = [path for verb, path, _, _ in publisher.server.requests if verb == "POST"]
    return [path.rsplit("/", 1)[-1] for path in paths]


def sent_uploads(publisher):
    return [body for _, path, _, body in publisher.server.requests if path.endswith("/Upload")]


def refuse(publisher, reason):
    publisher.answers["Upload"] = refusal("failed_precondition", 400, reason)


def lose_answers(publisher):
    publisher.answers["Upload"] = (503, {}, b"")


def test_neither_dislikes_nor_hidden_items_nor_the_newest_opinion_are_uploaded(publisher, device):
    device.dislike("item 3")
    device.rate("item 4", 2.9)
    device.hide("item 5")
    device.seen("item 40")
    device.rate("item 31", 3)
    device.dislike("item 41")
    device.participate()
    rows = coordinator_pb2.UploadRequest.FromString(publisher.uploads[0]).row_update.item_indices
    assert list(memoryview(rows).cast("I")) == [0, 1, 2, *range(6, 20), 30, 31, 40]


def test_each_kind_of_round_adds_up_its_own_numbers(publisher, device, monkeypatch):
    """An evaluation gets every opinion, a gate refresh and training only what teaches."""
    device.dislike("item 3")
    device.like("item 31")
    told = {}
    makers = [(kept_rounds, "gate_vector"), (kept_rounds, "round_vector"), (evaluation, "evaluation_vector")]
    for module, name in makers:
        monkeypatch.setattr(module, name, lambda *given, name=name: told.setdefault(name, given))
    how = (device._user, device._channel, device._terms, None, None, None, None)
    for kind in (coordinator.GATE_REFRESH, coordinator.TRAINING, coordinator.EVALUATION):
        Offer(*how)._vector(kind, 300, b"r" * 32)
    taught = [0, 1, 2, *range(4, 20), 30]
    assert sorted(told["gate_vector"][1].arrays()[0]) == sorted(told["round_vector"][1].item_indices) == taught
    published, rankings, opinions, code, digest, cohort = told["evaluation_vector"]
    model = device._user.model
    assert (published, rankings) == (model.published, model.manifest.rankings)
    assert list(opinions.arrays()[0]) == [0, 1, 2, *range(4, 20), 30, 3, 31]
    # That of the last round of training: an evaluation leaves it as it is.
    assert code.reveal() == device._store.get("user_code")
    assert (digest, cohort) == (b"r" * 32, 300)


def test_an_upload_names_its_round_and_model_and_only_rated_rows(publisher, device):
    outcome = device.participate()
    assert (outcome.took_part, outcome.retry_after_seconds, outcome.reason) == (True, 0.0, None)
    (request,) = (coordinator_pb2.UploadRequest.FromString(body) for body in publisher.uploads)
    assert request.round_id == b"r" * 16
    assert request.manifest_sha256 == hashlib.sha256(publisher.current.manifest).digest()
    assert len(request.upload_id) == 16
    assert set(memoryview(request.row_update.item_indices).cast("I")) == set(range(20))
    assert (device.status().rounds, device.status().upload_pending) == (1, False)


def test_two_uploads_have_different_ids(publisher, device):
    device.participate()
    device.participate()
    first, second = (coordinator_pb2.UploadRequest.FromString(body).upload_id for body in publisher.uploads)
    assert first != second


def test_a_check_in_says_what_the_device_can_do(publisher, device):
    device.participate()
    (body,) = (body for _, path, _, body in publisher.server.requests if path.endswith("/CheckIn"))
    request = coordinator_pb2.CheckInRequest.FromString(body)
    assert request.known_model_version == 1
    assert list(request.capabilities.wire_versions) == [1]
    # The server is on this machine, so CLEAR is among them.
    modes = [model_pb2.PRIVACY_MODE_SECAGG, model_pb2.PRIVACY_MODE_SECAGG_DP, model_pb2.PRIVACY_MODE_CLEAR]
    assert list(request.capabilities.privacy_modes) == modes
    assert set(request.capabilities.upload_kinds) == {1, 2, 3}


def test_closed_items_are_not_uploaded(publisher, device):
    is_open = np.isin(np.arange(500), [*range(8), *range(16, 24)])
    publisher.publish(2, random_codes(1)[:17], is_open=is_open)
    publisher.assignment()
    assert device.participate().took_part
    update = coordinator_pb2.UploadRequest.FromString(publisher.uploads[0]).row_update
    assert list(memoryview(update.item_indices).cast("I")) == [*range(8), 16, 17, 18, 19]


def test_a_lost_answer_is_made_up_for_by_the_same_bytes(publisher, device, open_device):
    lose_answers(publisher)
    with pytest.raises(ServerUnavailableError):
        device.participate()
    assert (device.status().upload_pending, device.status().rounds) == (True, 0)
    device.rate("item 400", 1)  # changes later rounds, not this upload
    device.close()
    again = open_device()
    del publisher.answers["Upload"]
    before = len(calls(publisher))
    assert again.participate().took_part
    assert calls(publisher)[before:] == ["Upload"]
    assert len(set(sent_uploads(publisher))) == 1
    assert (again.status().upload_pending, again.status().rounds) == (False, 1)


def test_a_crash_between_sending_and_the_receipt_sends_the_same_bytes_again(
    publisher, device, open_device, monkeypatch
):
    from lightfr._wire import coordinator

    def crash(*_):
        raise CrashError

    with monkeypatch.context() as patch:
        patch.setattr(coordinator, "decode", lambda kind, body: crash() if "Upload" in kind.__name__ else kind())
        patch.setattr(coordinator, "check_in", lambda *_: _assignment_of(publisher))
        with pytest.raises(CrashError):
            device.participate()
    device.close()
    again = open_device()
    assert again.participate().took_part
    first, second = publisher.uploads
    assert first == second
    assert again.status().rounds == 1


def _assignment_of(publisher):
    from lightfr._wire.coordinator import Assignment

    return Assignment(b"r" * 16, 1, hashlib.sha256(publisher.current.manifest).digest(), 1_000_000, 60.0, b"", False)


def test_a_receipt_that_could_not_be_noted_is_asked_for_again(publisher, device, monkeypatch):
    """The server has the upload, the disk is full: the round counts once, when it can be written down."""
    from lightfr.errors import StoreWriteError

    update = device._store.update

    def full(values):
        if values.get("rounds"):
            raise StoreWriteError("write a record", OSError(28, "No space left on device"))
        update(values)

    with monkeypatch.context() as patch:
        patch.setattr(device._store, "update", full)
        with pytest.raises(StoreWriteError):
            device.participate()
    assert device.status().rounds == 0
    assert device.participate().took_part
    assert device.status().rounds == 1
    assert len(set(publisher.uploads)) == 1


@pytest.mark.parametrize("reason", sorted(TOO_LATE))
def test_an_upload_that_comes_too_late_is_dropped_and_the_device_comes_back_later(publisher, device, reason):
    refuse(publisher, reason)
    outcome = device.participate()
    assert (outcome.took_part, outcome.reason) == (False, "too_late")
    assert 1 <= outcome.retry_after_seconds <= 10
    assert (device.status().upload_pending, device.status().rounds) == (False, 0)
    del publisher.answers["Upload"]
    assert device.participate().took_part
    assert len(set(sent_uploads(publisher))) == 2


def test_a_kept_upload_that_comes_too_late_makes_room_for_the_next_round(publisher, device):
    lose_answers(publisher)
    with pytest.raises(ServerUnavailableError):
        device.participate()
    refused = iter([refusal("not_found", 404, "ROUND_UNKNOWN")])
    publisher.answers["Upload"] = lambda body: next(refused, None) or publisher._Upload(body)
    publisher.assignment(round_id=b"n" * 16)
    assert device.participate().took_part
    assert [coordinator_pb2.UploadRequest.FromString(body).round_id for body in publisher.uploads] == [b"n" * 16]


@pytest.mark.parametrize("reason", ["UPLOAD_INVALID", "MALFORMED", "TOO_LARGE"])
def test_an_upload_that_is_at_fault_itself_is_dropped_and_said(publisher, device, reason):
    refuse(publisher, reason)
    with pytest.raises(RefusedError) as refused:
        device.participate()
    assert refused.value.reason == reason
    assert not device.status().upload_pending
    del publisher.answers["Upload"]
    assert device.participate().took_part


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("IDENTITY", IdentityRefusedError),
        ("WIRE_VERSION", UpdateRequiredError),
        ("OVERLOADED", RefusedError),
        ("UNSPECIFIED", RefusedError),
    ],
)
def test_an_upload_refused_for_another_reason_is_kept(publisher, device, reason, kind):
    refuse(publisher, reason)
    with pytest.raises(kind):
        device.participate()
    assert device.status().upload_pending
    del publisher.answers["Upload"]
    assert device.participate().took_part
    assert len(set(sent_uploads(publisher))) == 1


def test_a_receipt_for_another_upload_does_not_count(publisher, device):
    receipt = coordinator_pb2.UploadResponse(upload_id=bytes(16), request_sha256=bytes(32))
    publisher.answers["Upload"] = (200, {}, receipt.SerializeToString())
    with pytest.raises(ProtocolError):
        device.participate()
    assert (device.status().upload_pending, device.status().rounds) == (True, 0)


def test_a_round_of_a_newer_model_is_synced_to_first(publisher, device):
    publisher.publish(2, random_codes(2))
    publisher.assignment()
    assert device.participate().took_part
    assert calls(publisher)[-3:] == ["CheckIn", "GetManifest", "Upload"]
    assert device.status().model_version == 2


def test_the_first_round_of_a_device_syncs_by_itself(publisher, open_device):
    publisher.publish(1, random_codes(1))
    publisher.assignment()
    client = open_device()
    assert client.participate().took_part
    assert client.status().model_version == 1


def test_a_round_of_a_model_that_is_not_to_be_had_is_left(publisher, device):
    publisher.assignment(manifest_sha256=bytes(32))
    with pytest.raises(ServerUnavailableError, match="check in again"):
        device.participate()
    assert (publisher.uploads, device.status().upload_pending) == ([], False)


def test_an_upload_above_the_servers_limit_is_not_sent(publisher, device):
    device.participate()
    size = len(publisher.uploads[0])
    publisher.assignment(upload_limit_bytes=size - 1)
    with pytest.raises(ProtocolError, match=f"{size} bytes, the server takes {size - 1}"):
        device.participate()
    assert (len(publisher.uploads), device.status().upload_pending) == (1, False)
    publisher.assignment(upload_limit_bytes=size)
    assert device.participate().took_part


@pytest.mark.parametrize("mode", [model_pb2.PRIVACY_MODE_UNSPECIFIED, 4, 99])
def test_a_signed_privacy_mode_that_is_not_known_is_refused(publisher, device, mode):
    publisher.publish(2, random_codes(2), privacy_mode=mode)
    publisher.assignment()
    with pytest.raises(NotPrivateError):
        device.participate()
    before = len(calls(publisher))
    with pytest.raises(NotPrivateError):
        device.participate()
    # The model is held now, so that the second time not even a check-in was sent.
    assert (calls(publisher)[before:], publisher.uploads) == ([], [])
    assert len(device.recommend(3)) == 3


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (coordinator_pb2.RETRY_REASON_UNSPECIFIED, "round_full"),
        (coordinator_pb2.RETRY_REASON_ROUND_FULL, "round_full"),
        (coordinator_pb2.RETRY_REASON_ALREADY_UPLOADED, "already_uploaded"),
        (coordinator_pb2.RETRY_REASON_AGGREGATING, "aggregating"),
        (coordinator_pb2.RETRY_REASON_TRAINING_FINISHED, "training_finished"),
        (coordinator_pb2.RETRY_REASON_NOT_CAPABLE, "not_capable"),
        (77, "round_full"),
    ],
)
def test_a_device_without_a_place_says_why_and_comes_back_within_the_window(publisher, device, sent, said):
    window = coordinator_pb2.RetryWindow(earliest_ms=2_000, latest_ms=9_000, reason=sent)
    publisher.answers["CheckIn"] = (200, {}, coordinator_pb2.CheckInResponse(retry_window=window).SerializeToString())
    outcomes = [device.participate() for _ in range(12)]
    assert {(outcome.took_part, outcome.reason) for outcome in outcomes} == {(False, said)}
    pauses = [outcome.retry_after_seconds for outcome in outcomes]
    assert all(2 <= pause <= 9 for pause in pauses)
    assert len(set(pauses)) > 1


def test_a_window_of_one_moment_is_that_moment(publisher, device):
    window = coordinator_pb2.RetryWindow(earliest_ms=1500, latest_ms=1500)
    publisher.answers["CheckIn"] = (200, {}, coordinator_pb2.CheckInResponse(retry_window=window).SerializeToString())
    assert device.participate().retry_after_seconds == 1.5


def test_ratings_made_while_an_upload_is_on_its_way_wait_for_nothing(publisher, device):
    waiting, go_on = threading.Event(), threading.Event()

    def slow(body):
        waiting.set()
        go_on.wait(20)
        return publisher._Upload(body)

    publisher.answers["Upload"] = slow
    thread = threading.Thread(target=device.participate)
    thread.start()
    try:
        assert waiting.wait(20)
        device.rate("item 300", 4)
        assert len(device.recommend(3)) == 3
        assert device.status().upload_pending
        assert thread.is_alive()
    finally:
        go_on.set()
        thread.join()
    assert (device.status().rounds, device.status().rating_count) == (1, 22)
