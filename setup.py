"""Builds the C kernel; the rest of this distribution stands in pyproject.toml."""

import os
import shutil
import sysconfig

from setuptools import setup


def require_compiler() -> None:
    """Stop with one sentence when there is no C compiler, before setuptools fails with many."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        raise SystemExit(
            f"lightfr needs a C compiler and '{compiler}' was not found: install one (Debian: apt-get install gcc "
            "libc6-dev) or set CC to yours."
        )


require_compiler()
setup(cffi_modules=["sdk/build_kernel.py:ffibuilder"])
