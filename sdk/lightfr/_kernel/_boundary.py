"""ffi and lib, the status table, buffer checks and the choice of instruction set."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from lightfr import _arguments, errors
from lightfr._kernel._lfr import ffi as _ffi  # type: ignore[import-not-found] # built from csrc/
from lightfr._kernel._lfr import lib as _lib

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

ffi: Any = _ffi
lib: Any = _lib

MIN_CODE_BITS = 8
MAX_CODE_BITS = 1024

# What each status of csrc/lfr.h means when it gets past the checks made here.
_REASONS = {
    lib.LFR_ERR_NULL: "a required pointer was NULL",
    lib.LFR_ERR_CODE_BITS: "code length outside 8 to 1024 bits in steps of 8",
    lib.LFR_ERR_COUNT: "a count is outside its range",
    lib.LFR_ERR_INDEX: "a row index is outside the item matrix",
    lib.LFR_ERR_VALUE: "an element is outside its domain",
    lib.LFR_ERR_OVERFLOW: "the exact result might not fit 64-bit integers",
    lib.LFR_ERR_ISA: "instruction set not available",
}


def check(status: int, n_items: int = 0) -> None:
    """Raise the exception that belongs to a status."""
    if status == lib.LFR_OK:
        return
    if status == lib.LFR_ERR_INDEX:
        raise errors.ItemIndexError(n_items)
    if status in (lib.LFR_ERR_VALUE, lib.LFR_ERR_OVERFLOW):
        raise errors.InvalidInputError(_REASONS[status])
    raise errors.KernelError(status, _REASONS.get(status, "unknown status"))


def require_code_bits(code_bits: int) -> None:
    """Raise CodeLengthError unless the length is one that codes can have."""
    if not MIN_CODE_BITS <= _arguments.whole("code_bits", code_bits) <= MAX_CODE_BITS or code_bits % 8:
        raise errors.CodeLengthError(code_bits)


def require_range(what: str, actual: int, minimum: int, maximum: int) -> None:
    """Raise OutOfRangeError unless minimum <= actual <= maximum."""
    if not minimum <= actual <= maximum:
        raise errors.OutOfRangeError(what, actual, minimum, maximum)


# kind -> (array type, bytes of an element); resolved once, since a device round makes some twenty pointers.
_KINDS = {
    kind: (ffi.typeof(f"{kind}[]"), ffi.sizeof(kind))
    for kind in ("uint8_t", "int8_t", "uint16_t", "uint32_t", "int32_t", "int64_t")
}


def _pointer(kind: str, buffer: Any, count: int, what: str, writable: bool) -> Any:
    array_type, element_bytes = _KINDS[kind]
    pointer = _from_buffer(array_type, buffer, writable)
    # Bytes behind the last whole element count for nothing in the length of a pointer.
    if len(pointer) != count or (element_bytes > 1 and memoryview(buffer).nbytes != count * element_bytes):
        raise errors.BufferSizeError(what, memoryview(buffer).nbytes, count * element_bytes)
    return pointer


_from_buffer = ffi.from_buffer


def readable(kind: str, buffer: ReadableBuffer, count: int, what: str) -> Any:
    """Point into a buffer of exactly `count` elements; the buffer must outlive the pointer."""
    return _pointer(kind, buffer, count, what, False)


def writable(kind: str, buffer: WriteableBuffer, count: int, what: str) -> Any:
    """Point into a writable buffer of exactly `count` elements; the buffer must outlive the pointer."""
    return _pointer(kind, buffer, count, what, True)


def _name(isa: int) -> str:
    return str(ffi.string(lib.lfr_isa_name(isa)).decode())


def supported_isas() -> tuple[str, ...]:
    """Names of the variants that this build holds and this machine can run."""
    known = (lib.LFR_ISA_PORTABLE, lib.LFR_ISA_AVX2, lib.LFR_ISA_NEON)
    return tuple(_name(isa) for isa in known if lib.lfr_isa_supported(isa))


def isa_name() -> str:
    """Name of the variant in use."""
    return _name(lib.lfr_isa_selected())


def select_isa(name: str) -> None:
    """Use the named variant for all later calls of this process."""
    for isa in (lib.LFR_ISA_PORTABLE, lib.LFR_ISA_AVX2, lib.LFR_ISA_NEON):
        if _name(isa) == name and lib.lfr_isa_select(isa) == lib.LFR_OK:
            return
    raise errors.InvalidInputError(
        f"instruction set '{name}' is not available here, choose one of: {', '.join(supported_isas())}"
    )


# The kernel itself ignores an unusable LIGHTFR_ISA; a person who set it wants to know.
if os.environ.get("LIGHTFR_ISA"):
    select_isa(os.environ["LIGHTFR_ISA"])
