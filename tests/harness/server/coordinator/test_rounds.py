"""Places, closing and pace, with a clock that only moves when told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightfr.errors import OutOfRangeError
from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.server.coordinator.book import RoundBook
from lightfr_harness.server.coordinator.plan import LONGEST_MS, Plan
from lightfr_harness.server.coordinator.refusals import CODE_OF_REASON, STATUS_OF_CODE, Refusal
from lightfr_harness.server.coordinator.rounds import (
    ABANDONED,
    AGGREGATING,
    FINISHED,
    REMEMBERED_ROUNDS,
    Receipt,
    Round,
)

PLAN = Plan(goal=4, over_selection=1.5, minimum=2, deadline_seconds=60)


def new_round(number=1, now=100.0, plan=PLAN):
    return Round.new(number, 1, bytes(32), plan, now)


def book(plan=PLAN):
    return RoundBook(plan, [], new_round(plan=plan))


def upload(a_round, device):
    a_round.take(device, Receipt(bytes(16), bytes(32)), 10)


@pytest.mark.parametrize(
    ("goal", "factor", "places"), [(4, 1.5, 6), (100, 1.1, 110), (3, 1.3, 4), (1, 1.0, 1), (64, 1.3, 84)]
)
def test_places_are_the_goal_times_over_selection_rounded_up(goal, factor, places):
    assert Plan(goal=goal, over_selection=factor).places == places


@pytest.mark.parametrize(
    "wrong",
    [{"goal": 0}, {"over_selection": 0.9}, {"minimum": 65}, {"minimum": 0}, {"deadline_seconds": 0}, {"rounds": 0}],
)
def test_a_plan_outside_its_ranges_is_refused(wrong):
    with pytest.raises(OutOfRangeError):
        Plan(**wrong)


def test_there_are_as_many_places_as_planned_and_each_device_keeps_its_own():
    b = book()
    for n in range(6):
        assert b.check_in(f"d{n}", 100.0) == (b.current, True)
    assert b.check_in("d6", 100.0) == pb.RETRY_REASON_ROUND_FULL
    assert b.check_in("d2", 100.0) == (b.current, False)


def test_time_starts_with_the_first_place():
    b = book()
    assert b.current.deadline is None
    assert b.closes_as(1e9) is None
    b.check_in("a", 500.0)
    b.check_in("b", 530.0)
    assert b.current.deadline == 560.0
    assert b.current.deadline_ms(559.5) == 500
    assert b.closes_as(559.9) is None


@pytest.mark.parametrize(("uploads", "state"), [(0, ABANDONED), (1, ABANDONED), (2, AGGREGATING), (3, AGGREGATING)])
def test_at_the_deadline_the_minimum_decides(uploads, state):
    b = book()
    for n in range(6):
        b.check_in(f"d{n}", 100.0)
    for n in range(uploads):
        upload(b.current, f"d{n}")
    assert b.closes_as(159.9) is None
    assert b.closes_as(160.0) == state
    assert b.check_in("late", 160.0) == pb.RETRY_REASON_AGGREGATING


def test_the_goal_closes_a_round_at_once_and_stragglers_are_refused():
    b = book()
    for n in range(6):
        b.check_in(f"d{n}", 100.0)
    for n in range(4):
        assert b.closes_as(101.0) is None
        upload(b.current, f"d{n}")
    assert b.closes_as(101.0) == AGGREGATING
    with pytest.raises(Refusal) as refused:
        b.current.require_place("d5", bytes(32), 101.0)
    assert refused.value.name == "round_closed"
    assert b.check_in("d0", 101.0) == pb.RETRY_REASON_ALREADY_UPLOADED
    assert b.check_in("d5", 101.0) == pb.RETRY_REASON_AGGREGATING


def test_a_round_that_is_being_added_up_stays_so_even_if_the_clock_goes_back():
    b = book()
    b.check_in("a", 100.0)
    upload(b.current, "a")
    b.current.state = AGGREGATING
    assert not b.current.takes_uploads(0.0)
    assert b.closes_as(0.0) == AGGREGATING


def test_ended_rounds_are_found_until_sixteen_others_have_ended():
    b = book()
    first = b.current.round_id
    for number in range(2, REMEMBERED_ROUNDS + 2):
        b.current.state, b.current.ended_at = FINISHED, 100.0
        b.replace_current(new_round(number))
        assert b.find(first).number == 1
    b.current.state, b.current.ended_at = FINISHED, 100.0
    b.replace_current(None)
    with pytest.raises(Refusal) as refused:
        b.find(first)
    assert refused.value.name == "round_unknown"


def test_after_the_last_round_windows_are_long():
    b = RoundBook(PLAN, [], None)
    assert b.check_in("a", 0.0) == pb.RETRY_REASON_TRAINING_FINISHED
    window = b.retry_window(pb.RETRY_REASON_TRAINING_FINISHED, 0.0)
    assert 3_600_000 <= window.earliest_ms < window.latest_ms <= LONGEST_MS


def end(b, seconds):
    b.current.state, b.current.ended_at = FINISHED, b.current.started_at + seconds
    b.replace_current(new_round(b.current.number + 1, b.current.ended_at))


def test_the_window_begins_when_recent_rounds_would_have_ended():
    b = book()
    for seconds in (10.0, 30.0):
        b.check_in("a", b.current.opened_at)
        end(b, seconds)
    started = b.current.opened_at
    b.check_in("a", started)
    window = b.retry_window(pb.RETRY_REASON_ROUND_FULL, started + 5)
    assert (window.earliest_ms, window.latest_ms) == (15_000, 35_000)
    late = b.retry_window(pb.RETRY_REASON_ROUND_FULL, started + 50)
    assert (late.earliest_ms, late.latest_ms) == (0, 50_000)


def test_a_first_round_that_goes_on_and_on_is_asked_for_less_and_less():
    """It may last as long again. Nobody is sent away for longer than the phases of a round can take."""
    b = book()
    b.check_in("a", b.current.opened_at)
    began, latest = b.current.started_at, []
    for seconds in (1, 30, 300, 1_000, 86_400):
        window = b.retry_window(pb.RETRY_REASON_ROUND_FULL, began + seconds)
        assert window.earliest_ms <= 6_000
        latest.append(window.latest_ms)
    assert latest == [11_000, 30_000, 300_000, 420_000, 420_000]


def test_a_server_that_was_down_for_a_day_does_not_send_devices_away_for_one():
    """The round that was open meanwhile has lasted for a day by the clock, and none takes longer than its phases."""
    b = book()
    b.check_in("a", 100.0)
    end(b, 86_400.0)
    b.check_in("a", b.current.opened_at)
    window = b.retry_window(pb.RETRY_REASON_ROUND_FULL, b.current.opened_at)
    assert window.earliest_ms == 7 * 60_000


def test_a_crowd_of_ten_times_the_places_is_spread_over_ten_rounds():
    b = book()
    b.check_in("a", 100.0)
    end(b, 20.0)
    for n in range(60):
        b.check_in(f"d{n}", b.current.opened_at)
    window = b.retry_window(pb.RETRY_REASON_ROUND_FULL, b.current.opened_at)
    assert window.latest_ms - window.earliest_ms == 200_000


def test_places_of_all_cohorts_count_against_the_crowd():
    b = book()
    b.check_in("a", 100.0)
    end(b, 20.0)
    b.current.cohorts = 5
    for n in range(60):
        b.check_in(f"d{n}", b.current.opened_at)
    window = b.retry_window(pb.RETRY_REASON_ROUND_FULL, b.current.opened_at)
    assert window.latest_ms - window.earliest_ms == 40_000


def test_the_last_rounds_crowd_is_remembered():
    b = book()
    for n in range(60):
        b.check_in(f"d{n}", 100.0)
    end(b, 20.0)
    b.check_in("a", b.current.opened_at)
    window = b.retry_window(pb.RETRY_REASON_ROUND_FULL, b.current.opened_at)
    assert window.latest_ms - window.earliest_ms == 200_000


@given(st.floats(0, 1e6), st.integers(0, 50), st.floats(-1e5, 1e7))
def test_every_window_is_legal_and_at_least_a_second_wide(seconds, crowd, later):
    b = book()
    b.check_in("a", 100.0)
    end(b, seconds)
    for n in range(crowd):
        b.check_in(f"d{n}", b.current.opened_at)
    window = b.retry_window(pb.RETRY_REASON_ROUND_FULL, b.current.opened_at + later)
    assert 0 <= window.earliest_ms <= window.latest_ms <= LONGEST_MS
    assert window.latest_ms - window.earliest_ms >= 999 or window.latest_ms == LONGEST_MS


def test_every_reason_has_a_connect_code_and_every_code_a_status():
    from lightfr.v1 import error_pb2

    reasons = set(error_pb2.ErrorReason.values()) - {error_pb2.ERROR_REASON_UNSPECIFIED}
    assert set(CODE_OF_REASON) == reasons
    assert set(CODE_OF_REASON.values()) <= set(STATUS_OF_CODE)
