"""cffi build of the benchmark's floor: a plain read of memory, the least that any scan can cost."""

from pathlib import Path

from cffi import FFI

SOURCE = "lightfr_harness/bench/floor.c"  # from this folder, as setuptools wants it

ffibuilder = FFI()
ffibuilder.cdef("uint64_t lfr_floor_read(const uint8_t *bytes, size_t n);")
ffibuilder.set_source(
    "lightfr_harness.bench._floor",
    (Path(__file__).resolve().parent / SOURCE).read_text(),
    extra_compile_args=["-std=c11", "-O3", "-g0"],
    depends=[SOURCE],
)
