"""Named places between two durable writes, where crash tests put a crash. Nothing happens here otherwise."""

from __future__ import annotations


def reached(step: str) -> None:
    """Say that a step was reached."""
