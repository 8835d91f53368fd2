"""How a client drives a round: what is kept, when it is sent, and what ends it."""

import threading

import pytest

from lightfr._wire import secure
from lightfr.errors import PrivacyError, RefusedError, ServerUnavailableError
from lightfr.kept_rounds import finish, kept_round
from lightfr.rounds import ClearRound, RoundParticipant
from tests.sdk.test_rounds import clear_round, place


class MemoryStore:
    """Named values, and what they were when each message was sent."""

    def __init__(self):
        self.values = {}

    def get(self, name):
        return self.values.get(name)

    def update(self, changes):
        self.values.update(changes)
        self.values = {name: value for name, value in self.values.items() if value is not None}


class Script:
    """A server that answers GetStep from a list; an exception in it is raised."""

    def __init__(self, monkeypatch, steps):
        self.steps, self.sent = list(steps), []
        monkeypatch.setattr(secure, "send", lambda channel, method, request: self.sent.append(method))
        monkeypatch.setattr(secure, "next_step", self._next)

    def _next(self, channel, round_id):
        step = self.steps.pop(0) if self.steps else secure.Wait(0.001)
        if isinstance(step, Exception):
            raise step
        return step


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def masked(store):
    participant = RoundParticipant.begin(place(), bytes(32), 2)
    store.update(participant.values())
    return participant


def run(current, store, stop=None):
    acknowledged = []
    took_part = finish(current, store, None, None, acknowledged.append, stop or threading.Event())
    return took_part, acknowledged


def test_a_round_that_is_done_leaves_its_values_to_whoever_counts_it(monkeypatch, store, masked):
    script = Script(monkeypatch, [secure.Wait(0.001), secure.Done()])
    assert run(masked, store) == (True, ["AdvertiseKeys"])
    assert script.sent == ["AdvertiseKeys"]
    assert isinstance(kept_round(store), RoundParticipant)


def test_a_device_that_waited_longer_than_all_phases_leaves(monkeypatch, store):
    masked = RoundParticipant.begin(place(deadline_seconds=0.001), bytes(32), 2)
    store.update(masked.values())
    Script(monkeypatch, [])
    assert run(masked, store) == (False, ["AdvertiseKeys"])
    assert store.values == {}


def test_a_device_that_is_stopped_leaves_and_waits_no_more(monkeypatch, store):
    masked = RoundParticipant.begin(place(deadline_seconds=3600.0), bytes(32), 2)
    store.update(masked.values())
    stop = threading.Event()
    Script(monkeypatch, [secure.Wait(3600.0)])
    monkeypatch.setattr(stop, "wait", lambda seconds: stop.set())
    assert run(masked, store, stop) == (False, ["AdvertiseKeys"])
    assert store.values == {}


@pytest.mark.parametrize("error", [PrivacyError("no"), RefusedError("x", "OVERLOADED", "busy")])
def test_an_error_that_ends_the_round_is_raised_and_the_keys_are_gone(monkeypatch, store, masked, error):
    Script(monkeypatch, [error])
    with pytest.raises(type(error)):
        run(masked, store)
    assert store.values == {}


def test_a_refusal_that_says_too_late_is_no_error(monkeypatch, store, masked):
    Script(monkeypatch, [RefusedError("x", "ROUND_CLOSED", "late")])
    assert run(masked, store) == (False, ["AdvertiseKeys"])
    assert store.values == {}


def test_a_server_that_is_gone_does_not_end_the_round(monkeypatch, store, masked):
    Script(monkeypatch, [ServerUnavailableError("gone")])
    with pytest.raises(ServerUnavailableError):
        run(masked, store)
    assert kept_round(store).outgoing == masked.outgoing


def test_a_round_in_the_clear_asks_for_no_steps(monkeypatch, store):
    Script(monkeypatch, [AssertionError("was asked")])
    clear = clear_round()
    store.update(clear.values())
    assert run(clear, store) == (True, ["Upload"])
    assert isinstance(kept_round(store), ClearRound)


def test_each_answer_is_kept_before_it_is_sent(monkeypatch, store, masked):
    def answer(step, make_vector):
        masked._outgoing = b"ShareKeys\nshares"
        return True

    kept_when_sent = []
    Script(monkeypatch, [secure.Share(None, b""), secure.Done()])
    monkeypatch.setattr(masked, "answer", answer)
    monkeypatch.setattr(secure, "send", lambda *_: kept_when_sent.append(store.get("secure_outgoing")))
    assert run(masked, store) == (True, ["AdvertiseKeys", "ShareKeys"])
    assert kept_when_sent[0].startswith(b"AdvertiseKeys\n")
    assert kept_when_sent[1] == b"ShareKeys\nshares"
