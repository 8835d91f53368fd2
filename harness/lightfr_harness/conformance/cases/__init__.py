"""The cases, one file per group. They run in the order of this list: what wants an untouched server comes first."""

from __future__ import annotations

import importlib

GROUPS = (
    *("tls", "enroll", "renew", "connect", "version", "manifest", "artifacts"),
    *("vectors", "checkin", "upload", "upload_content", "status", "round", "aggregate", "kinds", "deltas"),
    *("sums", "cohort", "advertise", "share", "acknowledge", "included", "masked", "survivors", "reveal"),
    *("steps", "abandon", "crowd", "gate", "noise", "evaluation"),
    *("restart", "memory", "catalogue"),
)


def load() -> None:
    """Declare all cases."""
    for group in GROUPS:
        importlib.import_module(f"{__name__}.{group}")
