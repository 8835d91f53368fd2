"""What a device gives is counted durably, and no clock that is set back makes it give more."""

import json

import pytest

from lightfr.budget import Budget, Ledger, Spent
from lightfr.errors import InvalidInputError, OutOfRangeError
from tests.sdk.test_kept_rounds import MemoryStore

PERIOD = 30 * 86_400
NOON = 1_700_000_000.0


class Clock:
    def __init__(self):
        self.now = NOON

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def ledger(store, clock):
    return Ledger(store, Budget(rounds_per_month=3, gate_refreshes_per_month=1), clock)


def upload(store, ledger, is_gate_refresh=False, privacy_loss=0.0):
    store.update(ledger.after_upload(is_gate_refresh=is_gate_refresh, privacy_loss=privacy_loss))


def test_a_month_has_12_rounds_and_one_gate_refresh_unless_the_app_says_otherwise():
    assert Budget() == (12, 1, 600.0, 1800.0)


@pytest.mark.parametrize("name", Budget._fields)
def test_a_negative_budget_is_refused(name):
    with pytest.raises(OutOfRangeError) as refused:
        Budget(**{name: -1}).require_valid()
    assert (refused.value.what, refused.value.actual) == (f"budget.{name}", -1)
    assert (refused.value.minimum, refused.value.maximum) == (0, float("inf"))
    Budget(**{name: 0}).require_valid()


@pytest.mark.parametrize("name", Budget._fields)
@pytest.mark.parametrize("value", ["12", None])
def test_a_budget_that_is_no_number_is_refused_by_its_name(name, value):
    with pytest.raises(InvalidInputError, match=f"budget.{name} must be a number, not {type(value).__name__}"):
        Budget(**{name: value}).require_valid()


@pytest.mark.parametrize("name", ["rounds_per_month", "gate_refreshes_per_month"])
def test_a_budget_counts_whole_rounds(name):
    with pytest.raises(InvalidInputError, match=f"budget.{name} must be a whole number, not float"):
        Budget(**{name: 2.5}).require_valid()
    Budget(**{name: float("inf")}).require_valid()


def test_a_new_device_has_spent_nothing(ledger):
    assert ledger.spent() == Spent([], [], 0, 0.0)
    assert ledger.seconds_until_room(is_gate_refresh=False) == 0


def test_room_comes_back_30_days_after_the_upload_that_took_it(store, ledger, clock):
    for hour in range(3):
        assert ledger.seconds_until_room(is_gate_refresh=False) == 0
        clock.now = NOON + 3600 * hour
        upload(store, ledger)
    assert ledger.seconds_until_room(is_gate_refresh=False) == PERIOD - 2 * 3600
    clock.now = NOON + PERIOD - 1
    assert ledger.seconds_until_room(is_gate_refresh=False) == 1
    clock.now = NOON + PERIOD
    assert ledger.seconds_until_room(is_gate_refresh=False) == 0
    upload(store, ledger)
    assert ledger.seconds_until_room(is_gate_refresh=False) == 3600


def test_training_rounds_and_gate_refreshes_are_counted_apart(store, ledger):
    upload(store, ledger, is_gate_refresh=True)
    assert ledger.seconds_until_room(is_gate_refresh=True) == PERIOD
    assert ledger.seconds_until_room(is_gate_refresh=False) == 0


def test_a_budget_of_nothing_is_never_open(store, clock):
    ledger = Ledger(store, Budget(rounds_per_month=0), clock)
    assert ledger.seconds_until_room(is_gate_refresh=False) == PERIOD


def test_a_clock_that_is_set_back_does_not_open_the_budget(store, ledger, clock):
    for _ in range(3):
        upload(store, ledger)
    for step_back in (1, PERIOD, 400 * PERIOD):
        clock.now = NOON - step_back
        assert ledger.seconds_until_room(is_gate_refresh=False) > 0


@pytest.mark.parametrize("wrong_by", [-400 * PERIOD, -PERIOD, PERIOD, 400 * PERIOD])
def test_a_clock_that_is_wrong_for_a_while_opens_nothing_once_it_is_right_again(store, ledger, clock, wrong_by):
    for _ in range(3):
        upload(store, ledger)
    clock.now = NOON + wrong_by
    ledger.spent()
    upload(store, ledger, is_gate_refresh=True)
    upload(store, ledger)
    store.update(ledger.after_reveal(7))
    clock.now = NOON + 60
    assert ledger.seconds_until_room(is_gate_refresh=False) > 0
    assert ledger.seconds_until_room(is_gate_refresh=True) > 0 or wrong_by < 0


@pytest.mark.parametrize("behind_by", [1, PERIOD, 400 * PERIOD])
def test_rounds_that_a_clock_let_in_while_it_was_behind_count_once_it_is_right_again(store, ledger, clock, behind_by):
    """They are no older than the one before them."""
    upload(store, ledger)
    clock.now = NOON - behind_by
    for _ in range(2):
        assert ledger.seconds_until_room(is_gate_refresh=False) == 0
        upload(store, ledger)
    clock.now = NOON + 60
    assert ledger.seconds_until_room(is_gate_refresh=False) == PERIOD - 60
    clock.now = NOON + PERIOD
    assert ledger.seconds_until_room(is_gate_refresh=False) == 0


def test_an_upload_of_this_moment_is_older_than_those_after_it_whatever_their_clock_says(store, ledger, clock):
    upload(store, ledger)
    clock.now = NOON - PERIOD
    upload(store, ledger)
    clock.now = NOON
    assert ledger.spent().rounds == [NOON, NOON]


def test_an_upload_of_a_clock_that_was_ahead_makes_no_later_one_newer(store, ledger, clock):
    clock.now = NOON + 400 * PERIOD
    upload(store, ledger)
    for day in range(2):
        clock.now = NOON + 86_400 * day
        upload(store, ledger)
    assert ledger.spent().rounds == [NOON + 86_400, NOON, NOON + 86_400]
    clock.now = NOON + PERIOD
    assert ledger.seconds_until_room(is_gate_refresh=False) == 0


def test_no_more_times_are_kept_than_the_budget_counts(store, clock):
    ledger = Ledger(store, Budget(rounds_per_month=3, gate_refreshes_per_month=2), clock)
    for is_gate_refresh in (False, True) * 10:
        upload(store, ledger, is_gate_refresh)
        clock.now += PERIOD
    kept = json.loads(store.get("spent"))
    assert kept["rounds"] == [NOON + PERIOD * at for at in (14, 16, 18)]
    assert kept["gate_refreshes"] == [NOON + PERIOD * at for at in (17, 19)]


def test_those_of_the_last_30_days_are_kept_for_a_budget_that_grows(store, ledger, clock):
    for _ in range(5):
        upload(store, ledger)
    assert len(Ledger(store, Budget(rounds_per_month=4), clock).spent().rounds) == 5


def test_what_has_just_had_its_30_days_is_not_kept(store, clock):
    ledger = Ledger(store, Budget(rounds_per_month=0), clock)
    for _ in range(2):
        upload(store, ledger)
        clock.now += PERIOD
    assert json.loads(store.get("spent"))["rounds"] == [NOON + PERIOD]


def test_what_is_spent_is_found_again_by_another_process(store, ledger, clock):
    upload(store, ledger, privacy_loss=0.5)
    upload(store, ledger, privacy_loss=0.25)
    store.update(ledger.after_reveal(7))
    assert Ledger(store, Budget(), clock).spent() == Spent([NOON, NOON], [], 7, 0.75)


def test_uploads_of_more_than_30_days_ago_are_forgotten_but_not_versions_and_losses(store, ledger, clock):
    upload(store, ledger, privacy_loss=0.5)
    store.update(ledger.after_reveal(7))
    clock.now += PERIOD
    upload(store, ledger, is_gate_refresh=True)
    assert Ledger(store, Budget(), clock).spent() == Spent([], [NOON + PERIOD], 7, 0.5)


def test_a_budget_that_has_shrunk_waits_for_as_many_as_there_is_no_room_for(store, ledger, clock):
    for hour in range(3):
        clock.now = NOON + 3600 * hour
        upload(store, ledger)
    smaller = Ledger(store, Budget(rounds_per_month=1), clock)
    assert smaller.seconds_until_room(is_gate_refresh=False) == PERIOD
