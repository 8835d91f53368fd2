"""One small captured campaign per mode, shared by the attacks' tests."""

import pytest

from lightfr_harness.audits.capture import CapturingRun, split_capture
from lightfr_harness.audits.privacy.plan import AuditOptions
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.train import load_split, make_server
from lightfr_harness.simulation.training import RunOptions


def captured(mode, *, rounds=3, fraction=0.6, synthetic="tiny", bits=64):
    """A finished run, its capture and the truth."""
    training = AuditOptions(synthetic=synthetic, rounds=rounds, bits=bits).training(mode, None)
    train = load_split(training).train
    server, fleet = make_server(training, train), Fleet.of(train, bits, 0)
    run = CapturingRun(server, fleet, RunOptions(rounds, fraction, 0.0, 0))
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
