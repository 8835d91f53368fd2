"""How methods are judged: which ratings are held out, and among how many drawn items each has to be found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lightfr_harness.data import Candidates, Ratings, Split, leave_last_out, sampled_80_10_10


@dataclass(frozen=True, eq=False)
class Parts:
    """One way to hold ratings out, ready for use."""

    choosing: Split
    final: Split
    # By protocol: the same held-out ratings among other numbers of drawn items.
    tests: Mapping[str, Candidates]


@dataclass(frozen=True)
class HoldOut:
    """One way to hold ratings out. Its protocols differ in the candidates only, so one model serves them all."""

    split: Callable[..., Split]
    # How many negatives each protocol draws. Constants are chosen by the first one's validation.
    protocols: Mapping[str, int]

    def parts(self, ratings: Ratings) -> Parts:
        finals = {name: self.split(ratings, n_negatives=count) for name, count in self.protocols.items()}
        first = next(iter(self.protocols.values()))
        return Parts(
            choosing=self.split(ratings, n_negatives=first, validation_in_train=False),
            final=next(iter(finals.values())),
            tests={name: split.test for name, split in finals.items()},
        )


HOLD_OUTS: dict[str, HoldOut] = {
    "last-out": HoldOut(leave_last_out, {"last-out-49": 49, "last-out-99": 99}),
    "80-10-10": HoldOut(sampled_80_10_10, {"80-10-10-sampled": 49}),
}
PROTOCOLS: dict[str, str] = {name: held for held, by in HOLD_OUTS.items() for name in by.protocols}
