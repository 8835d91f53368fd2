"""A round can be watched and stopped: by the app that cancels it, and by forget()."""

import threading

import pytest

from lightfr import Reason, RoundStage
from lightfr.errors import InvalidInputError, ServerUnavailableError, StoreClosedError
from tests.sdk.client.publisher import random_codes
from tests.sdk.client.test_secure import COHORT, cohort_of, secure, together  # noqa: F401 # fixtures among them

SECURE_STAGES = list(RoundStage)


class HeldServer:
    """Answers one method only when the test says so."""

    def __init__(self, publisher, method):
        self.asked, self.go_on = threading.Event(), threading.Event()
        publisher.answers[method] = self._answer

    def _answer(self, body):
        self.asked.set()
        self.go_on.wait(30)
        return 503, {}, b""


@pytest.fixture
def device(publisher, open_device):
    publisher.publish(1, random_codes(1))
    publisher.assignment()
    client = open_device()
    client.sync()
    client.rate_many([(f"item {number}", 5) for number in range(20)])
    return client


def in_thread(call):
    """Begin a call in another thread; returns a function that waits for its result."""
    results = []
    thread = threading.Thread(target=lambda: results.extend(together(call)))
    thread.start()

    def result():
        thread.join(20)
        assert not thread.is_alive()
        return results[0]

    return result


@pytest.mark.parametrize("cancel", [None, threading.Event()])
def test_progress_names_each_stage_of_a_secure_round_in_the_calling_thread(secure, cancel):  # noqa: F811
    _, clients = secure(rounds=1)
    seen, others = ({number: [] for number in range(COHORT)} for _ in range(2))

    def watched(number):
        def take_part():
            here = threading.get_ident()

            def note(stage):
                seen[number].append((stage, threading.get_ident() == here))
                others[number].append(clients[number].status().others_in_round)

            return clients[number].participate(note, cancel)

        return take_part

    assert all(outcome.took_part for outcome in together(*map(watched, range(COHORT))))
    assert all(stages == [(stage, True) for stage in SECURE_STAGES] for stages in seen.values())
    assert all(isinstance(stage, RoundStage) for stage, _ in seen[0])
    # Who cancels hears of a stage while the round may be further on already.
    if cancel is None:
        assert all(told == [None, None, *[COHORT - 1] * 6] for told in others.values())
    assert [client.status().others_in_round for client in clients] == [None] * COHORT


def test_progress_of_a_round_in_the_clear_is_placed_and_uploaded(publisher, device):
    stages = []
    assert device.participate(stages.append).took_part
    assert stages == [RoundStage.PLACED, RoundStage.UPLOADED]


def test_what_progress_raises_ends_the_call(device):
    def refuse(stage):
        raise KeyError(stage)

    with pytest.raises(KeyError):
        device.participate(refuse)


@pytest.mark.parametrize("method", ["CheckIn", "Upload"])
def test_a_cancelled_call_returns_while_the_server_says_nothing(publisher, device, method):
    usual = dict(publisher.answers)
    held, cancel = HeldServer(publisher, method), threading.Event()
    result = in_thread(lambda: device.participate(cancel=cancel))
    assert held.asked.wait(20)
    cancel.set()
    outcome = result()
    assert not held.go_on.is_set()
    assert (outcome.took_part, outcome.reason) == (False, Reason.CANCELLED)
    held.go_on.set()
    publisher.answers = usual
    # The round was left, so that this is another upload.
    assert device.participate().took_part
    assert device.status().rounds == 1


def test_a_call_that_was_cancelled_before_it_began_asks_for_no_place(publisher, device):
    cancel = threading.Event()
    cancel.set()
    assert device.participate(cancel=cancel).reason is Reason.CANCELLED


def test_a_secure_round_is_left_when_the_app_cancels_while_it_waits_for_the_cohort(secure):  # noqa: F811
    _, clients = secure(rounds=1, deadline_seconds=20)
    sent, cancel = threading.Event(), threading.Event()
    result = in_thread(lambda: clients[0].participate(lambda stage: stage == "keys_sent" and sent.set(), cancel))
    assert sent.wait(20)
    assert clients[0].status().upload_pending
    cancel.set()
    assert result().reason is Reason.CANCELLED
    assert not clients[0].status().upload_pending


def test_forget_does_not_wait_for_a_round(publisher, device):
    held = HeldServer(publisher, "Upload")
    result = in_thread(device.participate)
    assert held.asked.wait(20)
    device.forget()
    assert not held.go_on.is_set()
    assert result().reason is Reason.CANCELLED
    held.go_on.set()
    assert not device._user.models._path.exists()
    with pytest.raises(StoreClosedError):
        device.participate()


def test_forget_leaves_the_models_to_a_call_that_still_holds_the_network(device):
    with device._network:
        device.forget()
        assert device._user.models._path.exists()
    with pytest.raises(StoreClosedError):
        device.sync()
    assert not device._user.models._path.exists()


def test_forget_stops_a_sync(publisher, device):
    held = HeldServer(publisher, "GetManifest")
    result = in_thread(device.sync)
    assert held.asked.wait(20)
    device.forget()
    assert isinstance(result(), ServerUnavailableError)
    held.go_on.set()
    assert not device._user.models._path.exists()


def test_close_stops_a_sync(publisher, device):
    held = HeldServer(publisher, "GetManifest")
    result = in_thread(device.sync)
    assert held.asked.wait(20)
    device.close()
    assert isinstance(result(), ServerUnavailableError)
    held.go_on.set()
    assert device._channel._connection is None


def test_close_leaves_the_connection_to_a_call_that_uses_it(device):
    device.sync()
    connection = device._channel._connection
    with device._network:
        device.close()
        assert device._channel._connection is connection is not None
    with pytest.raises(StoreClosedError):
        device.sync()
    assert device._channel._connection is None


@pytest.mark.parametrize("call", ["sync", "participate"])
def test_progress_cannot_use_the_network_that_its_own_call_holds(publisher, open_device, call):
    """It would wait for itself, for ever. Whatever `progress` raises ends the round."""
    publisher.publish(1, random_codes(1))
    publisher.assignment()
    client = open_device()
    client.sync()
    client.rate("item 1", 5)
    with pytest.raises(InvalidInputError, match="once participate\\(\\) has returned"):
        client.participate(lambda _stage: getattr(client, call)())
    assert not client.sync()
