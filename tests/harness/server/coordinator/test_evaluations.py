"""Evaluation rounds: when they come, what they leave, and that nothing of them counts twice."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator import rollback
from lightfr_harness.server.coordinator.database import StorageError
from lightfr_harness.server.coordinator.plan import EVALUATION, GATE_REFRESH, TRAINING, Plan, Schedule
from lightfr_harness.server.coordinator.rounds import ABANDONED
from lightfr_harness.server.rules.evaluation import POPULARITY, Evaluated, candidates_for, to_messages
from tests.harness.server.coordinator.helpers import BITS, Clock, Crash, run, small, upload_request
from tests.harness.server.coordinator.secure import (
    N_CANDIDATES,
    SECURE,
    UNCOUNTED,
    SecureDevice,
    SecureSmall,
    hits_of,
    secure,
)
from tests.harness.server.coordinator.test_crashes import CrashAt

N = 6
CANDIDATES = candidates_for(BITS, has_counts=True)
EXPECTED = sum(hits_of(seed) for seed in range(N))
BEST = to_messages(Evaluated.of(CANDIDATES, EXPECTED).best())


async def rounds_of(it, n):
    """Finish rounds; their kinds."""
    kinds = []
    for _ in range(n):
        kinds.append(it.coordinator.book.current.kind)
        await it.run_steps(it.devices(N))
    return kinds


def kept_rows(folder):
    with closing(sqlite3.connect(folder / "coordinator.sqlite")) as connection:
        return connection.execute("SELECT number, model_version, sums FROM evaluations").fetchall()


def manifest_of(it):
    return it.coordinator.version.manifest


@pytest.mark.parametrize(
    ("done", "plan", "expected"),
    [
        ((0, 0, 0), {}, TRAINING),
        ((9, 9, 9), {}, TRAINING),
        ((10, 10, 10), {}, EVALUATION),
        ((50, 50, 10), {}, GATE_REFRESH),
        ((50, 0, 10), {}, EVALUATION),
        ((99, 9, 99), {"evaluate_every": 0}, TRAINING),
        ((3, 3, 3), {"evaluate_every": 3, "rounds": 4}, EVALUATION),
        ((4, 4, 1), {"evaluate_every": 3, "rounds": 4}, EVALUATION),
        ((50, 50, 1), {"rounds": 50}, EVALUATION),
        ((50, 50, 0), {"rounds": 50}, None),
        ((50, 50, 50), {"rounds": 50, "evaluate_every": 0}, None),
    ],
)
def test_the_schedule_says_what_comes_next(done, plan, expected):
    schedule = Schedule(Plan(**plan), *done)
    assert schedule.is_over(can_evaluate=True) == (expected is None)
    if expected is not None:
        assert schedule.next_kind(has_gate=True, must_refresh=False, can_evaluate=True) == expected


def test_a_version_without_candidates_is_not_evaluated_and_a_pair_of_refreshes_not_interrupted():
    schedule = Schedule(Plan(rounds=90), 80, 10, 80)
    assert schedule.next_kind(has_gate=True, must_refresh=False, can_evaluate=False) == TRAINING
    assert schedule.next_kind(has_gate=True, must_refresh=True, can_evaluate=True) == GATE_REFRESH
    assert Schedule(Plan(rounds=80), 80, 10, 80).is_over(can_evaluate=False)


def test_an_evaluation_publishes_the_same_codes_with_what_it_chose(tmp_path):
    async def story():
        async with secure(tmp_path, evaluate_every=2) as it:
            assert manifest_of(it).rankings == to_messages([POPULARITY] * 4)
            assert await rounds_of(it, 2) == [TRAINING, TRAINING]
            before = manifest_of(it)
            assert before.rankings == to_messages([POPULARITY] * 4)
            assert len(before.candidates) == N_CANDIDATES
            assert await rounds_of(it, 1) == [EVALUATION]
            after = manifest_of(it)
            assert (before.model_version, after.model_version) == (3, 4)
            assert (after.codes, after.open_rows, after.prior) == (before.codes, before.open_rows, before.prior)
            assert after.codes.sha256 not in {delta.from_sha256 for delta in after.codes_deltas}
            assert [delta.from_sha256 for delta in after.codes_deltas] == [
                delta.from_sha256 for delta in before.codes_deltas
            ]
            assert after.rankings == BEST != before.rankings
            assert kept_rows(tmp_path) == [(3, 3, EXPECTED.astype("<i8").tobytes())]
            (told,) = [json.loads(line) for line in it.log.getvalue().splitlines() if '"evaluated"' in line]
            assert (told["round"], told["model_version"], told["opinions"], told["dislikes"]) == (3, 3, 4, 2)
            assert await rounds_of(it, 3) == [TRAINING, TRAINING, EVALUATION]
            assert manifest_of(it).rankings == BEST

    run(story())


def test_what_was_chosen_and_what_is_due_survive_a_restart(tmp_path):
    async def story():
        async with secure(tmp_path, evaluate_every=2) as it:
            assert await rounds_of(it, 4) == [TRAINING, TRAINING, EVALUATION, TRAINING]
        async with secure(tmp_path, evaluate_every=2) as it:
            assert it.coordinator.evaluations.qualities[0].model_version == 3
            assert await rounds_of(it, 2) == [TRAINING, EVALUATION]
            assert manifest_of(it).rankings == BEST

    run(story())


def test_evaluations_are_not_training_rounds_and_one_ends_the_training(tmp_path):
    async def story():
        async with secure(tmp_path, evaluate_every=2, rounds=3) as it:
            assert await rounds_of(it, 5) == [TRAINING, TRAINING, EVALUATION, TRAINING, EVALUATION]
            assert it.coordinator.book.current is None
        async with secure(tmp_path, evaluate_every=2, rounds=3) as it:
            assert it.coordinator.book.current is None

    run(story())


def test_without_evaluations_codes_are_used_from_the_first_training_round_on(tmp_path):
    async def story():
        async with secure(tmp_path, evaluate_every=0, rounds=1) as it:
            assert manifest_of(it).rankings == to_messages([POPULARITY] * 4)
            assert await rounds_of(it, 1) == [TRAINING]
            assert manifest_of(it).rankings[0].by == manifest_pb2.RANK_BY_CODES
            assert it.coordinator.book.current is None

    run(story())


def test_refreshes_of_the_gate_come_first_and_bring_the_prior(tmp_path):
    async def story():
        async with secure(tmp_path, UNCOUNTED, replace(SECURE, gate=4), evaluate_every=1) as it:
            assert not manifest_of(it).HasField("prior")
            assert not manifest_of(it).rankings
            for first in (0, N):
                assert it.coordinator.book.current.kind == GATE_REFRESH
                await it.run_steps(it.devices(N, first))
            assert it.coordinator.book.current.kind == TRAINING
            assert manifest_of(it).HasField("prior")
            assert manifest_of(it).rankings == to_messages([POPULARITY] * 4)

    run(story())


class Boaster(SecureDevice):
    def vector(self, kind, devices):
        made = super().vector(kind, devices)
        if kind == EVALUATION:
            np.asarray(made["hits"])[1] = 2 * devices + 1
        return made


def test_a_sum_that_its_devices_cannot_have_said_is_dropped(tmp_path):
    async def story():
        async with secure(tmp_path, evaluate_every=1) as it:
            await rounds_of(it, 1)
            before = manifest_of(it)
            await it.run_steps([*it.devices(N - 1), Boaster(N - 1, it.call)])
            assert '"event":"sum_dropped"' in it.log.getvalue()
            assert kept_rows(tmp_path) == []
            after = manifest_of(it)
            assert after.model_version == before.model_version + 1
            assert (after.rankings, after.codes) == (before.rankings, before.codes)
            assert it.coordinator.book.current.kind == EVALUATION
            suspects = it.coordinator.standing.suspects
            assert len(it.coordinator.standing._suspects) == N
        async with secure(tmp_path, evaluate_every=1) as again:
            assert again.coordinator.standing.suspects == suspects

    run(story())


def test_a_folder_of_before_evaluations_opens_and_evaluates_its_next_version(tmp_path):
    def make_older():
        with closing(sqlite3.connect(tmp_path / "coordinator.sqlite")) as connection, connection:
            connection.execute("DROP TABLE evaluations")
            (manifest,) = connection.execute("SELECT manifest FROM versions WHERE model_version = 3").fetchone()
            older = manifest_pb2.Manifest.FromString(manifest)
            for field in ("prior", "rankings", "candidates"):
                older.ClearField(field)
            connection.execute("UPDATE versions SET manifest = ? WHERE model_version = 3", (older.SerializeToString(),))
            connection.execute("UPDATE rounds SET state = ? WHERE number = 3", (ABANDONED,))

    async def story():
        async with secure(tmp_path, evaluate_every=0) as it:
            await rounds_of(it, 2)
        make_older()
        async with secure(tmp_path, evaluate_every=2) as it:
            assert await rounds_of(it, 2) == [TRAINING, EVALUATION]
            assert manifest_of(it).rankings == BEST

    run(story())


def test_going_back_forgets_what_was_evaluated_since(tmp_path):
    async def story():
        async with secure(tmp_path, evaluate_every=2) as it:
            # Versions 2, 3, evaluated as 4, then 5, 6, evaluated as 7.
            await rounds_of(it, 6)

    run(story())
    assert [version for _, version, _ in kept_rows(tmp_path)] == [3, 6]
    # The evaluated version is older than the last four, and was kept for this.
    assert rollback.roll_back(tmp_path, 3) == 8
    assert [version for _, version, _ in kept_rows(tmp_path)] == [3]

    async def look():
        async with secure(tmp_path, evaluate_every=2) as it:
            assert manifest_of(it).rankings == to_messages([POPULARITY] * 4)
            assert await rounds_of(it, 1) == [TRAINING]
            assert manifest_of(it).rankings == BEST

    run(look())


async def until_all_must_reveal(folder, clock):
    """An evaluation round of which the last step is left; what its devices will send in it."""
    async with secure(folder, clock=clock, evaluate_every=1) as it:
        await rounds_of(it, 1)
        devices = await it.run_steps(it.devices(N), "SignSurvivors")
        return {device.name: await device.only_prepare() for device in devices}


async def evaluated_in_spite_of_crashes(folder, clock, revealed, crash):
    """Start, send, and start again until the evaluation is there."""
    while True:
        plan = Plan(goal=N, over_selection=1.0, minimum=2, evaluate_every=1)
        it = SecureSmall(folder, clock, plan, crash_point=crash)
        try:
            await it.coordinator.start()
            if it.coordinator.evaluations.kept:
                return it
            for name, request in revealed.items():
                await it.call(name, "RevealShares", request)
            await it.go_on()
            return it
        except (Crash, StorageError):
            await it.crash()


def test_a_crash_at_each_step_of_the_end_of_an_evaluation_counts_it_once(tmp_path):
    crash, clock, struck = CrashAt(), Clock(), []
    revealed = run(until_all_must_reveal(tmp_path / "origin", clock))

    async def story(folder):
        it = await evaluated_in_spite_of_crashes(folder, clock, revealed, crash)
        assert len(it.coordinator.evaluations.kept) == 1
        assert (manifest_of(it).model_version, manifest_of(it).rankings) == (3, BEST)
        assert it.coordinator.book.current.kind == TRAINING
        await it.coordinator.close()
        assert kept_rows(folder) == [(2, 2, EXPECTED.astype("<i8").tobytes())]

    while not struck or struck[-1]:
        folder = tmp_path / str(len(struck))
        shutil.copytree(tmp_path / "origin", folder)
        crash.arm(len(struck))
        run(story(folder))
        struck.append(crash.struck)
        crash.left = None
    assert {"version is written", "transaction begins", "transaction ends", "transaction is durable"} <= set(struck)
    assert len(struck) > 20


def test_rounds_in_the_clear_have_nothing_to_evaluate(tmp_path):
    async def story():
        async with small(tmp_path, goal=1, evaluate_every=1, rounds=2) as it:
            for n in range(2):
                assert not manifest_of(it).candidates
                await it.upload("a", upload_request(await it.assignment("a"), n))
                assert await it.coordinator.end_due_round()
            assert it.coordinator.book.current is None
            assert manifest_of(it).rankings[0].recency == manifest_pb2.RECENCY_STRONG

    run(story())
