"""What a device computes: the fit of its user code, and its part of a training round. No numpy; integers only.

Equations and constants stand in docs/protocol.md; names in the code follow it.
"""

from lightfr.training.fitting import fit_for_round, fit_for_use, may_refine
from lightfr.training.model import PublishedModel
from lightfr.training.updates import RowUpdate, make_update, taught_by

__all__ = [
    "PublishedModel",
    "RowUpdate",
    "fit_for_round",
    "fit_for_use",
    "make_update",
    "may_refine",
    "taught_by",
]
