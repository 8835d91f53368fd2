"""A fleet on Ray gives what the fleet in one process gives, bit for bit. `make test-ray` installs Ray."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from lightfr.errors import InvalidInputError
from lightfr_harness.errors import MissingPackageError
from lightfr_harness.simulation import ray_fleet
from lightfr_harness.simulation.choosing import evaluate, rankings_of
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.train import load_split, make_server
from lightfr_harness.simulation.training import RunOptions, TrainingRun

OPTIONS = TrainOptions(synthetic="tiny", bits=16, gate=2, privacy="secagg", unmasked=True)


@pytest.fixture(scope="module")
def train():
    return load_split(OPTIONS).train


@pytest.fixture(scope="module")
def on_ray(train):
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: run `make test-ray`")
    fleet = ray_fleet.RayFleet(Fleet.of(train, 16, 0), workers=2)
    yield fleet
    fleet.close()


def trained(options, train, fleet, checkpoint=None, rounds=2):
    """A run in which devices drop out; the fleet begins with the codes that it had at first."""
    fleet.restore(Fleet.of(train, 16, 0).codes())
    plan = RunOptions(rounds, 0.5, 0.2, masked=False)
    run = TrainingRun(make_server(options, train), fleet, plan, checkpoint)
    for _ in run:
        pass
    return run


@pytest.mark.parametrize("privacy", ["clear", "secagg", "secagg+dp"])
def test_a_run_on_ray_equals_the_run_in_one_process_bit_for_bit(on_ray, train, privacy, monkeypatch):
    # So that actors answer several times and add up what they have.
    monkeypatch.setattr(ray_fleet, "ASKED_AT_ONCE", 7)
    noisy = {"upload": "exact", "epsilon": 20.0, "gate": 0, "max_rows": 0} if privacy == "secagg+dp" else {}
    options = replace(OPTIONS, privacy=privacy, **noisy)
    here, there = (trained(options, train, fleet) for fleet in (Fleet.of(train, 16, 0), on_ray))
    for name, values in here.server.state().items():
        assert np.array_equal(values, there.server.state()[name]), name
    assert np.array_equal(here.fleet.codes(), there.fleet.codes())
    assert here.traffic == there.traffic
    one, other = (evaluate(run, rankings_of(run.server)) for run in (here, there))
    assert np.array_equal(one.sums, other.sums)


def test_a_checkpoint_of_one_process_goes_on_with_ray(on_ray, train, tmp_path):
    whole = trained(OPTIONS, train, Fleet.of(train, 16, 0), rounds=3)
    path = tmp_path / "run.npz"
    trained(OPTIONS, train, Fleet.of(train, 16, 0), path, rounds=1)
    resumed = trained(OPTIONS, train, on_ray, path, rounds=3)
    assert np.array_equal(whole.server.codes, resumed.server.codes)


def test_workers_tell_what_they_used(on_ray):
    assert all(seconds > 0 and peak > 10**6 for seconds, peak in on_ray.usage())


def test_masks_across_ray_and_workers_without_ray_are_declined():
    with pytest.raises(InvalidInputError, match="--engine ray adds up without masks: add --unmasked"):
        TrainOptions(engine="ray", privacy="secagg")
    with pytest.raises(InvalidInputError, match="belong to --engine ray"):
        TrainOptions(workers=2)


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed, so nothing is missing")
def test_without_ray_one_sentence_says_what_to_install(train):
    with pytest.raises(MissingPackageError, match=r"--engine ray needs the package lightfr-harness\[ray\]"):
        ray_fleet.RayFleet(Fleet.of(train, 16, 0), workers=1)
