"""Faults of the integers: bit order, rounding, weights."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from lightfr_harness.server.coordinator.publishing import Publisher
from lightfr_harness.server.rules import CatalogueRule, catalogue
from lightfr_harness.server.rules.bits import pack_signs, unpack_signs
from tests.harness.conformance.mutants import around, mutant


@mutant("bit-order", "codes are published with the highest bit first", "aggregate.vectors-1")
def bit_order():
    @around(Publisher, "put")
    def _(original, self, content):
        is_codes = len(content) == 73 * 4
        turned = np.packbits(np.unpackbits(np.frombuffer(content, np.uint8)), bitorder="little").tobytes()
        return original(self, turned if is_codes else content)


@mutant(
    "bit-order-within",
    "all codes are read and written with the highest bit first, so that only the mean user tells",
    "aggregate.vectors-1",
)
def bit_order_within():
    @around(CatalogueRule, "_model_fields")
    def _(original, self):
        mean = self.mean_user.reshape(-1, 8)[:, ::-1].reshape(-1)
        return original(self) | {"mean_user": mean.astype("<i2").tobytes() if mean.any() else b""}


@mutant("sign-of-zero", "sign(0) is stored as +1", "aggregate.zero-keeps-the-bit")
def sign_of_zero():
    _with_aggregation(lambda memory, signs: np.where(memory >= 0, 1, -1), _floor)


@mutant(
    "sign-of-zero-minus",
    "sign(0) is stored as -1: a bit is set where the sum is above zero",
    "aggregate.zero-keeps-the-bit",
)
def sign_of_zero_minus():
    _with_aggregation(lambda memory, signs: np.where(memory > 0, 1, -1), _floor)


@mutant("shift-toward-zero", "`>>` of a negative memory rounds toward zero", "aggregate.memory-rounds-down")
def shift_toward_zero():
    _with_aggregation(_kept_at_zero, lambda memory: np.trunc(memory / 16).astype(np.int32))


@mutant("memory-forgets-nothing", "the memory is a sum that forgets nothing", "aggregate.memory")
def memory_forgets_nothing():
    _with_aggregation(_kept_at_zero, np.zeros_like)


@mutant("memory-of-one-round", "the memory begins anew with each version", "aggregate.vectors-2")
def memory_of_one_round():
    @around(CatalogueRule, "finish_round")
    def _(original, self):
        self.memory = np.zeros_like(self.memory)
        original(self)


def _floor(memory):
    return memory >> 4


def _kept_at_zero(memory, signs):
    return np.where(memory == 0, signs, np.sign(memory))


def _with_aggregation(sign, forgotten):
    """The kernel's last step with another sign or another shift; both get arrays."""

    def aggregate(*buffers):
        sums, _, _, memory, packed = map(np.asarray, buffers)
        memory[:] = memory - forgotten(memory) + sums
        packed[:] = pack_signs(sign(memory, unpack_signs(packed, memory.shape)))

    catalogue._kernel = SimpleNamespace(aggregate=aggregate)


@mutant("term-toward-zero", "the division of the catalogue term rounds toward zero", "aggregate.term-rounds-down")
def term_toward_zero():
    _with_term(lambda dividend, divisor: np.trunc(dividend / divisor).astype(np.int64))


@mutant("term-rounded", "the division of the catalogue term rounds to the nearest", "aggregate.vectors-2")
def term_rounded():
    _with_term(lambda dividend, divisor: np.rint(dividend / divisor).astype(np.int64))


def _with_term(divide):
    def apply_rows(self, rows, user_sum, weight):
        signs = unpack_signs(self.own_codes[rows], self.memory[rows].shape).astype(np.int64)
        others = ((signs @ user_sum)[:, None] - signs * user_sum) * user_sum // max(weight, 1)
        against = others + catalogue.catalogue_target(32) * user_sum
        moved = 256 * self._row_sums[rows] - divide(512 * against, self.n_items * self.code_bits)
        memory = self.memory[rows] - (self.memory[rows] >> 4) + moved
        self.memory[rows], self.own_codes[rows] = memory, pack_signs(_kept_at_zero(memory, signs))

    CatalogueRule._apply_rows = apply_rows


@mutant("diagonal-stays", "a bit is compared with itself", "aggregate.vectors-1")
def diagonal_stays():
    @around(CatalogueRule, "_individual")
    def _(original, self, rows):
        user_sum, weight = self._cohort_sums()
        signs = unpack_signs(self.own_codes[rows], self.memory[rows].shape).astype(np.int64)
        # The server takes it away once.
        return original(self, rows) - 512 * (signs * user_sum**2 // max(weight, 1)) // (self.n_items * self.code_bits)


@mutant("weight-of-rows", "an upload of fewer than 32 rows weighs what it has", "aggregate.light-uploads")
def weight_of_rows():
    catalogue.LEAST_CATALOGUE_RATINGS = 0


@mutant("equal-weights", "every upload weighs the same", "aggregate.light-uploads")
def equal_weights():
    @around(CatalogueRule, "_count")
    def _(original, self, upload, rows):
        original(self, upload, rows)
        self._weights[-1] = catalogue.LEAST_CATALOGUE_RATINGS


@mutant("closed-rows-rest", "the row of closed items does not move at all", "aggregate.closed-rows")
def closed_rows_rest():
    @around(CatalogueRule, "_apply")
    def _(original, self):
        codes, memory = self.own_codes[-1].copy(), self.memory[-1].copy()
        original(self)
        self.own_codes[-1], self.memory[-1] = codes, memory


@mutant("mean-rounded-down", "the mean user is rounded down, not to the nearest", "aggregate.mean-user")
def mean_rounded_down():
    _with_mean(lambda user_sum, weight: 256 * user_sum // weight)


@mutant("mean-in-a-byte", "the mean user ends at 255/256", "aggregate.one-voice")
def mean_in_a_byte():
    _with_mean(lambda user_sum, weight: np.clip((512 * user_sum + weight) // (2 * weight), -255, 255))


@mutant("mean-half-to-even", "halves of the mean user are rounded to the even one", "crowd.mean-user", "crowd")
def mean_half_to_even():
    _with_mean(lambda user_sum, weight: np.rint(256 * user_sum / weight))


def _with_mean(rounded):
    @around(CatalogueRule, "_apply")
    def _(original, self):
        user_sum, weight = self._cohort_sums()
        original(self)
        self.mean_user = rounded(user_sum, weight).astype(np.int16)
