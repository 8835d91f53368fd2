"""What a right server must hold after each round, by the equations of docs/protocol.md and nothing else.

Plain and slow on purpose; it shares no code with the coordinator or the kernel.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lightfr.v1 import update_pb2
from lightfr_harness import oracle

Integers = npt.NDArray[np.int64]

LEAST_ROWS = 32
# What every device weighs whose gradients are clipped.
CLIPPED_WEIGHT = 20
BETA = 2
UNIT = 256
LARGEST_SUM = 2**26
SHIFT = 4


def signs_of(packed: bytes, code_bits: int) -> Integers:
    """Rows of signs of packed codes."""
    return oracle.unpack(packed).astype(np.int64).reshape(-1, code_bits)


@dataclass(frozen=True)
class Contribution:
    """One device's part: its rows by item index, of whichever kind, and its user code as signs."""

    rows: dict[int, Integers]
    user: Integers

    @classmethod
    def of(cls, update: update_pb2.RowUpdate) -> Contribution:
        """Of a legal RowUpdate. Without a user code the user is empty."""
        indices = [number for (number,) in struct.iter_unpack("<I", update.item_indices)]
        elements = _elements_of(update)
        rows = {index: elements[i] for i, index in enumerate(indices)}
        return cls(rows, oracle.unpack(update.user_code).astype(np.int64))

    def as_update(self, kind: str = "ternary", *, has_user_code: bool = True) -> update_pb2.RowUpdate:
        """The RowUpdate that says so, with rows of a kind: ternary, exact or codes."""
        indices = sorted(self.rows)
        elements = np.array([self.rows[index] for index in indices], np.int64).reshape(len(indices), len(self.user))
        update = update_pb2.RowUpdate(
            code_bits=len(self.user),
            item_indices=b"".join(struct.pack("<I", index) for index in indices),
            user_code=oracle.pack(self.user.astype(np.int8)) if has_user_code else b"",
        )
        if kind == "exact":
            update.exact.CopyFrom(update_pb2.ExactRows(gradients=elements.astype("<i4").tobytes()))
        elif kind == "codes":
            update.codes.CopyFrom(update_pb2.CodeRows(codes=oracle.pack(elements.astype(np.int8))))
        else:
            planes = [oracle.pack(plane.astype(np.int8)) for plane in (np.abs(elements), elements)]
            update.ternary.CopyFrom(update_pb2.TernaryRows(nonzero=planes[0], positive=planes[1]))
        return update


def _elements_of(update: update_pb2.RowUpdate) -> Integers:
    """The numbers of a RowUpdate, row by row."""
    if update.WhichOneof("rows") == "exact":
        return np.frombuffer(update.exact.gradients, "<i4").astype(np.int64).reshape(-1, update.code_bits)
    if update.WhichOneof("rows") == "codes":
        return signs_of(update.codes.codes, update.code_bits)
    nonzero = signs_of(update.ternary.nonzero, update.code_bits) > 0
    return np.where(nonzero, signs_of(update.ternary.positive, update.code_bits), 0)


class Twin:
    """D, Q and the mean user."""

    def __init__(self, codes: bytes, code_bits: int, *, is_exact: bool = False, is_clipped: bool = False) -> None:
        """`is_exact`: rows are exact gradients. `is_clipped`: devices clip these, as in mode SECAGG_DP."""
        self.code_bits, self._is_exact, self._is_clipped = code_bits, is_exact, is_clipped
        self.signs = signs_of(codes, code_bits)
        self.memory: Integers = np.zeros_like(self.signs)
        # In units of 1/256; zeros before the first round.
        self.mean_user: Integers = np.zeros(code_bits, np.int64)
        self.model_version = 1

    @property
    def codes(self) -> bytes:
        return oracle.pack(self.signs.astype(np.int8))

    def finish_round(self, contributions: Sequence[Contribution]) -> None:
        """The next version, from all that was counted in a round."""
        items, f = self.signs.shape
        tau = (4 * f + 5) // 10
        row_sums: Integers = np.zeros((items, f), np.int64)
        user_sum: Integers = np.zeros(f, np.int64)
        weight = 0
        for one in contributions:
            own = CLIPPED_WEIGHT if self._is_clipped else max(len(one.rows), LEAST_ROWS)
            for index, row in one.rows.items():
                row_sums[index] += row
            user_sum += own * one.user
            weight += own
        others = ((self.signs @ user_sum)[:, None] - self.signs * user_sum) * user_sum // max(weight, 1)
        own_rows = UNIT * row_sums // f if self._is_exact else UNIT * row_sums
        moved = own_rows - self._divided(UNIT * BETA * (others + tau * user_sum), items * f)
        self.memory = self.memory - self._forgotten() + np.clip(moved, -LARGEST_SUM, LARGEST_SUM)
        self.signs = np.where(self.memory == 0, self.signs, np.sign(self.memory))
        if weight:
            self.mean_user = (2 * UNIT * user_sum + weight) // (2 * weight)
        self.model_version += 1

    def change_items(self, old_indices: Sequence[int]) -> None:
        """The next version, with another catalogue: by new index, the old index of the item whose row it has."""
        self.signs, self.memory = self.signs[old_indices], self.memory[old_indices]
        self.model_version += 1

    # In NumPy // rounds toward minus infinity and >> is arithmetic, as the document asks. Cases look for uploads that
    # tell a server which does otherwise.

    def _divided(self, dividend: Integers, divisor: int) -> Integers:
        return dividend // divisor

    def _forgotten(self) -> Integers:
        return self.memory >> SHIFT


class PaperTwin(Twin):
    """The paper's objective: Agg_grad, or Agg_para when devices send codes. Nothing but D moves."""

    def __init__(self, codes: bytes, code_bits: int, *, balance: int, has_codes: bool) -> None:
        super().__init__(codes, code_bits)
        self._balance, self._has_codes = balance, has_codes

    def finish_round(self, contributions: Sequence[Contribution]) -> None:
        """The next version, from all that was counted in a round."""
        votes: Integers = np.zeros_like(self.signs)
        for one in contributions:
            for index, row in one.rows.items():
                votes[index] += row
        if not self._has_codes:
            votes -= self.balance_term()
        self.signs = np.where(votes == 0, self.signs, np.sign(votes))
        self.model_version += 1

    def balance_term(self) -> Integers:
        """The balance times the sum of the other bits of a row."""
        others: Integers = self.signs.sum(axis=1, keepdims=True) - self.signs
        return self._balance * others
