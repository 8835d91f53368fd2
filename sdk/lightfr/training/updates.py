"""A device's part of a round: gradients of some of its rated rows, in the form that the round asks for."""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING, NamedTuple

from lightfr import _kernel
from lightfr._secret import secret
from lightfr.interactions import LEVELS
from lightfr.training.fitting import targets_of
from lightfr.training.model import CODES, PAPER, TERNARY, PublishedModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightfr.codes import UserCode
    from lightfr.interactions import Interactions

    RandomBytes = Callable[[int], bytes]


def taught_by(model: PublishedModel, interactions: Interactions) -> Interactions:
    """Return which of a user's opinions a round uses. The paper's objective knows no dislikes: it uses all ratings."""
    return interactions if model.objective == PAPER else interactions.to_teach()


@secret
class RowUpdate(NamedTuple):
    """Gradients of some rows. Private until it is summed with those of others: from it the ratings can be recovered."""

    code_bits: int
    upload_kind: int
    item_indices: array[int]
    nonzero: bytes | bytearray = b""
    positive: bytes | bytearray = b""
    gradients: bytes = b""
    codes: bytes = b""
    user_code: bytes = b""

    def __repr__(self) -> str:
        return f"<RowUpdate of {self.code_bits} bits>"


def make_update(
    model: PublishedModel, interactions: Interactions, code: UserCode, random_bytes: RandomBytes = os.urandom
) -> RowUpdate:
    """Compute what this device uploads. `random_bytes` must be cryptographic, except in simulations."""
    indices = array("I", _choose(model, interactions.arrays()[0], random_bytes))
    targets = targets_of(model, map(interactions.level_of, indices), len(indices))
    rows = _kernel.gather(model.codes.kernel_pointer(), indices, len(indices))
    scale = LEVELS if model.objective == PAPER else 1
    gradients = _kernel.row_gradients(rows, len(indices), code.reveal(), model.code_bits, targets, scale)
    shown = b"" if model.objective == PAPER else code.reveal()
    if model.upload_kind == TERNARY:
        n = len(indices) * model.code_bits
        nonzero, positive = _kernel.ternary(gradients, n, scale * model.code_bits, random_bytes(2 * n))
        return RowUpdate(model.code_bits, TERNARY, indices, nonzero=nonzero, positive=positive, user_code=shown)
    if model.upload_kind == CODES:
        new_rows = _own_rows(model, rows, gradients)
        return RowUpdate(model.code_bits, CODES, indices, codes=new_rows, user_code=shown)
    return RowUpdate(model.code_bits, model.upload_kind, indices, gradients=bytes(gradients), user_code=shown)


def _choose(model: PublishedModel, rated: array[int], random_bytes: RandomBytes) -> list[int]:
    """At most max_rows of the rated items that are open, by ascending index."""
    open_rows = model.open_rows
    items = rated.tolist() if open_rows is None else [i for i in rated if open_rows.is_open(i)]
    return sample(items, model.max_rows or len(items), random_bytes)


def sample(items: list[int], wanted: int, random_bytes: RandomBytes) -> list[int]:
    """Return at most so many of the items, uniformly chosen, by ascending index."""
    n = len(items)
    if n > wanted:
        for i, draw in enumerate(array("I", random_bytes(4 * wanted))):
            j = i + (draw * (n - i) >> 32)
            items[i], items[j] = items[j], items[i]
        del items[wanted:]
    items.sort()
    return items


def _own_rows(model: PublishedModel, rows: bytearray, gradients: memoryview) -> bytes:
    """Agg_para: the rows as this device alone would set them, sign(g - balance * sum of the row's other bits)."""
    f, codes = model.code_bits, bytearray(rows)
    values = memoryview(gradients).cast("B").cast("i")
    for i in range(len(rows) * 8 // f):
        row = int.from_bytes(rows[i * f // 8 : (i + 1) * f // 8], "little")
        row_sum = 2 * row.bit_count() - f
        for k in range(f):
            sign = 1 if row >> k & 1 else -1
            vote = values[i * f + k] - model.balance * (row_sum - sign)
            if vote * sign < 0:
                codes[(i * f + k) >> 3] ^= 1 << (k & 7)
    return bytes(codes)
