"""Arithmetic on the rows of tables that several methods need."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.method import Floats


def products(left: Floats, right: Floats) -> Floats:
    """The inner product of each row with the row beside it."""
    sums: Floats = np.einsum("nf,nf->n", left, right)
    return sums


def add_rows(table: Floats, rows: Index, values: Floats) -> None:
    """Add each row of values to its row of the table; rows may occur more than once."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    firsts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    table[ordered[firsts]] += np.add.reduceat(values[order], firsts, axis=0)


def pair_numbers(users: Index, items: Index, n_items: int) -> npt.NDArray[np.int64]:
    """A number for each pair of a user and an item."""
    return users.astype(np.int64) * n_items + items


def is_among(pairs: npt.NDArray[np.int64], known: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which pairs are in a sorted list of pairs."""
    places = np.minimum(np.searchsorted(known, pairs), len(known) - 1)
    found: npt.NDArray[np.bool_] = known[places] == pairs
    return found
