"""The time that deadlines go by."""

from __future__ import annotations

import time
from collections.abc import Callable


class SteadyClock:
    """Seconds since 1970 as the system told them at the start; from then on no one who sets the clock moves it.

    So the times that one process compares are in order, and what it stores still means something to the next one.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic, self._offset = monotonic, wall() - monotonic()

    def __call__(self) -> float:
        return self._monotonic() + self._offset
