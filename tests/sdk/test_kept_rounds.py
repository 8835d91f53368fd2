"""How a client drives a round: what is kept, when it is sent, and what ends it."""

import math
import threading
import time
from types import SimpleNamespace

import pytest

from lightfr._wire import secure
from lightfr.budget import Budget
from lightfr.errors import PrivacyError, RefusedError, ServerUnavailableError
from lightfr.kept_rounds import Driver, Offer, kept_round
from lightfr.participation import Reason
from lightfr.rounds import ClearRound, RoundParticipant
from lightfr.views import views_in
from tests.sdk.test_rounds import METHODS, Server, begun, clear_round, one, vector_of


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
    participant = one()
    store.update(participant.values())
    return participant


def run(current, store, stop=None, budget=Budget(), spend=lambda participant: {}, make_vector=None):  # noqa: B008
    acknowledged = []
    channel = SimpleNamespace(ends=math.inf)
    driver = Driver(store, channel, make_vector, spend, acknowledged.append, stop or threading.Event(), budget)
    finished = driver.finish(current)
    assert channel.ends == math.inf
    return finished, acknowledged


@pytest.mark.parametrize("method", ["Upload", "SignSurvivors", "RevealShares"])
def test_a_round_that_is_done_leaves_its_values_to_whoever_counts_it(monkeypatch, store, masked, method):
    masked._outgoing = method.encode() + b"\n"
    script = Script(monkeypatch, [secure.Wait(0.001), secure.Done()])
    assert run(masked, store) == (True, [method])
    assert script.sent == [method]
    assert isinstance(kept_round(store), RoundParticipant)


@pytest.mark.parametrize("method", ["AdvertiseKeys", "ShareKeys", "AcknowledgeShares", "SignIncluded"])
def test_a_round_that_is_said_to_be_done_before_the_upload_is_not_counted(monkeypatch, store, masked, method):
    masked._outgoing = method.encode() + b"\n"
    Script(monkeypatch, [secure.Done()])
    assert run(masked, store) == (False, [method])
    assert store.values == {}


def test_a_call_that_outlasts_the_patience_ends_the_round(monkeypatch, store, masked):
    Script(monkeypatch, [ServerUnavailableError("the call was interrupted, or its time is over")])
    assert run(masked, store, budget=Budget(phase_seconds=0.0)) == (False, ["AdvertiseKeys"])
    assert store.values == {}


def test_no_call_of_a_round_waits_longer_than_the_device_does(monkeypatch, store, masked):
    began, ends = time.monotonic(), []
    monkeypatch.setattr(secure, "send", lambda channel, *_: ends.append(channel.ends - began))
    monkeypatch.setattr(secure, "next_step", lambda channel, _: ends.append(channel.ends - began) or secure.Done())
    run(masked, store, budget=Budget(phase_seconds=20.0))
    run(masked, store, budget=Budget(round_seconds=30.0))
    assert all(20 <= end < 30 for end in ends[:2])
    assert all(30 <= end < 40 for end in ends[2:])


@pytest.mark.parametrize(
    ("deadline", "budget"),
    [
        (0.001, Budget()),
        (86_400.0, Budget(phase_seconds=0.002)),
        (86_400.0, Budget(round_seconds=0.002)),
    ],
)
def test_a_device_leaves_after_the_deadline_or_its_own_patience_whichever_comes_first(
    monkeypatch, store, deadline, budget
):
    masked = one(deadline_seconds=deadline)
    store.update(masked.values())
    Script(monkeypatch, [])
    assert run(masked, store, budget=budget) == (False, ["AdvertiseKeys"])
    assert store.values == {}


def test_a_server_cannot_make_a_device_wait_longer_than_its_patience(monkeypatch, store, masked):
    stop, waited = threading.Event(), []
    Script(monkeypatch, [secure.Wait(86_400.0), secure.Done()])
    monkeypatch.setattr(stop, "wait", waited.append)
    run(masked, store, stop, Budget(phase_seconds=20.0))
    assert 0 < waited[0] <= 20.0


def test_a_device_that_is_stopped_leaves_and_waits_no_more(monkeypatch, store):
    masked = one(deadline_seconds=3600.0)
    store.update(masked.values())
    stop = threading.Event()
    Script(monkeypatch, [secure.Wait(3600.0)])
    monkeypatch.setattr(stop, "wait", lambda seconds: stop.set())
    assert run(masked, store, stop) == (False, ["AdvertiseKeys"])
    assert store.values == {}


def test_an_offer_that_is_cancelled_between_two_rounds_checks_in_no_more(store):
    """The round that was begun before is over for this device; without a channel, any call would be an error."""
    stop, user = threading.Event(), SimpleNamespace(model=None, store=store)
    store.update(one().values())
    stop.set()
    offer = Offer(user, None, terms=None, ledger=None, trusted=None, progress=None, stop=stop)
    assert offer.make().reason is Reason.CANCELLED
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


def test_each_answer_and_what_it_costs_are_kept_before_it_is_sent(monkeypatch, store, masked):
    def answer(step, make_vector):
        masked._outgoing = b"Upload\nvector"
        return True

    kept_when_sent = []
    Script(monkeypatch, [secure.Upload(b"", b""), secure.Done()])
    monkeypatch.setattr(masked, "answer", answer)
    monkeypatch.setattr(secure, "send", lambda *_: kept_when_sent.append(dict(store.values)))
    outcome = run(masked, store, spend=lambda participant: {"cost": participant.outgoing.method.encode()})
    assert outcome == (True, ["AdvertiseKeys", "Upload"])
    before, after = kept_when_sent
    assert before["secure_outgoing"].startswith(b"AdvertiseKeys\n")
    assert "cost" not in before
    assert (after["secure_outgoing"], after["cost"]) == (b"Upload\nvector", b"Upload")


class Walking:
    """A cohort in memory, of which device 0 is driven and the others follow."""

    def __init__(self, monkeypatch, error=None):
        self.server, self.sent = Server(), []
        self.participants = begun(self.server)
        self._error = error
        monkeypatch.setattr(secure, "send", self._send)
        monkeypatch.setattr(secure, "next_step", self._next)

    def _send(self, channel, method, request):
        self.sent.append(method)
        self.server.take(0, self.participants[0].outgoing)
        for number in range(1, len(self.participants)):
            if method != "AdvertiseKeys":
                self.participants[number].answer(self.server.step(method, number), vector_of(number))
            self.server.take(number, self.participants[number].outgoing)

    def _next(self, channel, round_id):
        if len(self.sent) == len(METHODS):
            return secure.Done()
        due = METHODS[len(self.sent)]
        if self._error is not None and due == "SignSurvivors":
            raise self._error
        return self.server.step(due, 0)


def test_the_seven_steps_are_walked_in_order_and_what_was_told_can_be_kept(monkeypatch, store):
    walking = Walking(monkeypatch)
    current = walking.participants[0]
    store.update(current.values())
    assert run(current, store, make_vector=vector_of(0)) == (True, METHODS)
    assert walking.server.sums()["user_sum"].tolist() == [10] * 8
    assert current.view().survivors == b"\x0f"


@pytest.mark.parametrize("error", [PrivacyError("no"), RefusedError("x", "ROUND_CLOSED", "late")])
def test_a_round_that_fails_after_the_roster_leaves_its_view(monkeypatch, store, error):
    walking = Walking(monkeypatch, error)
    current = walking.participants[0]
    store.update(current.values())
    try:
        run(current, store, make_vector=vector_of(0))
    except PrivacyError:
        assert isinstance(error, PrivacyError)
    assert store.values.keys() == {"views"}
    (view,) = views_in(store.get)
    assert view == current.view()
    assert (view.included, view.survivors) == (b"\x0f", b"")


def test_a_round_that_fails_before_the_roster_leaves_nothing(monkeypatch, store, masked):
    Script(monkeypatch, [PrivacyError("no")])
    with pytest.raises(PrivacyError):
        run(masked, store)
    assert store.values == {}
