"""Thousands of simulated devices in one process: the SDK's own training code, messages really encoded and decoded."""

from lightfr_harness.fleet.devices import Fleet, SimulatedDevice
from lightfr_harness.fleet.training import RunOptions, TrainingRun

__all__ = ["Fleet", "RunOptions", "SimulatedDevice", "TrainingRun"]
