"""The most that a device gives to a server that may lie, and how much of it is spent."""

from __future__ import annotations

import json
import time
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from lightfr import _arguments
from lightfr.errors import InvalidInputError, OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightfr.store import Store

_PERIOD_SECONDS = 30 * 86_400.0
# Name of the value in the store.
_SPENT = "spent"


class Budget(NamedTuple):
    """How often a device takes part with secure aggregation, and how long it waits. Tests and trials raise the numbers.

    A round in the clear has no budget: it reveals everything at once, and is for audits.
    """

    # In any 30 days. Every round says a little more: audit privacy holds for so many rounds of a device.
    rounds_per_month: int = 12
    gate_refreshes_per_month: int = 1
    # In one round, whatever deadlines the server names: until the next step is due, and in all.
    phase_seconds: float = 600.0
    round_seconds: float = 1_800.0

    def require_valid(self) -> None:
        """Raise InvalidInputError for what is no number from 0 on, or for a part of a round."""
        for name, value in self._asdict().items():
            try:
                is_valid = value >= 0
            except TypeError:
                raise InvalidInputError(f"budget.{name} must be a number, not {type(value).__name__}") from None
            if not is_valid:
                raise OutOfRangeError(f"budget.{name}", value, 0, inf)
            if name.endswith("_per_month") and value != inf:
                _arguments.whole(f"budget.{name}", value)


class Spent(NamedTuple):
    """What a device has given so far. It says when the device took part, and nothing of what it sent."""

    # Unix seconds of the uploads of the last 30 days, by the clock of the device, in the order in which they were made.
    rounds: list[float]
    gate_refreshes: list[float]
    # The newest model version on which this device has revealed shares; 0: none.
    revealed_version: int = 0
    # rho of all rounds of mode SECAGG_DP; see privacy_loss.
    privacy_loss: float = 0.0


class Ledger:
    """What is spent, in the store. Whoever sends a message keeps what it costs together with it, BEFORE it is sent."""

    def __init__(self, store: Store, budget: Budget, now: Callable[[], float] = time.time) -> None:
        """`now` returns unix seconds."""
        self._store, self._budget, self._now = store, budget, now

    def spent(self) -> Spent:
        """Return what is spent now.

        What was spent later than now, by a clock that was ahead then or is behind now, counts as spent just now. And
        nothing was spent earlier than what was spent before it: the clock was behind then.
        """
        kept = self._kept()
        return kept._replace(rounds=self._counted(kept.rounds), gate_refreshes=self._counted(kept.gate_refreshes))

    def _kept(self) -> Spent:
        kept = self._store.get(_SPENT)
        return Spent([], []) if kept is None else Spent(**json.loads(kept))

    def _counted(self, times: list[float]) -> list[float]:
        now = self._now()
        return [at for at in _believed(times, now) if at > now - _PERIOD_SECONDS]

    def _worth_keeping(self, times: list[float], most: int) -> list[float]:
        """Without those that have had their time by this clock, but for as many as the budget counts.

        The clock may be ahead: once it is right again, those that it took for old are new.
        """
        now, first = self._now(), len(times) - most
        believed = zip(times, _believed(times, now), strict=True)
        return [at for i, (at, when) in enumerate(believed) if i >= first or when > now - _PERIOD_SECONDS]

    def seconds_until_room(self, *, is_gate_refresh: bool) -> float:
        """Return when the budget has room for one more round of this kind; 0: now."""
        spent, budget = self.spent(), self._budget
        times = spent.gate_refreshes if is_gate_refresh else spent.rounds
        most = budget.gate_refreshes_per_month if is_gate_refresh else budget.rounds_per_month
        if len(times) < most:
            return 0.0
        # As soon as all but `most - 1` of them are more than 30 days ago.
        oldest = sorted(times)[-most] if most else self._now()
        return oldest + _PERIOD_SECONDS - self._now()

    def after_upload(self, *, is_gate_refresh: bool, privacy_loss: float) -> dict[str, bytes]:
        """Return what to keep before an upload is sent: from then on it may be in a sum."""
        kept, budget = self._kept(), self._budget
        times = kept.gate_refreshes if is_gate_refresh else kept.rounds
        times.append(self._now())
        return _values(
            kept._replace(
                rounds=self._worth_keeping(kept.rounds, budget.rounds_per_month),
                gate_refreshes=self._worth_keeping(kept.gate_refreshes, budget.gate_refreshes_per_month),
                privacy_loss=kept.privacy_loss + privacy_loss,
            )
        )

    def after_reveal(self, model_version: int) -> dict[str, bytes]:
        """Return what to keep before shares are revealed."""
        return _values(self._kept()._replace(revealed_version=model_version))


def _believed(times: list[float], now: float) -> list[float]:
    """Return when each of these uploads was made at the latest, as far as the clock of now can be believed."""
    newest, believed = 0.0, []
    for at in times:
        if at > now:
            believed.append(now)
            continue
        newest = max(newest, at)
        believed.append(newest)
    return believed


def _values(spent: Spent) -> dict[str, bytes]:
    return {_SPENT: json.dumps(spent._asdict()).encode()}
