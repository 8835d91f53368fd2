"""How methods are judged: which ratings are held out, and among how many drawn items each has to be found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lightfr_harness.data import Split, leave_last_out, sampled_80_10_10

# Each takes the ratings, and validation_in_train: True for final figures, False to choose constants on validation.
PROTOCOLS: dict[str, Callable[..., Split]] = {
    "last-out-49": partial(leave_last_out, n_negatives=49),
    "last-out-99": partial(leave_last_out, n_negatives=99),
    "80-10-10-sampled": partial(sampled_80_10_10, n_negatives=49),
}
