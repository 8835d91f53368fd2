"""Faults that somebody who writes a server from the documents could make, each planted in our correct coordinator.

`python -m tests.harness.conformance.mutants serve ...` is `lightfr-harness serve` with the fault that the variable
LIGHTFR_MUTANT of the environment names. Each says which case must find it; test_mutants.py holds the suite to that.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

VARIABLE = "LIGHTFR_MUTANT"
GROUPS = (
    *("doors", "identities", "downloads", "rounds", "uploads", "arithmetic"),
    *("kinds", "cohorts", "settlements", "steps", "masks", "gates", "noises", "evaluations", "restarts", "catalogues"),
)


@dataclass(frozen=True)
class Mutant:
    """A fault, in words; the case that finds it, on which kit; and how it is planted."""

    name: str
    fault: str
    caught_by: str
    kit: str
    plant: Callable[[], None]


mutants: dict[str, Mutant] = {}


def mutant(name: str, fault: str, caught_by: str, kit: str = "clear") -> Callable[[Callable[[], None]], None]:
    """Declare a fault; the function plants it in the process that calls it."""

    def declare(plant: Callable[[], None]) -> None:
        if name in mutants:
            raise ValueError(f"two mutants are called {name}")
        mutants[name] = Mutant(name, fault, caught_by, kit, plant)

    return declare


def load() -> dict[str, Mutant]:
    """All faults by name."""
    for group in GROUPS:
        importlib.import_module(f"{__name__}.{group}")
    return mutants


def around(owner: Any, name: str) -> Callable[[Callable[..., Any]], None]:
    """Replace a function of a module or class by one that gets the original before its arguments."""
    original = getattr(owner, name)

    def replace(function: Callable[..., Any]) -> None:
        setattr(owner, name, lambda *arguments, **named: function(original, *arguments, **named))

    return replace


def never_refuse(module: ModuleType, reason: str) -> None:
    """Let everything pass that the module would refuse for this reason."""

    @around(module, "_require")
    def _(original: Callable[..., None], condition: bool, said: str) -> None:
        original(condition or reason in said, said)
