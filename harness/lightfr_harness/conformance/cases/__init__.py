"""The cases, one file per group. They run in the order of this list: what wants an untouched server comes first."""

from __future__ import annotations

import importlib

GROUPS = ("secure_vectors", "tls", "enroll", "upload")


def load() -> None:
    """Declare all cases."""
    for group in GROUPS:
        importlib.import_module(f"{__name__}.{group}")
