"""What a device puts into the vector of a round: its update spread over all open rows, which hides its item set."""

from __future__ import annotations

import os
from array import array
from itertools import pairwise
from math import isqrt
from typing import TYPE_CHECKING

from lightfr import _kernel
from lightfr.errors import CodeLengthError, InvalidInputError, ItemIndexError, OutOfRangeError
from lightfr.secagg.noise import (
    COUNT_VARIANCE,
    add_noise,
    add_ternary_noise,
    require_enough,
    row_variance,
    user_sum_thousandths,
    weight_thousandths,
)
from lightfr.secagg.vector import Block, Vector, gate_blocks, round_blocks
from lightfr.training.constants import CLIPPED_LENGTH, COUNTED_ITEMS, LEAST_CATALOGUE_RATINGS, MAX_WEIGHT
from lightfr.training.model import EXACT, TERNARY
from lightfr.training.updates import sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightfr.interactions import Interactions
    from lightfr.training import PublishedModel, RowUpdate


def blocks_of(model: PublishedModel, devices: int) -> tuple[Block, ...]:
    """Return the blocks of a training round of this model with so many devices in the roster."""
    return round_blocks(model.n_open, model.code_bits, devices, model.noise)


def round_vector(
    model: PublishedModel, update: RowUpdate, devices: int, random_bytes: Callable[[int], bytes] = os.urandom
) -> Vector:
    """Return the numbers of a device in a training round, not masked yet: PRIVATE. `devices` is the roster's size.

    Noise drawn from `random_bytes` is in them: that of mode SECAGG, which no server turns off, or what the model asks
    for in mode SECAGG_DP. Raises PrivacyError when that is too little, and InvalidInputError for an update that the
    model does not allow: make_update makes none.
    """
    vector = vector_without_noise(model, update, devices)
    if model.noise:
        require_enough(model.noise, model.code_bits, devices)
        add_noise(vector["rows"], model.noise.rows_thousandths, random_bytes)
        add_noise(vector["user_sum"], model.noise.sums_thousandths, random_bytes)
    else:
        add_ternary_noise(vector["rows"], devices, row_variance(model.code_bits), random_bytes)
        add_noise(vector["user_sum"], user_sum_thousandths(devices), random_bytes)
        add_noise(vector["weight"], weight_thousandths(devices), random_bytes)
    return vector


def vector_without_noise(model: PublishedModel, update: RowUpdate, devices: int) -> Vector:
    """Return the numbers of a device before noise, for simulations that add it to the sum: see round_vector."""
    _require_fit(model, update)
    vector = Vector(blocks_of(model, devices))
    rows = _clipped(update) if model.noise else _ternary_numbers(update)
    f, numbers = model.code_bits, vector["rows"]
    for i, place in enumerate(_places(model, update.item_indices)):
        numbers[place * f : (place + 1) * f] = array(numbers.format, rows[i * f : (i + 1) * f])
    weight = 1 if model.noise else max(len(update.item_indices), LEAST_CATALOGUE_RATINGS)
    signs, user_sum = array("b", bytes(f)), vector["user_sum"]
    _kernel.unpack(update.user_code, f, signs)
    user_sum[:] = array(user_sum.format, [weight * sign for sign in signs])
    if not model.noise:
        vector["weight"][0] = weight
    return vector


def gate_vector(
    model: PublishedModel, interactions: Interactions, devices: int, random_bytes: Callable[[int], bytes] = os.urandom
) -> Vector:
    """Return the numbers of a device in a gate refresh, not masked yet: PRIVATE. 1 for each rated item, and noise.

    In mode SECAGG_DP a device counts at most 64 of its items, and its noise is what the model asks for.
    """
    vector, items = Vector(gate_blocks(model.n_items, devices, model.noise)), interactions.arrays()[0].tolist()
    counts = vector["counts"]
    for item_index in sample(items, COUNTED_ITEMS, random_bytes) if model.noise else items:
        if item_index >= model.n_items:
            raise ItemIndexError(model.n_items)
        counts[item_index] = 1
    add_count_noise(model, counts, devices, COUNT_VARIANCE, random_bytes)
    return vector


def add_count_noise(
    model: PublishedModel, counts: memoryview[int], devices: int, variance: int, random_bytes: Callable[[int], bytes]
) -> None:
    """Add this device's noise to numbers that are 0 or 1, of which at most 64 are 1 in mode SECAGG_DP.

    `variance` is that of the sum in mode SECAGG, and the least in mode SECAGG_DP.
    """
    if model.noise:
        require_enough(model.noise, model.code_bits, devices, variance)
        add_noise(counts, model.noise.counts_thousandths, random_bytes)
    else:
        add_ternary_noise(counts, devices, variance, random_bytes)


def _require_fit(model: PublishedModel, update: RowUpdate) -> None:
    # Clipped gradients need no other limit; else the bits of a sum have room for so many rows.
    n_rows, most = len(update.item_indices), model.n_items if model.noise else MAX_WEIGHT
    most = min(model.max_rows or most, most)
    if update.upload_kind != (EXACT if model.noise else TERNARY):
        raise InvalidInputError(
            "mode SECAGG sums ternary updates and mode SECAGG_DP exact ones: make the update with this model"
        )
    for code_bits in (update.code_bits, 8 * len(update.user_code)):
        if code_bits != model.code_bits:
            raise CodeLengthError(code_bits, model.code_bits)
    if n_rows > most:
        raise OutOfRangeError("number of rows of the update", n_rows, 0, most)


def _ternary_numbers(update: RowUpdate) -> array[int]:
    f, n_rows = update.code_bits, len(update.item_indices)
    rows = array("i", bytes(4 * n_rows * f))
    _kernel.ternary_add(update.nonzero, update.positive, array("I", range(n_rows)), n_rows, f, n_rows, rows)
    return rows


def _clipped(update: RowUpdate) -> array[int]:
    """Shorten the gradients, all together, to CLIPPED_LENGTH at most: toward zero, by a length that is rounded up."""
    gradients, most = array("i", update.gradients), CLIPPED_LENGTH * update.code_bits
    squared = sum(map(int.__mul__, gradients, gradients))
    if squared <= most * most:
        return gradients
    length = isqrt(squared - 1) + 1
    return array("i", [g * most // length if g >= 0 else -(-g * most // length) for g in gradients])


def _places(model: PublishedModel, item_indices: array[int]) -> array[int]:
    """Return the place of each item among the open ones, its row; the items must ascend."""
    if any(a >= b for a, b in pairwise(item_indices)):
        raise InvalidInputError("the rows of the update are not in strictly ascending order")
    if item_indices and item_indices[-1] >= model.n_items:
        raise ItemIndexError(model.n_items)
    if model.open_rows is None:
        return item_indices
    if not all(map(model.open_rows.is_open, item_indices)):
        raise InvalidInputError("an item of the update is closed by the gate: make the update with this model")
    return model.open_rows.rows_of(item_indices)
