"""What every storage promises: the same tests for SQLite and for PostgreSQL."""

import hashlib
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest

from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.cohort_storage import Outcome
from lightfr_harness.server.coordinator.database import StorageError
from lightfr_harness.server.coordinator.deliveries import RoundFacts
from lightfr_harness.server.coordinator.phases import ADVERTISING, SHARING, UPLOADING, PhaseResult
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.rounds import ABANDONED, AGGREGATING, FINISHED, OPEN, Round
from lightfr_harness.server.coordinator.standing import Fault
from lightfr_harness.server.coordinator.storage import RoundEnd, Storage
from lightfr_harness.server.coordinator.stored import CatalogueChange
from tests.harness.server.coordinator.helpers import run

PLAN = Plan(goal=2, over_selection=1.5, minimum=2, cohorts=2)
CHANGE = CatalogueChange(1, "0" * 64, True, 5, 0, 0, is_renumbered=False, at=1.0)


def new_round(number=1, index=0, is_masked=True):
    made = Round.new(number, 1, bytes(32), PLAN, 100.0)
    made.index = index
    if is_masked:
        made.cohort = Cohort(RoundFacts(made.round_id, bytes(32), 1, (), lambda: 0.0), 3, made.assigned, lambda _: ())
    return made


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request, tmp_path):
    """A storage with its first round, opened as often as asked for."""
    if request.param == "postgres":
        address = request.getfixturevalue("postgres").database()

    @asynccontextmanager
    async def make(first=None):
        if request.param == "sqlite":
            storage = Storage.in_file(tmp_path / "it.sqlite", lambda _: None)
        else:
            storage = Storage.in_postgres(address, lambda: None)
        storage.start()
        try:
            if first is not None:
                assert await storage.begin({"bits": 8}, b"manifest", first, CHANGE)
            yield storage
        finally:
            await storage.close()

    return make


def deliver(storage, current, device="a", body=b"body", phase=ADVERTISING, keys=()):
    return storage.deliver(current, phase, device, hashlib.sha256(body).digest(), body, bytes(16), keys)


async def take_place(storage, current, device):
    current.assign(device, 100.0)
    placed = await storage.assign(current, device)
    if placed is None:
        del current.assigned[device]
    return placed


def test_a_data_base_is_begun_once(opened):
    async def story():
        first = new_round()
        async with opened(first) as storage:
            assert not await storage.begin({"bits": 16}, b"other", new_round(), CHANGE)
            assert await storage.read(lambda stored: stored.settings()) == {"bits": 8}
            assert await storage.read(lambda stored: stored.manifests()) == [b"manifest"]
            assert await storage.read(lambda stored: stored.catalogue_changes()) == [CHANGE]

    run(story())


def test_a_cohort_gives_as_many_places_as_it_has_and_the_same_one_again(opened):
    async def story():
        current = new_round()
        async with opened(current) as storage:
            first = await take_place(storage, current, "a")
            assert first[1:] == (100.0, 160.0)
            again = replace(current, assigned={"a": bytes(16)})
            assert await storage.assign(again, "a") == first
            assert await take_place(storage, current, "b")
            assert await take_place(storage, current, "c")
            other = replace(current, assigned={"d": bytes(16)})
            assert await storage.assign(other, "d") is None

    run(story())


def test_a_device_has_one_place_in_all_cohorts_of_a_round(opened):
    async def story():
        first, second = new_round(), new_round(index=1)
        async with opened(first) as storage:
            assert await storage.open_round(second)
            assert not await storage.open_round(new_round(index=1))
            assert await take_place(storage, first, "a")
            assert await take_place(storage, second, "a") is None
            first.state, first.ended_at = ABANDONED, 200.0
            assert await storage.end_cohort(first, [], "")
            assert await take_place(storage, second, "a")

    run(story())


def test_a_delivery_is_taken_once_and_only_while_its_phase_lasts(opened):
    async def story():
        current = new_round()
        async with opened(current) as storage:
            assert (await deliver(storage, current)).outcome == Outcome.TAKEN
            assert (await deliver(storage, current)).outcome == Outcome.SAME
            assert (await deliver(storage, current, body=b"other")).outcome == Outcome.OTHER
            assert (await deliver(storage, current, phase=SHARING)).outcome == Outcome.CLOSED
            assert await storage.settle(current, PhaseResult(phase=SHARING, entries=b"e"), 1, 170.0)
            assert (await deliver(storage, current)).outcome == Outcome.SAME
            assert (await deliver(storage, current, "b")).outcome == Outcome.CLOSED
            assert (await deliver(storage, current, phase=SHARING)).outcome == Outcome.TAKEN
            found = await storage.read(lambda stored: list(stored.deliveries(current.round_id, ADVERTISING)))
            assert found == [("a", b"body")]

    run(story())


def test_a_key_belongs_to_the_first_device_of_a_cohort_that_brings_it(opened):
    """A device that was refused brings others, and keeps none of those that came with the refused one."""

    async def story():
        first, second = new_round(), new_round(index=1)
        async with opened(first) as storage:
            assert await storage.open_round(second)
            assert (await deliver(storage, first, "a", keys=(b"1", b"2", b"3"))).outcome == Outcome.TAKEN
            assert (await deliver(storage, first, "b", keys=(b"0", b"3", b"4"))).outcome == Outcome.NOT_NEW
            assert (await deliver(storage, first, "c", keys=(b"0", b"4", b"5"))).outcome == Outcome.TAKEN
            assert (await deliver(storage, first, "b", keys=(b"6", b"7", b"8"))).outcome == Outcome.TAKEN
            assert (await deliver(storage, first, "a", keys=(b"1", b"2", b"3"))).outcome == Outcome.SAME
            assert (await deliver(storage, second, "b", keys=(b"1", b"2", b"3"))).outcome == Outcome.TAKEN
            assert await storage.read(lambda stored: stored.delivery_count(first.round_id, ADVERTISING)) == 3

    run(story())


def test_a_phase_ends_once_and_with_exactly_what_was_delivered(opened):
    async def story():
        current = new_round()
        async with opened(current) as storage:
            await deliver(storage, current, "a")
            await deliver(storage, current, "b")
            one, other = (PhaseResult(phase=SHARING, entries=entries) for entries in (b"one", b"other"))
            assert not await storage.settle(current, one, 1, 170.0)
            assert await storage.settle(current, one, 2, 170.0)
            assert not await storage.settle(current, other, 2, 180.0)
            assert await storage.read(lambda stored: stored.settled_phases(current.round_id)) == one
            (seen,) = await storage.read(lambda stored: stored.seen())
            assert (seen.phase, seen.deadline, seen.deliveries) == (SHARING, 170.0, 0)

    run(story())


def test_in_the_clear_the_goal_is_never_passed(opened):
    async def story():
        current = new_round(is_masked=False)
        async with opened(current) as storage:
            outcomes = [(await deliver(storage, current, device, phase=UPLOADING)).outcome for device in "abc"]
            assert outcomes == [Outcome.TAKEN, Outcome.TAKEN, Outcome.CLOSED]
            assert await storage.start_aggregating(current, 2)

    run(story())


def test_sums_are_kept_once_and_gone_when_their_round_ends(opened):
    async def story():
        current = new_round()
        async with opened(current) as storage:
            sums = {"rows": np.arange(5), "weight": np.array([-(2**40)])}
            assert not await storage.keep_sums(current, sums, [])
            assert not await storage.start_aggregating(current, 1)
            assert await storage.start_aggregating(current, 0)
            assert await storage.keep_sums(current, sums, [Fault("liar", 1, "why", 5.0)])
            assert not await storage.keep_sums(current, {"rows": np.zeros(5)}, [])
            found = await storage.read(lambda stored: stored.sums(current.round_id))
            assert all(np.array_equal(found[name], values) for name, values in sums.items())
            assert await storage.read(lambda stored: stored.faults()) == [Fault("liar", 1, "why", 5.0)]
            ended = replace(current, state=FINISHED, ended_at=300.0, next_model_version=2)
            ending = RoundEnd([ended], (2, b"second"), new_round(2), [], frozenset({"x"}))
            assert await storage.end_round(ending)
            assert not await storage.end_round(ending)
            with pytest.raises(StorageError):
                await storage.read(lambda stored: stored.sums(current.round_id))
            assert await storage.read(lambda stored: stored.newest_version()) == 2
            assert await storage.read(lambda stored: stored.counted()) == frozenset({"x"})

    run(story())


def test_what_was_sent_can_be_read_until_the_end_and_receipts_stay(opened):
    async def story():
        current = new_round(is_masked=False)
        async with opened(current) as storage:
            await take_place(storage, current, "a")
            await deliver(storage, current, "a", phase=UPLOADING)
            await storage.start_aggregating(current, 1)
            ended = replace(current, state=ABANDONED, ended_at=300.0)
            assert await storage.end_round(RoundEnd([ended], None, new_round(2), [], frozenset()))
            with pytest.raises(StorageError):
                await storage.read(lambda stored: list(stored.deliveries(current.round_id, UPLOADING)))
        async with opened() as storage:
            past, following = await storage.read(lambda stored: stored.rounds())
            assert past.state == ABANDONED
            assert past.receipts["a"].request_sha256 == hashlib.sha256(b"body").digest()
            assert (following.number, following.assigned) == (2, {})
            (history,) = await storage.read(lambda stored: stored.history(10))
            assert (history.upload_count, history.upload_bytes, history.seconds) == (1, 4, 200.0)

    run(story())


def test_what_another_process_takes_away_while_it_is_read_is_missing_and_no_error_of_the_code(opened):
    """A replica that starts reads a round that another one ends: seed 31 of tests.campaigns.kill_replicas."""

    def read(stored, round_id):
        found = stored.deliveries(round_id, ADVERTISING)
        next(found)
        stored._connection.execute("UPDATE deliveries SET body = NULL WHERE round_id = ?", (round_id,))
        next(found)

    async def story():
        current = new_round()
        async with opened(current) as storage:
            for device in ("a", "b"):
                await take_place(storage, current, device)
                await deliver(storage, current, device, keys=(device.encode(),))
            with pytest.raises(StorageError, match="what devices sent is gone"):
                await storage.read(lambda stored: read(stored, current.round_id))

    run(story())


def test_what_a_device_delivered_is_told_of_the_phase_that_was_seen_although_another_process_ends_it(opened):
    """Else a replica would take the device for one that has not delivered yet, and ask it again."""

    class Interrupted:
        def __init__(self, connection):
            self._connection, self._is_first = connection, True

        def execute(self, *statement):
            found = self._connection.execute(*statement)
            if self._is_first:
                self._is_first, rows = False, found.fetchall()
                self._connection.execute("UPDATE rounds SET phase = phase + 1")
                return rows
            return found

    def read(stored):
        stored._connection = Interrupted(stored._connection)
        return stored.device_in("a")

    async def story():
        current = new_round()
        async with opened(current) as storage:
            await take_place(storage, current, "a")
            await deliver(storage, current)
            (seen,), places, delivered = await storage.read(read)
            assert (seen.phase, [one[:2] for one in delivered]) == (ADVERTISING, [(current.round_id, ADVERTISING)])
            assert places.keys() == {current.round_id}
            assert (await storage.read(lambda stored: stored.device_in("a")))[2] == []

    run(story())


def test_items_change_only_while_nobody_has_a_place(opened):
    async def story():
        current = new_round()
        async with opened(current) as storage:
            change = replace(CHANGE, model_version=2, sha256="1" * 64)
            assert await storage.change_catalogue(b"second", change, new_round())
            assert not await storage.change_catalogue(b"second", change, new_round())
            (opened_anew,) = await storage.read(lambda stored: stored.rounds())
            opened_anew.cohort = new_round().cohort
            assert await take_place(storage, opened_anew, "a")
            assert not await storage.change_catalogue(b"third", replace(change, model_version=3), new_round())
            assert await storage.read(lambda stored: stored.newest_version()) == 2

    run(story())


def test_no_cohort_begins_in_a_round_that_has_ended_or_on_an_older_version(opened):
    """Another process may be about to open one while this one ends the round or goes back."""

    async def story():
        first = new_round()
        async with opened(first) as storage:
            ended = replace(first, state=ABANDONED, ended_at=200.0)
            assert await storage.end_round(RoundEnd([ended], None, new_round(2), [], frozenset()))
            assert not await storage.open_round(new_round(1, index=1))
            assert await storage.open_round(new_round(2, index=1))
            assert await storage.roll_back(2, b"again", 1, 300.0)
            assert not await storage.roll_back(2, b"again", 1, 300.0)
            assert not await storage.open_round(new_round(2, index=2))
            assert not await storage.open_round(new_round(3))
            assert await storage.open_round(replace(new_round(3), model_version=2))
            states = [one.state for one in await storage.read(lambda stored: stored.rounds())]
            assert states == [ABANDONED, ABANDONED, ABANDONED, OPEN]

    run(story())


def test_a_list_waits_until_it_has_made_its_version_and_a_later_one_stays(opened):
    async def story():
        async with opened(new_round()) as storage:
            await storage.offer_catalogue(b"earlier")
            await storage.offer_catalogue(b"list")
            digest = await storage.read(lambda stored: stored.next_catalogue_sha256())
            assert digest == hashlib.sha256(b"list").hexdigest()
            change = replace(CHANGE, model_version=2, sha256=digest)
            assert await storage.change_catalogue(b"second", change, new_round())
            assert await storage.read(lambda stored: stored.next_catalogue()) is None
            await storage.offer_catalogue(b"later")
            await storage.drop_catalogue(digest)
            assert await storage.read(lambda stored: stored.next_catalogue()) == b"later"

    run(story())


def test_suspects_are_kept_with_the_end_of_a_cohort_until_there_are_none(opened):
    async def story():
        first = new_round()
        async with opened(first) as storage:
            ended = replace(first, state=ABANDONED, ended_at=200.0)
            assert await storage.end_cohort(ended, [], "suspects")
            assert not await storage.end_cohort(ended, [], "others")
            assert await storage.read(lambda stored: stored.suspects()) == "suspects"
            second = replace(new_round(1, index=1), ended_at=300.0)
            assert await storage.open_round(second)
            assert await storage.end_round(RoundEnd([second], None, new_round(2), [], frozenset()))
            assert await storage.read(lambda stored: stored.suspects()) == ""

    run(story())


def test_another_schema_is_refused_with_a_sentence(opened, monkeypatch):
    async def story():
        async with opened(new_round()):
            pass
        monkeypatch.setattr("lightfr_harness.server.coordinator.cohort_storage.SCHEMA_VERSION", 99)
        with pytest.raises(StorageError, match="another release: schema 8, this one reads 99"):
            async with opened():
                pass

    run(story())


def test_a_cohort_that_is_being_added_up_takes_nothing(opened):
    async def story():
        current = new_round()
        async with opened(current) as storage:
            assert await storage.start_aggregating(current, 0)
            assert (await deliver(storage, current)).outcome == Outcome.CLOSED
            assert await take_place(storage, current, "a") is None
            (seen,) = await storage.read(lambda stored: stored.seen())
            assert seen.state == AGGREGATING

    run(story())
