"""A few real devices at a real coordinator, and the simulation of them: both tell the same story."""

import pytest

from lightfr_harness.errors import CannotRunError
from lightfr_harness.simulation.scale import Scenario
from lightfr_harness.simulation.scale_real import measured

FEW = Scenario(
    devices=16, period_seconds=2, periods=1, coming=1, swing=0, stays_seconds=3600, dropout=0, publish_seconds=1,
    cohorts=1, goal=6, over_selection=1, minimum=2, deadline_seconds=20, seconds=8,
)  # fmt: skip


# By the clock it takes as long as its devices do: `make test-ray` runs it.
@pytest.mark.conformance
def test_real_devices_obey_retry_windows_and_take_all_steps():
    record = measured(FEW)
    real, simulated = record.real, record.simulated
    for figures in (real, simulated):
        assert 2 <= figures["contributions"] <= figures["placed"] <= figures["check_ins"]
        assert figures["check_ins"] >= 16
    assert real["cpu_ms_per_device_round"] > 0
    assert all(cost >= 0 for cost in record.constants["phase_cpu_ms"])
    # 128,000 numbers of at least five bits.
    assert record.constants["phase_bytes"][4] > 80_000 > max(record.constants["phase_bytes"][:4])


def test_a_fleet_that_one_cohort_could_hold_is_declined():
    with pytest.raises(CannotRunError, match="--devices must be more than the 6 places"):
        measured(Scenario(devices=6, cohorts=1, goal=6, over_selection=1, minimum=2))
