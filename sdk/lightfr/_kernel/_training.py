"""Bits, the user fit, gradients and aggregation: thin wrappers of the kernel's training operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lightfr import errors
from lightfr._kernel._boundary import check, ffi, lib, readable, require_code_bits, require_range, writable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from lightfr._kernel._search import CodesPointer


def _require_whole_bytes(what: str, n: int) -> None:
    if n % 8:
        raise errors.InvalidInputError(f"{what} has {n} elements, expected a multiple of 8")


def pack(signs: ReadableBuffer, n: int, codes: WriteableBuffer) -> None:
    """Turn n int8 signs (-1 or +1) into n / 8 bytes of code."""
    _require_whole_bytes("signs", n)
    source = readable("int8_t", 1, signs, n, "signs")
    check(lib.lfr_pack(source, n, writable("uint8_t", 1, codes, n // 8, "codes")))


def unpack(codes: ReadableBuffer, n: int, signs: WriteableBuffer) -> None:
    """Turn n / 8 bytes of code into n int8 signs."""
    _require_whole_bytes("signs", n)
    source = readable("uint8_t", 1, codes, n // 8, "codes")
    check(lib.lfr_unpack(source, n, writable("int8_t", 1, signs, n, "signs")))


def gather(items: CodesPointer, indices: ReadableBuffer, n: int) -> bytearray:
    """Return rows `indices` (n uint32) of the matrix, one behind the other."""
    rows = bytearray(n * items.code_bits // 8)
    where = readable("uint32_t", 4, indices, n, "item indices")
    target = writable("uint8_t", 1, rows, len(rows), "rows")
    check(lib.lfr_gather(items.pointer, items.n_items, items.code_bits, where, n, target), items.n_items)
    return rows


def gram(items: CodesPointer, gram_out: WriteableBuffer, sums_out: WriteableBuffer) -> None:
    """Write the Gram matrix (f * f int64) and the column sums (f int64) of a code matrix."""
    f = items.code_bits
    square = writable("int64_t", 8, gram_out, f * f, "gram")
    sums = writable("int64_t", 8, sums_out, f, "column sums")
    check(lib.lfr_gram(items.pointer, items.n_items, f, square, sums))


class Fit:
    """The user fit for one code length, with working memory that is reused: f * (f + 1) int64.

    Not for several threads at once.
    """

    def __init__(self, code_bits: int) -> None:
        require_code_bits(code_bits)
        self.code_bits = code_bits
        self._quadratic = ffi.new("int64_t[]", code_bits * code_bits)
        self._linear = ffi.new("int64_t[]", code_bits)
        self._terms = ffi.new("lfr_fit_terms *")
        self._loss = ffi.new("int64_t *")
        self._sweeps = ffi.new("uint32_t *")

    def prepare(
        self,
        rows: ReadableBuffer,
        targets: ReadableBuffer,
        n_rows: int,
        *,
        weights: ReadableBuffer | None = None,
        row_factor: int,
        target_factor: int,
        gram: ReadableBuffer | None = None,
        gram_factor: int = 0,
        extra: ReadableBuffer | None = None,
        balance: int = 0,
    ) -> None:
        """Set what to fit; the terms are those of lfr_fit_terms in csrc/lfr.h."""
        f, terms = self.code_bits, self._terms
        terms.code_bits, terms.n_rows = f, n_rows
        # The pointers live in `terms` until the call below returns; the names keep their buffers alive.
        terms.rows = kept_rows = readable("uint8_t", 1, rows, n_rows * f // 8, "rated rows")
        terms.targets = kept_targets = readable("int32_t", 4, targets, n_rows, "targets")
        terms.weights = kept_weights = _optional("uint16_t", 2, weights, n_rows, "weights")
        terms.gram = kept_gram = _optional("int64_t", 8, gram, f * f, "gram")
        terms.extra = kept_extra = _optional("int64_t", 8, extra, f, "extra")
        for name, value in (
            ("row_factor", row_factor),
            ("target_factor", target_factor),
            ("gram_factor", gram_factor),
            ("balance", balance),
        ):
            require_range(name, value, -(2**62), 2**62)
            setattr(terms, name, value)
        check(lib.lfr_fit_prepare(terms, self._quadratic, self._linear))
        del kept_rows, kept_targets, kept_weights, kept_gram, kept_extra

    def linear_signs(self, otherwise: ReadableBuffer) -> bytearray:
        """Return the signs of the linear term as a code, with the bits of `otherwise` where it is zero."""
        code = bytearray(otherwise)
        for k, value in enumerate(self._linear):
            if value > 0:
                code[k >> 3] |= 1 << (k & 7)
            elif value < 0:
                code[k >> 3] &= ~(1 << (k & 7))
        return code

    def sweep(self, code: WriteableBuffer, max_sweeps: int) -> int:
        """Descend from `code`, in place; return the loss, lower is better."""
        require_range("max_sweeps", max_sweeps, 1, 65535)
        target = writable("uint8_t", 1, code, self.code_bits // 8, "user code")
        check(
            lib.lfr_fit_sweep(
                self._quadratic, self._linear, self.code_bits, max_sweeps, target, self._sweeps, self._loss
            )
        )
        return int(self._loss[0])


def _optional(kind: str, element_bytes: int, buffer: ReadableBuffer | None, count: int, what: str) -> Any:
    return ffi.NULL if buffer is None else readable(kind, element_bytes, buffer, count, what)


def row_gradients(
    rows: ReadableBuffer, n_rows: int, code: ReadableBuffer, code_bits: int, targets: ReadableBuffer, scale: int
) -> Any:
    """Return the gradients of the rated rows as an array of n_rows * f int32 that has the buffer protocol."""
    require_code_bits(code_bits)
    require_range("scale", scale, 1, 2**19)
    out = ffi.new("int32_t[]", max(1, n_rows * code_bits))
    check(
        lib.lfr_row_gradients(
            readable("uint8_t", 1, rows, n_rows * code_bits // 8, "rated rows"),
            n_rows,
            code_bits,
            readable("uint8_t", 1, code, code_bits // 8, "user code"),
            readable("int32_t", 4, targets, n_rows, "targets"),
            scale,
            out,
        )
    )
    return ffi.buffer(out, n_rows * code_bits * 4)


def ternary(gradients: ReadableBuffer, n: int, full: int, random: ReadableBuffer) -> tuple[bytearray, bytearray]:
    """Round n int32 to signs or zero without bias; return the bit planes (nonzero, positive)."""
    _require_whole_bytes("gradients", n)
    require_range("full", full, 1, 2**24)
    nonzero, positive = bytearray(n // 8), bytearray(n // 8)
    check(
        lib.lfr_ternary(
            readable("int32_t", 4, gradients, n, "gradients"),
            n,
            full,
            readable("uint8_t", 1, random, 2 * n, "random bytes"),
            writable("uint8_t", 1, nonzero, n // 8, "nonzero"),
            writable("uint8_t", 1, positive, n // 8, "positive"),
        )
    )
    return nonzero, positive


def ternary_add(nonzero: ReadableBuffer, positive: ReadableBuffer, n: int, sums: WriteableBuffer) -> None:
    """Add n ternary elements to n int32 sums."""
    _require_whole_bytes("sums", n)
    kept = readable("uint8_t", 1, nonzero, n // 8, "nonzero")
    plus = readable("uint8_t", 1, positive, n // 8, "positive")
    check(lib.lfr_ternary_add(kept, plus, n, writable("int32_t", 4, sums, n, "sums")))


def aggregate(sums: ReadableBuffer, n: int, shift: int, memory: WriteableBuffer, codes: WriteableBuffer) -> None:
    """Apply the server rule memory <- memory - (memory >> shift) + sums, codes <- signs; zero keeps the old bit."""
    _require_whole_bytes("sums", n)
    require_range("shift", shift, 0, 31)
    added = readable("int32_t", 4, sums, n, "sums")
    kept = writable("int32_t", 4, memory, n, "memory")
    check(lib.lfr_aggregate(added, n, shift, kept, writable("uint8_t", 1, codes, n // 8, "codes")))
