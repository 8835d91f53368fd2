"""What a device puts into the vector of a round: its update spread over all open rows, which hides its item set."""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING

from lightfr import _kernel
from lightfr.errors import CodeLengthError, InvalidInputError, ItemIndexError, OutOfRangeError
from lightfr.secagg.noise import add_noise
from lightfr.secagg.vector import MAX_WEIGHT, Block, Vector, gate_blocks, round_blocks
from lightfr.training.constants import LEAST_CATALOGUE_RATINGS
from lightfr.training.model import TERNARY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lightfr.interactions import Interactions
    from lightfr.training import PublishedModel, RowUpdate


def blocks_of(model: PublishedModel, devices: int) -> tuple[Block, ...]:
    """Return the blocks of a training round of this model with so many devices in the roster."""
    return round_blocks(_count_between(model.open_rows, 0, model.n_items), model.code_bits, devices, model.noise)


def round_vector(
    model: PublishedModel, update: RowUpdate, devices: int, random_bytes: Callable[[int], bytes] = os.urandom
) -> Vector:
    """Return the numbers of a device in a training round, not masked yet: PRIVATE. `devices` is the roster's size.

    Where the model asks for noise it is in them, drawn from `random_bytes`. Raises InvalidInputError for an update that
    the model does not allow: make_update makes none.
    """
    vector = vector_without_noise(model, update, devices)
    if model.noise:
        add_noise(vector["rows"], model.noise.rows_thousandths, random_bytes)
        add_noise(vector["products"], model.noise.sums_thousandths, random_bytes)
        add_noise(vector["user_sum"], model.noise.sums_thousandths, random_bytes)
    return vector


def vector_without_noise(model: PublishedModel, update: RowUpdate, devices: int) -> Vector:
    """Return the numbers of a device before noise, for simulations that add it to the sum: see round_vector."""
    _require_fit(model, update)
    vector = Vector(blocks_of(model, devices))
    _put_rows(model, update, vector["rows"])
    weight = 1 if model.noise else max(len(update.item_indices), LEAST_CATALOGUE_RATINGS)
    _put_sums(update.user_code, weight, vector)
    if not model.noise:
        vector["weight"][0] = weight
    return vector


def gate_vector(n_items: int, interactions: Interactions, devices: int) -> Vector:
    """Return the numbers of a device in a gate refresh, not masked yet: PRIVATE. 1 for each item that it rated."""
    vector = Vector(gate_blocks(n_items, devices))
    counts = vector["counts"]
    for item_index in interactions.arrays()[0]:
        if item_index >= n_items:
            raise ItemIndexError(n_items)
        counts[item_index] = 1
    return vector


def _require_fit(model: PublishedModel, update: RowUpdate) -> None:
    n_rows, most = len(update.item_indices), min(model.max_rows or MAX_WEIGHT, MAX_WEIGHT)
    if update.upload_kind != TERNARY:
        raise InvalidInputError("only ternary updates can be summed securely: ask for UPLOAD_KIND_TERNARY")
    for code_bits in (update.code_bits, 8 * len(update.user_code)):
        if code_bits != model.code_bits:
            raise CodeLengthError(code_bits, model.code_bits)
    if n_rows > most:
        raise OutOfRangeError("number of rows of the update", n_rows, 0, most)


def _put_rows(model: PublishedModel, update: RowUpdate, numbers: memoryview[int]) -> None:
    f, n_rows = model.code_bits, len(update.item_indices)
    rows = array("i", bytes(4 * n_rows * f))
    _kernel.ternary_add(update.nonzero, update.positive, array("I", range(n_rows)), n_rows, f, n_rows, rows)
    for i, place in enumerate(_places(model, update.item_indices)):
        numbers[place * f : (place + 1) * f] = array(numbers.format, rows[i * f : (i + 1) * f])


def _places(model: PublishedModel, item_indices: array[int]) -> Iterator[int]:
    """Yield the place of each item among the open rows; the items must ascend."""
    gate, place, next_item = model.open_rows, 0, 0
    for item in item_indices:
        if item >= model.n_items:
            raise ItemIndexError(model.n_items)
        if item < next_item:
            raise InvalidInputError("the rows of the update are not in strictly ascending order")
        if gate is not None and not gate[item >> 3] >> (item & 7) & 1:
            raise InvalidInputError("a row of the update is closed by the gate: make the update with this model")
        place += _count_between(gate, next_item, item)
        yield place
        place, next_item = place + 1, item + 1


def _count_between(gate: bytes | None, first: int, end: int) -> int:
    """Return how many of the items from `first` to before `end` are open."""
    if gate is None:
        return end - first
    bits = int.from_bytes(gate[first >> 3 : (end + 7) >> 3], "little") >> (first & 7)
    return (bits & ((1 << (end - first)) - 1)).bit_count()


def _put_sums(user_code: bytes, weight: int, vector: Vector) -> None:
    """Put in w b, and w b_j b_k for j < k, which is a stretch of w b or of -w b for each j."""
    f = 8 * len(user_code)
    signs, kind = array("b", bytes(f)), vector["products"].format
    _kernel.unpack(user_code, f, signs)
    plus, minus = (array(kind, [w * sign for sign in signs]) for w in (weight, -weight))
    products = array(kind)
    for j, sign in enumerate(signs):
        products.extend((plus if sign > 0 else minus)[j + 1 :])
    vector["products"][:] = products
    vector["user_sum"][:] = plus
