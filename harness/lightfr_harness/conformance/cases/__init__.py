"""The cases, one file per group. They run in the order of this list: what wants an untouched server comes first."""

from __future__ import annotations

import importlib

GROUPS = ("sums", "tls", "enroll", "upload", "advertise", "share", "masked", "reveal", "steps", "abandon")


def load() -> None:
    """Declare all cases."""
    for group in GROUPS:
        importlib.import_module(f"{__name__}.{group}")
