"""cffi build of the C kernel. The declarations are read from csrc/lfr.h, so that there is one header."""

import re
import sysconfig
from pathlib import Path

from cffi import FFI

CSRC = Path(__file__).resolve().parent.parent / "csrc"
SOURCES = sorted(path.name for path in CSRC.glob("lfr_*.c"))


def declarations(header: str) -> str:
    """Turn the public header into what cffi parses: no comments, no preprocessor, no extern "C" block."""
    without_comments = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    without_block = re.sub(r'#ifdef __cplusplus\n(extern "C" \{|\})\n#endif', "", without_comments)
    lines = [line for line in without_block.splitlines() if not line.startswith("#")]
    return "\n".join(lines).replace("LFR_API ", "")


ffibuilder = FFI()
ffibuilder.cdef(declarations((CSRC / "lfr.h").read_text()))
ffibuilder.set_source(
    "lightfr._kernel._lfr",
    '#include "lfr.h"',
    include_dirs=["csrc"],
    sources=[f"csrc/{name}" for name in SOURCES],
    depends=["csrc/lfr.h", "csrc/lfr_impl.h"],
    # Without debug symbols: a device carries every byte. The guards of the stack cost no time that can be measured.
    extra_compile_args=["-std=c11", "-O3", "-fvisibility=hidden", "-g0", "-fstack-protector-strong"],
    # All symbols are bound at the start, and what they are bound to cannot be written any more.
    extra_link_args=["-Wl,-z,relro,-z,now"] if sysconfig.get_platform().startswith("linux") else [],
)

if __name__ == "__main__":
    ffibuilder.compile(verbose=True)
