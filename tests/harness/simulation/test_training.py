"""Runs over a fleet: deterministic, resumable, honest about traffic, and learning something."""

import copy
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from lightfr import _kernel
from lightfr.errors import InvalidInputError
from lightfr.v1 import model_pb2
from lightfr_harness.data import generate
from lightfr_harness.server.rules import CatalogueRule
from lightfr_harness.simulation.asking import ModelBytes, Training
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.options import survivors_of
from lightfr_harness.simulation.training import RunOptions, TrainingRun


@pytest.fixture(scope="module")
def ratings():
    return generate("tiny", seed=1)


def make_run(ratings, checkpoint=None, **options):
    server = CatalogueRule(
        ratings.item_counts(), 16, upload_kind=model_pb2.UPLOAD_KIND_TERNARY, gate=2, max_rows=8, seed=3
    )
    plan = RunOptions(**{"rounds": 6, "fraction": 0.5, "seed": 3, **options})
    return TrainingRun(server, Fleet.of(ratings, 16, 3), plan, checkpoint)


def finish(run):
    for _ in run:
        pass
    return run


def test_the_same_seed_gives_the_same_matrix_and_another_seed_another(ratings):
    first, again, other = (finish(make_run(ratings, seed=seed)).server.codes for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


def test_every_instruction_set_trains_the_same_matrix(ratings):
    chosen, matrices = _kernel.isa_name(), []
    for name in _kernel.supported_isas():
        _kernel.select_isa(name)
        matrices.append(finish(make_run(ratings)).server.codes.tobytes())
    _kernel.select_isa(chosen)
    assert len(set(matrices)) == 1


def test_a_run_stopped_between_rounds_resumes_to_the_same_matrix(ratings, tmp_path):
    whole = finish(make_run(ratings))
    half = make_run(ratings, tmp_path / "run.npz")
    for finished in half:
        if finished == 3:
            break
    resumed = make_run(ratings, tmp_path / "run.npz")
    assert resumed.finished_rounds == 3
    finish(resumed)
    assert (resumed.server.codes == whole.server.codes).all()
    assert resumed.traffic == whole.traffic


def test_a_killed_process_leaves_a_checkpoint_that_resumes(ratings, tmp_path):
    path = tmp_path / "run.npz"
    command = [
        sys.executable,
        "-m",
        "lightfr_harness",
        "train",
        "--synthetic",
        "tiny",
        "--bits",
        "16",
        "--rounds",
        "100000",
    ]
    process = subprocess.Popen([*command, "--checkpoint", str(path)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with np.load(path) as saved:
        finished = int(saved["counts"][0])
    answer = subprocess.run(
        [*command[:-1], str(finished + 1), "--checkpoint", str(path), "--json", "-"], capture_output=True, check=True
    )
    assert f'"rounds": {finished + 1}'.encode() in answer.stdout


def test_a_checkpoint_of_another_run_is_refused(ratings, tmp_path):
    path = tmp_path / "run.npz"
    next(iter(make_run(ratings, path)))
    with pytest.raises(InvalidInputError, match="other options"):
        make_run(ratings, path, seed=4)
    with pytest.raises(InvalidInputError, match="other options or data"):
        make_run(replace(ratings, rating=ratings.rating[::-1].copy()), path)
    assert make_run(ratings, path, rounds=9).finished_rounds == 1


def test_a_checkpoint_of_more_rounds_than_are_asked_for_is_refused(ratings, tmp_path):
    path = tmp_path / "run.npz"
    finish(make_run(ratings, path, rounds=3))
    assert make_run(ratings, path, rounds=3).finished_rounds == 3
    with pytest.raises(
        InvalidInputError, match="is 3 rounds old, more than the 2 asked for; remove it or name another"
    ):
        make_run(ratings, path, rounds=2)


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"PK\x03\x04 no archive"])
def test_a_file_that_is_no_checkpoint_is_named(ratings, tmp_path, content):
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"run\.npz is no checkpoint .*; remove it or name another file"):
        make_run(ratings, path)


def test_cohorts_are_drawn_without_replacement_and_differ_by_round(ratings):
    run = make_run(ratings)
    first, second = run.cohort(0).tolist(), run.cohort(1).tolist()
    assert len(first) == len(set(first)) == round(0.5 * ratings.n_users)
    assert first != second


def test_devices_that_drop_out_are_not_counted_in_the_sums_nor_in_the_bytes(ratings):
    run = finish(make_run(ratings, dropout=0.4))
    assert 0 < run.traffic.dropped < run.traffic.device_rounds
    assert run.traffic.up_bytes < finish(make_run(ratings)).traffic.up_bytes
    assert (run.server.codes != finish(make_run(ratings)).server.codes).any()


@pytest.mark.parametrize("dropout", [0.0, 0.05, 0.4, 0.99])
def test_as_many_devices_stay_in_every_round_as_the_noise_is_planned_for(ratings, dropout):
    run = make_run(ratings, dropout=dropout)
    staying = {int(np.count_nonzero(~run.drops(number))) for number in range(20)}
    assert staying == {survivors_of(len(run.cohort(0)), dropout)}


def test_traffic_counts_every_message_byte(ratings):
    run = make_run(ratings, rounds=1, fraction=1.0)
    model = run.published()
    sizes = [len(device.take_part(model, os.urandom)) for device in run.fleet.devices]
    # A second run, since taking part above moved the devices' codes; sizes do not depend on codes.
    finished = finish(make_run(ratings, rounds=1, fraction=1.0))
    assert finished.traffic.up_bytes == sum(sizes)
    server = make_run(ratings).server
    download = server.codes.nbytes + server.model().ByteSize() + len(server.open_rows_bitmap())
    assert abs(finished.traffic.down_bytes / ratings.n_users - download) <= 40  # the mean user is absent at first


def test_devices_keep_their_ratings_in_order_of_time(ratings):
    device = Fleet.of(ratings, 16, 0).devices[0]
    rows = np.flatnonzero(ratings.user_index == 0)
    oldest_first = rows[np.argsort(ratings.timestamp[rows], kind="stable")]
    assert device.interactions.arrays()[0].tolist() == ratings.item_index[oldest_first].tolist()


def test_what_devices_answer_depends_neither_on_who_else_is_asked_nor_on_the_order(ratings):
    """So a fleet can be asked in any parts, in any process."""

    def answers(*parts):
        run = make_run(ratings)
        question = Training(ModelBytes.of(run.server), 3, 0, len(run.fleet), frozenset({1, 5}))
        first, *others = (copy.deepcopy(run.fleet).ask(question, np.array(part)) for part in parts)
        for other in others:
            first = other.plus(first)
        return first

    users = np.arange(ratings.n_users)
    whole, parted = answers(users), answers(users[1::2][::-1], users[::4], users[2::4])
    assert (whole.devices, whole.up_bytes) == (parted.devices, parted.up_bytes)
    assert whole.devices == ratings.n_users - 2
    for name, numbers in whole.sums.items():
        assert np.array_equal(numbers, parted.sums[name])


def test_a_round_tells_how_far_it_is(ratings):
    run, told = make_run(ratings, rounds=1), []
    run.tell = told.append
    finish(run)
    assert told[-1] == 1


def test_a_round_reads_the_cohorts_own_rated_rows_and_no_others(ratings, monkeypatch):
    """So the work of a device round depends on its own ratings, not on how many devices there are."""
    gathered, gather = [], _kernel.gather

    def counted(items, indices, n):
        gathered.append(n)
        return gather(items, indices, n)

    monkeypatch.setattr(_kernel, "gather", counted)
    run = make_run(ratings, rounds=1)
    cohort = [len(run.fleet.devices[user].interactions.to_teach()) for user in run.cohort(0)]
    finish(run)
    # Two look-ups a device: all ratings that it teaches by for the fit, at most max_rows = 8 of them for the upload.
    assert gathered[0::2] == cohort
    assert all(n <= 8 for n in gathered[1::2])
    assert len(gathered) == 2 * len(cohort)
