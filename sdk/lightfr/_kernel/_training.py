"""Bits, the user fit, gradients and aggregation: thin wrappers of the kernel's training operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lightfr import errors
from lightfr._kernel._boundary import check, ffi, lib, readable, require_code_bits, require_range, writable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from lightfr._kernel._search import CodesPointer

# That lfr_refine_open takes.
MOST_REFINED_ITEMS = 2**24


def _require_whole_bytes(what: str, n: int) -> None:
    if n % 8:
        raise errors.InvalidInputError(f"{what} has {n} elements, expected a multiple of 8")


def pack(signs: ReadableBuffer, n: int, codes: WriteableBuffer) -> None:
    """Turn n int8 signs (-1 or +1) into n / 8 bytes of code."""
    _require_whole_bytes("signs", n)
    source = readable("int8_t", signs, n, "signs")
    check(lib.lfr_pack(source, n, writable("uint8_t", codes, n // 8, "codes")))


def unpack(codes: ReadableBuffer, n: int, signs: WriteableBuffer) -> None:
    """Turn n / 8 bytes of code into n int8 signs."""
    _require_whole_bytes("signs", n)
    source = readable("uint8_t", codes, n // 8, "codes")
    check(lib.lfr_unpack(source, n, writable("int8_t", signs, n, "signs")))


def gather(items: CodesPointer, indices: ReadableBuffer, n: int) -> bytearray:
    """Return the codes of the items `indices` (n uint32), one behind the other."""
    codes = bytearray(n * items.code_bits // 8)
    if items.open_rows is not None:
        indices = items.open_rows.rows_of(indices, n)
    where = readable("uint32_t", indices, n, "item indices")
    target = writable("uint8_t", codes, len(codes), "rows")
    check(lib.lfr_gather(items.pointer, items.n_rows, items.code_bits, where, n, target), items.n_items)
    return codes


def _times_last(items: CodesPointer) -> int:
    """How many items the last row stands for."""
    return 1 if items.open_rows is None else items.n_items - items.open_rows.n_open


def gram(items: CodesPointer, gram_out: WriteableBuffer, sums_out: WriteableBuffer) -> None:
    """Write the Gram matrix (f * f int64) and the column sums (f int64) over all items."""
    f = items.code_bits
    square = writable("int64_t", gram_out, f * f, "gram")
    sums = writable("int64_t", sums_out, f, "column sums")
    check(lib.lfr_gram_open(items.pointer, items.n_rows, f, _times_last(items), square, sums))


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
        self._terms.code_bits = code_bits
        self._loss = ffi.new("int64_t *")
        self._sweeps = ffi.new("uint32_t *")

    def use_catalogue(self, gram: ReadableBuffer, column_sums: ReadableBuffer, extra: ReadableBuffer) -> None:
        """Set the terms of the catalogue (f * f, f and f int64), which stay for all later fits."""
        f, terms = self.code_bits, self._terms
        terms.gram = gram_pointer = readable("int64_t", gram, f * f, "gram")
        terms.column_sums = sums_pointer = readable("int64_t", column_sums, f, "column sums")
        terms.extra = extra_pointer = readable("int64_t", extra, f, "extra")
        self._kept = (gram_pointer, sums_pointer, extra_pointer)

    def prepare(
        self,
        rows: ReadableBuffer,
        targets: ReadableBuffer,
        n_rows: int,
        *,
        weights: ReadableBuffer | None = None,
        row_factor: int,
        target_factor: int,
        gram_factor: int = 0,
        column_factor: int = 0,
        balance: int = 0,
    ) -> None:
        """Set what to fit; the terms are those of lfr_fit_terms in csrc/lfr.h."""
        terms = self._terms
        terms.n_rows = n_rows
        # The pointers live in `terms` until the call below returns; the names keep their buffers alive.
        terms.rows = kept_rows = readable("uint8_t", rows, n_rows * self.code_bits // 8, "rated rows")
        terms.targets = kept_targets = readable("int32_t", targets, n_rows, "targets")
        terms.weights = kept_weights = _optional("uint16_t", weights, n_rows, "weights")
        terms.row_factor, terms.target_factor, terms.balance = row_factor, target_factor, balance
        terms.gram_factor, terms.column_factor = gram_factor, column_factor
        check(lib.lfr_fit_prepare(terms, self._quadratic, self._linear))
        del kept_rows, kept_targets, kept_weights

    def linear_signs(self, otherwise: ReadableBuffer) -> bytearray:
        """Return the signs of the linear term as a code, with the bits of `otherwise` where it is zero."""
        code = bytearray(otherwise)
        target = writable("uint8_t", code, self.code_bits // 8, "user code")
        check(lib.lfr_fit_start(self._linear, self.code_bits, target))
        return code

    def sweep(self, code: WriteableBuffer, max_sweeps: int) -> int:
        """Descend from `code`, in place; return the loss, lower is better."""
        require_range("max_sweeps", max_sweeps, 1, 65535)
        target = writable("uint8_t", code, self.code_bits // 8, "user code")
        check(
            lib.lfr_fit_sweep(
                self._quadratic, self._linear, self.code_bits, max_sweeps, target, self._sweeps, self._loss
            )
        )
        return int(self._loss[0])


def refine(
    items: CodesPointer,
    rows: ReadableBuffer,
    weights: ReadableBuffer | None,
    n_rows: int,
    temperature: tuple[int, int, int],
    max_sweeps: int,
    code: WriteableBuffer,
) -> None:
    """Refine a fitted code in place; `temperature` is (step, down, up) of lfr_temperature in csrc/lfr.h."""
    require_range("number of items to refine against", items.n_items, 0, MOST_REFINED_ITEMS)
    require_range("max_sweeps", max_sweeps, 1, 65535)
    f = items.code_bits
    check(
        lib.lfr_refine_open(
            items.pointer,
            items.n_rows,
            f,
            _times_last(items),
            readable("uint8_t", rows, n_rows * f // 8, "rated rows"),
            _optional("uint16_t", weights, n_rows, "weights"),
            n_rows,
            ffi.new("lfr_temperature *", temperature),
            max_sweeps,
            ffi.new("uint16_t[]", items.n_rows),
            writable("uint8_t", code, f // 8, "user code"),
        )
    )


def _optional(kind: str, buffer: ReadableBuffer | None, count: int, what: str) -> Any:
    return ffi.NULL if buffer is None else readable(kind, buffer, count, what)


def row_gradients(
    rows: ReadableBuffer, n_rows: int, code: ReadableBuffer, code_bits: int, targets: ReadableBuffer, scale: int
) -> Any:
    """Return the gradients of the rated rows as an array of n_rows * f int32 that has the buffer protocol."""
    require_code_bits(code_bits)
    require_range("scale", scale, 1, 2**19)
    out = ffi.new("int32_t[]", max(1, n_rows * code_bits))
    check(
        lib.lfr_row_gradients(
            readable("uint8_t", rows, n_rows * code_bits // 8, "rated rows"),
            n_rows,
            code_bits,
            readable("uint8_t", code, code_bits // 8, "user code"),
            readable("int32_t", targets, n_rows, "targets"),
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
            readable("int32_t", gradients, n, "gradients"),
            n,
            full,
            readable("uint8_t", random, 2 * n, "random bytes"),
            writable("uint8_t", nonzero, n // 8, "nonzero"),
            writable("uint8_t", positive, n // 8, "positive"),
        )
    )
    return nonzero, positive


def ternary_add(
    nonzero: ReadableBuffer,
    positive: ReadableBuffer,
    indices: ReadableBuffer,
    n_rows: int,
    code_bits: int,
    n_items: int,
    sums: WriteableBuffer,
) -> None:
    """Add ternary rows to rows `indices` (n_rows uint32) of a matrix of n_items * code_bits int32 sums."""
    require_code_bits(code_bits)
    n_bytes = n_rows * code_bits // 8
    kept = readable("uint8_t", nonzero, n_bytes, "nonzero")
    plus = readable("uint8_t", positive, n_bytes, "positive")
    where = readable("uint32_t", indices, n_rows, "item indices")
    target = writable("int32_t", sums, n_items * code_bits, "sums")
    check(lib.lfr_ternary_add(kept, plus, where, n_rows, code_bits, n_items, target), n_items)


def aggregate(sums: ReadableBuffer, n: int, shift: int, memory: WriteableBuffer, codes: WriteableBuffer) -> None:
    """Apply the server rule memory <- memory - (memory >> shift) + sums, codes <- signs; zero keeps the old bit."""
    _require_whole_bytes("sums", n)
    require_range("shift", shift, 0, 31)
    added = readable("int32_t", sums, n, "sums")
    kept = writable("int32_t", memory, n, "memory")
    check(lib.lfr_aggregate(added, n, shift, kept, writable("uint8_t", codes, n // 8, "codes")))
