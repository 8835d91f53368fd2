"""How many devices a masked round has. This module is apart from secagg, which takes long to import."""

from __future__ import annotations

from lightfr.errors import OutOfRangeError

MIN_DEVICES = 2
MAX_DEVICES = 8192
# A device that was told nothing else takes part only among so many.
DEFAULT_MINIMUM_COHORT = 256


def require_minimum_cohort(minimum_cohort: int) -> None:
    """Raise OutOfRangeError unless there can be rosters of so many devices."""
    if not MIN_DEVICES <= minimum_cohort <= MAX_DEVICES:
        raise OutOfRangeError("minimum_cohort", minimum_cohort, MIN_DEVICES, MAX_DEVICES)
