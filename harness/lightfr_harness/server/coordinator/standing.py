"""Who may have a place: what is known against devices. Pure logic; times are seconds, passed in.

Some devices show themselves to be at fault, by what they deliver. Others can only be found by leaving them out: a sum
that is not plausible says that one of its devices lied, and not which.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.server.coordinator.phases import INCLUDING
from lightfr_harness.server.coordinator.plan import GATE_REFRESH
from lightfr_harness.server.coordinator.rounds import Round

# After so many faults a device gets no place for so long, and then with every further one.
MOST_FAULTS = 3
PAUSE_SECONDS = 86_400.0
# So many good sums clear a suspect, and so many spoilt ones name the last: a device may lie only now and then.
CLEARING_SUMS, CONFIRMING_SUMS = 3, 2
# Faults of a device that delivered something that was refused, and of one that is left as the only suspect.
REFUSED, NAMED = "what it delivered was refused", "every sum that it is in is spoilt"


@dataclass(frozen=True)
class Fault:
    """How often a device was at fault, how at last, and when."""

    device: str
    count: int
    reason: str
    at: float


class Faults:
    """The devices that were at fault. `known` is what was kept."""

    def __init__(self, known: Iterable[Fault]) -> None:
        self._known = {fault.device: fault for fault in known}

    def note(self, device: str, reason: str, now: float, weight: int = 1) -> Fault:
        """Count a fault; returns what is to be kept."""
        before = self._known[device].count if device in self._known else 0
        self._known[device] = Fault(device, before + weight, reason, now)
        return self._known[device]

    def is_paused(self, device: str, now: float) -> bool:
        """Whether the device gets no place for now."""
        fault = self._known.get(device)
        # A fault that lies ahead was noted by a clock that has been set back since.
        return fault is not None and fault.count >= MOST_FAULTS and min(fault.at, now) + PAUSE_SECONDS > now

    def newest_first(self) -> list[Fault]:
        return sorted(self._known.values(), key=lambda fault: fault.at, reverse=True)


class Standing:
    """All that is known against devices, and which of them took part in the first of a pair of gate refreshes."""

    def __init__(self, faults: Iterable[Fault], counted: frozenset[str]) -> None:
        self.faults, self.counted, self._suspects = Faults(faults), counted, Suspects()

    def remember(self, faults: Iterable[Fault], counted: frozenset[str], suspects: str) -> None:
        """Take up what is stored by now."""
        self.faults, self.counted, self._suspects = Faults(faults), counted, Suspects(suspects)

    @property
    def suspects(self) -> str:
        """What is to be kept of them when a cohort has ended."""
        return self._suspects.as_json()

    def turned_away(self, device: str, current: Round, now: float) -> int | None:
        """The RetryReason of a device that gets no place although there may be one left; None: it gets one."""
        if self.faults.is_paused(device, now):
            return pb.RETRY_REASON_FAULTY
        # The two refreshes of a pair have no device in common: one that lies is in one of them.
        is_counted = current.kind == GATE_REFRESH and device in self.counted
        return pb.RETRY_REASON_ROUND_FULL if is_counted or self._suspects.keeps_out(device, current.round_id) else None

    def too_few(self) -> None:
        """A round ended for want of devices."""
        self._suspects.too_few()

    def added_up(self, good: Sequence[Round], spoilt: Sequence[Round], now: float) -> list[Fault]:
        """Sums of these cohorts were good, and devices of those have spoilt theirs; returns what is to be kept."""
        liar = None
        if spoilt:
            liar = self._suspects.spoilt({device for one in spoilt for device in one.delivered[INCLUDING]})
        if good:
            self._suspects.good({device for one in good for device in one.receipts})
        return [] if liar is None else [self.faults.note(liar, NAMED, now, MOST_FAULTS)]

    def note(self, ended: Round, now: float) -> list[Fault]:
        """Count the faults of a cohort, which are to be kept. A device that was only refused is named, not counted."""
        if ended.cohort is None:
            return []
        found = dict.fromkeys(ended.cohort.refused, REFUSED) | ended.cohort.faults
        return [self.faults.note(device, reason, now, int(reason != REFUSED)) for device, reason in found.items()]


class Suspects:
    """Finds a device that spoils sums, by halving: docs/protocol.md, "Who spoilt it".

    Whoever was in every spoilt sum is suspected, until it was in some good ones. A round gives places to half of the
    suspects, so that a spoilt sum clears the other half. The last suspect gets a place by chance: when somebody else
    lies, a sum without it is soon spoilt too. All of it needs enough other devices: when a round that left some out had
    too few, the next one leaves out nobody.
    """

    def __init__(self, kept: str = "") -> None:
        """Begin without any, or with what `as_json` gave."""
        # Suspect to the good sums that it was in since the last spoilt one.
        self._suspected: dict[str, int] = {}
        # Spoilt sums in a row with the only suspect in them.
        self._confirmed = 0
        self._is_lifted = False
        if kept:
            self._suspected, self._confirmed, self._is_lifted = json.loads(kept)
        # Of one round: those that it leaves out. It follows from the suspects, so that all replicas say the same.
        self._left_out: tuple[bytes, frozenset[str]] = b"", frozenset()

    def as_json(self) -> str:
        """All that another process needs to go on; empty while nobody is suspected."""
        return json.dumps([self._suspected, self._confirmed, self._is_lifted]) if self._suspected else ""

    def __len__(self) -> int:
        return len(self._suspected)

    def keeps_out(self, device: str, round_id: bytes) -> bool:
        """Whether the device must wait for another round."""
        if self._is_lifted or device not in self._suspected:
            return False
        if self._left_out[0] != round_id:
            order = sorted(self._suspected, key=lambda one: hashlib.sha256(round_id + one.encode()).digest())
            # Chance decides which half is the larger one, and so whether a last suspect has a place.
            self._left_out = round_id, frozenset(order[(len(order) + round_id[0] % 2) // 2 :])
        return device in self._left_out[1]

    def spoilt(self, devices: Collection[str]) -> str | None:
        """A sum of these was spoilt; the liar, if it was the only suspect in the last spoilt sums."""
        both = self._suspected.keys() & devices
        self._confirmed = self._confirmed + 1 if both and len(self) == 1 else 0
        self._suspected, self._is_lifted = dict.fromkeys(both or devices, 0), False
        if self._confirmed < CONFIRMING_SUMS:
            return None
        self._suspected, self._confirmed = {}, 0
        return both.pop()

    def good(self, devices: Collection[str]) -> None:
        """A sum of these was good."""
        counted = {device: count + (device in devices) for device, count in self._suspected.items()}
        self._suspected = {device: count for device, count in counted.items() if count < CLEARING_SUMS}
        self._is_lifted = False

    def too_few(self) -> None:
        """A round ended for want of devices."""
        self._is_lifted = bool(self._suspected) and not self._is_lifted
