"""Emulated devices: a profile's memory, CPU, link and storage, enforced on a process of its own, measured from outside.

`run` is the whole of it: a scenario and profiles in, a run record out (a dict, ready for JSON). Its shape stands in
`record.py`.
"""

from lightfr_harness.devices.enforcement import EnforcementError
from lightfr_harness.devices.profiles import Profile, load_profile, profile_names
from lightfr_harness.devices.runner import Plan, run
from lightfr_harness.devices.scenario import Scenario

__all__ = [
    "EnforcementError",
    "Plan",
    "Profile",
    "Scenario",
    "load_profile",
    "profile_names",
    "run",
]
