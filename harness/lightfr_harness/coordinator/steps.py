"""Named places between two durable writes. Crash tests put a crash here; the coordinator itself does nothing with them."""

from __future__ import annotations


def reached(step: str) -> None:
    """Say that a step was reached."""
