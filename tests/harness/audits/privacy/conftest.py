"""One small captured campaign per mode, shared by the attacks' tests."""

import numpy as np
import pytest

from lightfr.secagg.contribution import vector_without_noise
from lightfr_harness.audits.capture import CapturingRun, split_capture, sum_of_blocks
from lightfr_harness.audits.privacy.plan import AuditOptions
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.train import load_split, make_server
from lightfr_harness.simulation.training import RunOptions

SIZE, ROUNDS = "200x400x10000", 20


class RunWithoutMasks(CapturingRun):
    """Sums without masks in the first round too: 120 devices that really mask take seconds; `secagg` has 38."""

    def _received(self, model, updates, rng, *, masked):
        return super()._received(model, updates, rng, masked=False)


class RunWithoutNoise(CapturingRun):
    """A planted leak: devices that leave their noise out."""

    def _received(self, model, updates, rng, *, masked):
        vectors = [vector_without_noise(model, update, len(updates)) for update in updates]
        names = [block.name for block in vectors[0].blocks]
        sums = {name: np.sum([np.asarray(vector[name], np.int64) for vector in vectors], axis=0) for name in names}
        return [], sum_of_blocks(self.server, sums, len(updates))


def captured(mode, *, rounds=3, fraction=0.6, synthetic="tiny", bits=64, run_class=CapturingRun):
    """A finished run, its capture and the truth."""
    training = AuditOptions(synthetic=synthetic, rounds=rounds, bits=bits).training(mode, None)
    train = load_split(training).train
    server, fleet = make_server(training, train), Fleet.of(train, bits, 0)
    run = run_class(server, fleet, RunOptions(rounds, fraction, 0.0, 0))
    for _ in run:
        pass
    return run, *split_capture(run, train, mode, 0)


@pytest.fixture(scope="session")
def paper():
    return captured("paper", synthetic="small")


@pytest.fixture(scope="session")
def clear():
    return captured("clear")


@pytest.fixture(scope="session")
def secagg():
    return captured("secagg")


@pytest.fixture(scope="session")
def noisy():
    return captured("secagg+dp")


@pytest.fixture(scope="session")
def small():
    """A campaign long enough for the attacks that need many rounds."""
    return captured("secagg", rounds=ROUNDS, synthetic=SIZE, run_class=RunWithoutMasks)


@pytest.fixture(scope="session")
def small_leaking():
    """The same without noise: what the attacks must find."""
    return captured("secagg", rounds=ROUNDS, synthetic=SIZE, run_class=RunWithoutNoise)
