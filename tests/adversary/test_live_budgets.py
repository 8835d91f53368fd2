"""A coordinator asks the same clients again and again, or in the clear, over TLS."""

import time

import pytest

from lightfr import Budget
from lightfr.budget import Ledger
from lightfr.errors import NotPrivateError
from lightfr.participation import Reason
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.plan import GATE_REFRESH, Schedule
from lightfr_harness.server.coordinator.rounds import ABANDONED
from lightfr_harness.server.coordinator.standing import Standing
from lightfr_harness.server.rules.secagg import SecureSumError
from tests.adversary.live import clients_of, in_threads
from tests.harness.server.coordinator.helpers import SETTINGS
from tests.harness.server.coordinator.live import Live
from tests.harness.server.coordinator.secure import SECURE

N = 6
PLAN = {"goal": N, "over_selection": 1.0, "minimum": 2, "deadline_seconds": 60}


def until(condition):
    """Masks come off after the last device has gone: the next round opens a moment later."""
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it never came to that")


def rounds_of(live, clients, n_rounds):
    """What each client's participate() came to, round after round."""
    outcomes = []
    for number in range(1, n_rounds + 1):
        until(lambda number=number: live.coordinator.book.current.number == number)
        answers = [None] * N

        def take_part(number, answers=answers):
            clients[number].sync()
            answers[number] = clients[number].participate()

        in_threads(take_part, N)
        outcomes.append([(answer.took_part, answer.reason) for answer in answers])
    return outcomes


def keep_the_sum(monkeypatch):
    """The coordinator takes the masks off, says that it could not, and opens the next round on the same model."""
    sums, finish = [], Cohort.finish

    def finished(cohort):
        sums.append(finish(cohort))
        raise SecureSumError("the server has the sum, and says that it has none")

    async def drop(coordinator, _):
        await coordinator._end(ABANDONED, None)

    monkeypatch.setattr(Cohort, "finish", finished)
    monkeypatch.setattr(Coordinator, "_drop", drop)
    return sums


def test_a_second_round_on_one_version_is_refused(monkeypatch, authority, tmp_path):
    sums = keep_the_sum(monkeypatch)
    with (
        Live(tmp_path / "coordinator", authority, settings=SECURE, **PLAN) as live,
        clients_of(live, authority, tmp_path, N, minimum_cohort=N) as clients,
    ):
        first, second = rounds_of(live, clients, 2)
    assert len(sums) == 1
    assert first == [(True, None)] * N
    assert second == [(False, Reason.BUDGET)] * N


def test_clients_that_forget_what_they_revealed_are_in_two_sums(monkeypatch, authority, tmp_path):
    """The attack is real: two sums over the same devices, who all say that they took part."""
    monkeypatch.setattr(Ledger, "after_reveal", lambda *_: {})
    sums = keep_the_sum(monkeypatch)
    with (
        Live(tmp_path / "coordinator", authority, settings=SECURE, **PLAN) as live,
        clients_of(live, authority, tmp_path, N, minimum_cohort=N) as clients,
    ):
        assert rounds_of(live, clients, 2) == [[(True, None)] * N] * 2
        until(lambda: len(sums) == 2)


def test_new_numbers_for_the_same_model_help_until_the_month_is_spent(authority, tmp_path):
    """A server can publish as many versions as it likes; 12 rounds in 30 days are the usual limit."""
    with (
        Live(tmp_path / "coordinator", authority, settings=SECURE, **PLAN) as live,
        clients_of(live, authority, tmp_path, N, minimum_cohort=N, budget=Budget(rounds_per_month=2)) as clients,
    ):
        *taken, last = rounds_of(live, clients, 3)
    assert taken == [[(True, None)] * N] * 2
    assert last == [(False, Reason.BUDGET)] * N


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(Budget(), (False, Reason.BUDGET)), (Budget(gate_refreshes_per_month=2), (True, None))],
    ids=["usual", "two_a_month"],
)
def test_a_flood_of_gate_refreshes_ends_after_one_a_month(monkeypatch, authority, tmp_path, budget, expected):
    monkeypatch.setattr(Schedule, "next_kind", lambda *_, **__: GATE_REFRESH)
    monkeypatch.setattr(Standing, "turned_away", lambda *_: None)
    with (
        Live(tmp_path / "coordinator", authority, settings=SECURE, **PLAN) as live,
        clients_of(live, authority, tmp_path, N, minimum_cohort=N, budget=budget) as clients,
    ):
        first, second = rounds_of(live, clients, 2)
    assert first == [(True, None)] * N
    assert second == [expected] * N


@pytest.mark.parametrize("allowed", [False, True])
def test_a_coordinator_on_the_loopback_address_gets_nothing_in_the_clear(authority, tmp_path, allowed):
    """A local proxy looks like this. Only an app that says so uploads in the clear."""
    how = {"goal": 2, "over_selection": 1.0}
    with (
        Live(tmp_path / "coordinator", authority, settings=SETTINGS, **how) as live,
        clients_of(live, authority, tmp_path, 1, minimum_cohort=2, allow_clear_uploads=allowed) as (client,),
    ):
        client.sync()
        if allowed:
            assert client.participate().took_part
        else:
            with pytest.raises(NotPrivateError):
                client.participate()
        assert len(live.coordinator.book.current.receipts) == allowed
