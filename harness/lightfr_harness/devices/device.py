"""What a measured device does, phase by phase. It runs as a script of its own, so that it loads the SDK and no more.

Its argument is a JSON object; `phases` names what it does, in this order. After each phase, and after each stage of a
round, it prints a line of JSON and waits for a line on standard input, so that whoever measures it can look at the
process from outside and reset its counters.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightfr import Client

# A phase is timed as often as wanted, but no longer than this.
_LONGEST_SECONDS = 10.0
# How often a device asks for a model that is not there yet.
_POLL_SECONDS = 0.1
# Modules that a device must do without.
_UNWANTED = ("numpy", "grpc", "aiohttp", "sqlite3", "asyncio", "cryptography.x509")


class Device:
    """One device's first session. Each phase is a method; it returns the milliseconds of its calls."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._asked = asked
        self._waited = 0.0
        self._last_rated = (0, 0)

    def live(self) -> None:
        """Go through the phases that were asked for."""
        for phase in self._asked["phases"]:
            latencies_ms = getattr(self, phase)()
            loaded = [name for name in _UNWANTED if name in sys.modules]
            self.say(phase=phase, latencies_ms=latencies_ms, loaded=loaded)
        self._client.close()

    def say(self, **facts: object) -> None:
        """Print a line and wait for the answer; once nobody measures any more, there is nothing to go on for."""
        begin = time.perf_counter()
        print(json.dumps(facts), flush=True)
        if not sys.stdin.readline():
            sys.exit("nobody measures this device any more")
        self._waited += time.perf_counter() - begin

    def open(self) -> list[float]:
        """Start, open the user's data, and keep the ratings. Imports are part of what opening costs."""
        from lightfr import Budget, Client, FileKey

        folder = self._asked["folder"]
        self._client: Client = Client.open(
            f"{folder}/data",
            server=self._asked["server"],
            identity=f"{folder}/identity.pem",
            trust=self._asked["trust"],
            key=FileKey(f"{folder}/key"),
            minimum_cohort=self._asked["minimum_cohort"],
            # Nobody's data is in here, and a scenario may have more rounds than a day of a real device.
            allow_clear_uploads=True,
            budget=Budget(rounds_per_month=10_000, gate_refreshes_per_month=10_000),
        )
        rated = list(self._ratings())
        self._client.rate_many(rated)
        self._last_rated = rated[-1]
        return []

    def _ratings(self) -> Iterator[tuple[int, int]]:
        """Half of the rated items are popular ones, which a catalogue has first; the others are of its first half.

        Where that has too few items, the others come from all of it.
        """
        chosen, items, count = random.Random(self._asked["seed"]), self._asked["items"], self._asked["ratings"]
        often = min((count + 1) // 2, self._asked["popular"])
        rated = dict.fromkeys(chosen.sample(range(self._asked["popular"]), often))
        known = items // 2 if items // 2 >= 2 * count else items
        while len(rated) < count:
            rated[chosen.randrange(known)] = None
        for item in rated:
            yield item, chosen.randint(1, 5)

    def sync(self) -> list[float]:
        """Fetch the model."""
        self._client.sync()
        return []

    def next_sync(self) -> list[float]:
        """Fetch the next model, as soon as there is one."""
        while not self._client.sync():
            self.say(stage="unchanged")
            time.sleep(_POLL_SECONDS)
        return []

    def fit(self) -> list[float]:
        """Fit the user code anew: that is what the first recommendation after a rating waits for."""

        def rate_again() -> None:
            self._client.rate(*self._last_rated)

        return self._timed(lambda: self._client.recommend(10), self._asked["fits"], rate_again)

    def round(self) -> list[float]:
        """Take part in one round, and come back when told to if there is no place. Who measures hears each stage."""

        def take_part() -> None:
            while not (outcome := self._client.participate(progress=lambda stage: self.say(stage=stage))).took_part:
                time.sleep(outcome.retry_after_seconds)

        return self._timed(take_part, 1)

    def recommend(self) -> list[float]:
        """Recommend, with the user code at hand."""
        return self._timed(lambda: self._client.recommend(10), self._asked["recommendations"])

    def _timed(self, work: Callable[[], object], times: int, before: Callable[[], None] | None = None) -> list[float]:
        """The milliseconds of each call, without the time in which the device waited to be measured."""
        latencies: list[float] = []
        first = time.perf_counter()
        while len(latencies) < times and (not latencies or time.perf_counter() - first < _LONGEST_SECONDS):
            if before is not None:
                before()
            begin, waited = time.perf_counter(), self._waited
            work()
            latencies.append(1000 * (time.perf_counter() - begin - (self._waited - waited)))
        return latencies


if __name__ == "__main__":
    Device(json.loads(sys.argv[1])).live()
