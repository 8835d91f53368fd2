"""What a device spends of its battery on a session, a round and a day: an estimate, nobody measured joules.

CPU seconds times the power of the device's core, bytes times what its radio takes for them, and what a wake-up of the
radio takes until it sleeps again. The constants are the profile's, each with its source.
"""

from __future__ import annotations

from typing import Any

from lightfr.budget import Budget
from lightfr_harness.audits.finding import Finding, formula_only

SOURCE = "docs/emulation.md, Energy"
PARTS = ("cpu_joules", "radio_joules", "wake_joules")
# A day is a session like the one measured, but with as much of a round as the SDK's budget grants a day.
ROUNDS_A_DAY = Budget().rounds_per_month / 30
JOULES_PER_WH = 3600

Spent = dict[str, float]


def estimates(devices: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By profile, of its first device that finished: `session`, `round` and `day`."""
    found: dict[str, dict[str, Any]] = {}
    for device in devices:
        if device["finished"]:
            found.setdefault(device["profile"]["name"], _of(device))
    return found


def _of(device: dict[str, Any]) -> dict[str, Any]:
    profile = device["profile"]
    phases = {name: _spent(profile, phase, _wakes(name, phase)) for name, phase in device["phases"].items()}
    session = {part: sum(each[part] for each in phases.values()) for part in PARTS}
    round_ = phases.get("round", dict.fromkeys(PARTS, 0.0))
    day = {part: session[part] - (1 - ROUNDS_A_DAY) * round_[part] for part in PARTS}
    battery = profile["battery_wh"] * JOULES_PER_WH
    return {
        name: {
            **spent,
            "joules": (joules := sum(spent.values())),
            "battery_share": joules / battery if battery else None,
        }
        for name, spent in (("session", session), ("round", round_), ("day", day))
    }


def _spent(profile: dict[str, Any], phase: dict[str, Any], wakes: int) -> Spent:
    # CPU seconds are those of the machine; the device's core takes longer, or shorter, by its relative speed.
    up, down = phase["up_bytes"] * profile["up_joules_per_mb"], phase["down_bytes"] * profile["down_joules_per_mb"]
    return {
        "cpu_joules": phase["cpu_seconds"] / profile["relative_speed"] * profile["core_watts"],
        "radio_joules": (up + down) / 1e6,
        "wake_joules": wakes * profile["wake_joules"],
    }


def _wakes(name: str, phase: dict[str, Any]) -> int:
    """A device waits for its cohort between the stages of a round, and we take it that its radio sleeps meanwhile."""
    if not phase["up_bytes"]:
        return 0
    return max(1, len(phase.get("stages", ()))) if name == "round" else 1


def audit(energy: dict[str, dict[str, Any]]) -> list[Finding]:
    """Estimates stand where predictions do, with nothing measured beside them."""
    return [
        formula_only(f"energy of a {span}, an estimate", SOURCE, spent["joules"], "joules", profile, in_words(spent))
        for span in ("session", "round", "day")
        for profile, spans in energy.items()
        for spent in (spans[span],)
    ]


def in_words(spent: dict[str, Any]) -> str:
    """What it is made of, and how much of the battery it is."""
    cpu, radio, wakes = (f"{spent[part]:.2g} J" for part in PARTS)
    share = spent["battery_share"]
    battery = "the device has no battery" if share is None else f"{100 * share:.2g} % of the battery"
    return f"CPU {cpu}, radio {radio}, its wake-ups {wakes}; {battery}"
