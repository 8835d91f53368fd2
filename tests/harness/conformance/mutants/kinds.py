"""Faults of uploads that are not ternary: exact gradients, and both rules of the paper's objective."""

from __future__ import annotations

import numpy as np

from lightfr.v1 import model_pb2
from lightfr_harness.server.coordinator import publishing
from lightfr_harness.server.rules import PaperRule, catalogue, uploads
from lightfr_harness.server.rules.bits import unpack_signs
from tests.harness.conformance.mutants import around, mutant, never_refuse

EXACT, PAPER, CODES = "exact", "paper", "codes"


@mutant("limit-of-ternary-rows", "the limit has room for ternary rows alone", "checkin.upload-limit", EXACT)
def limit_of_ternary_rows():
    publishing.BITS_OF_KIND = dict.fromkeys(publishing.BITS_OF_KIND, 2)


@mutant("any-kind-of-rows", "rows of every kind are taken", "upload.ternary-rows", EXACT)
def any_kind_of_rows():
    never_refuse(uploads, "rows are not of the kind asked for")


@mutant("gradients-big-endian", "gradients are read with the highest byte first", "aggregate.random-rounds", EXACT)
def gradients_big_endian():
    @around(uploads.Upload, "values")
    def _(original, self):
        return original(self).byteswap()


@mutant("steps-without-end", "a round moves a memory by any amount", "aggregate.clamp", EXACT)
def steps_without_end():
    catalogue.LARGEST_SUM = 2**40


@mutant("sums-of-32-bits", "sums of the paper's gradients wrap around", "aggregate.large-gradients", PAPER)
def sums_of_32_bits():
    @around(PaperRule, "_start_sums")
    def _(original, self):
        self._row_sums = np.zeros((len(self.own_codes), self.code_bits), np.int32)


@mutant("balance-of-all-bits", "the balance of a bit counts the bit itself", "aggregate.random-rounds", PAPER)
def balance_of_all_bits():
    @around(PaperRule, "_apply")
    def _(original, self):
        signs = unpack_signs(self.own_codes, self._row_sums.shape)
        self._row_sums -= self.balance * signs.astype(np.int64)
        original(self)


@mutant("balance-where-sent", "rows that no device sent are not balanced", "aggregate.balance-alone", PAPER)
def balance_where_sent():
    @around(PaperRule, "_apply")
    def _(original, self):
        rest = ~self._row_sums.any(axis=1)
        codes = self.own_codes[rest].copy()
        original(self)
        self.own_codes[rest] = codes


@mutant("zero-votes-against", "votes that come to zero are votes against", "aggregate.vote-of-zero", PAPER)
def zero_votes_against():
    @around(PaperRule, "_set_codes_by_sign")
    def _(original, self, votes):
        original(self, np.where(votes == 0, -1, votes))


@mutant("user-code-of-the-paper", "a user code that nobody asked for is taken", "upload.user-code", PAPER)
def user_code_of_the_paper():
    never_refuse(uploads, "user_code must be 0 bytes")


@mutant("codes-balanced-again", "codes are balanced, as gradients are", "aggregate.codes-nobody-sent", CODES)
def codes_balanced_again():
    @around(PaperRule, "_apply")
    def _(original, self):
        kind, self.upload_kind = self.upload_kind, model_pb2.UPLOAD_KIND_EXACT
        original(self)
        self.upload_kind = kind
