"""How many rounds of secure aggregation end well when devices drop out: the rules of docs/secagg.md, no cryptography.

    python -m tests.campaigns.dropout --rounds 1000

A round ends well when every phase keeps a quorum and every secret that is needed keeps enough shares. Devices that the
rules make leave (too few neighbours or holders) leave. The graph is that of real rosters.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass

import numpy as np

from lightfr.secagg.roster import ENTRY_BYTES, ID_BYTES, Roster, least_neighbours, usual_numbers
from lightfr.secagg.views import quorum
from lightfr_harness.server.rules.secagg import settle_included

STEPS = ("share", "acknowledge", "sign_included", "upload", "sign_survivors", "reveal")


@dataclass(frozen=True)
class Outcome:
    """How one simulated round ended: well, or in which step it failed."""

    ended_well: bool
    failed_in: str = ""


def random_roster(size: int) -> Roster:
    """Entries that are no keys of anybody: the graph depends on their bytes alone."""
    entries = sorted(os.urandom(ENTRY_BYTES) for _ in range(size))
    return Roster(os.urandom(ID_BYTES), bytes(32), 1, *usual_numbers(size), b"".join(entries))


def simulated_round(size: int, drops: dict[str, float], random: np.random.Generator) -> Outcome:
    """One round in which each device leaves before a step with the chance that `drops` has for it."""
    roster = random_roster(size)
    others = np.arange(size - 1)
    holders = {
        i: [int(j + (j >= i)) for j in np.sort(random.choice(others, roster.holders, replace=False))]
        for i in range(size)
    }
    neighbours = [frozenset(roster.neighbours(i)) for i in range(size)]

    def left(present: set[int], step: str) -> set[int]:
        return {i for i in present if random.random() >= drops.get(step, 0.0)}

    def agree(present: frozenset[int], i: int) -> bool:
        """Whether the device goes on with this set."""
        if 1 + len(present.intersection(holders[i])) < roster.threshold:
            return False
        is_enough = len(present & neighbours[i]) >= least_neighbours(len(neighbours[i]))
        return roster.is_complete or is_enough

    shared = left(set(range(size)), "share")
    acknowledged = left(shared, "acknowledge")
    sent = {i: holders[i] for i in shared}
    included = settle_included(roster, sent, {i: frozenset() for i in acknowledged}).devices
    signed = {i for i in left(set(included), "sign_included") if agree(included, i)}
    uploaded = left(signed, "upload")
    survivors = frozenset(uploaded)
    confirmed = {i for i in left(uploaded, "sign_survivors") if agree(survivors, i)}
    revealed = left(confirmed, "reveal")
    for step, devices in (
        ("share", shared), ("acknowledge", included), ("sign_included", signed), ("upload", uploaded),
        ("sign_survivors", confirmed),
    ):  # fmt: skip
        if len(devices) < quorum(size):
            return Outcome(ended_well=False, failed_in=step)
    for owner in included:
        needed = owner in survivors or not survivors.isdisjoint(neighbours[owner])
        shares = sum(holder in revealed for holder in holders[owner]) + (owner in revealed)
        if needed and shares < roster.threshold:
            return Outcome(ended_well=False, failed_in="reveal")
    return Outcome(ended_well=True)


def failures(size: int, drops: dict[str, float], rounds: int, seed: int = 0) -> list[Outcome]:
    """The rounds that did not end well."""
    random = np.random.default_rng(seed)
    outcomes = (simulated_round(size, drops, random) for _ in range(rounds))
    return [outcome for outcome in outcomes if not outcome.ended_well]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=512)
    options = parser.parse_args()
    plans = {"5 % at every step": dict.fromkeys(STEPS, 0.05)}
    for share in (0.2, 0.3, 0.45):
        for step in STEPS:
            plans[f"{share:.0%} before {step}"] = {step: share}
    for name, drops in plans.items():
        failed = failures(options.devices, drops, options.rounds)
        steps = sorted({outcome.failed_in for outcome in failed})
        print(
            f"{name}: {len(failed)} of {options.rounds} rounds of {options.devices} did not end well {steps}",
            flush=True,
        )


if __name__ == "__main__":
    main()
