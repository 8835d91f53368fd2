"""The C library, installed once for all workers, and the tools that an app would find it with."""

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples/c"


def require_tool(name):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed (Debian: apt-get install pkgconf cmake)")


def start(*command, variables=None, **options):
    """Run a program as a user would from a shell, perhaps with more variables; the finished process.

    An outer make exports variables for its children: cmake colours its output where it finds MAKE_TERMOUT, and an
    inner make takes over the flags of the outer one. A shell has none of them.
    """
    of_make = re.compile("MAKE|MFLAGS$")
    environment = {name: value for name, value in os.environ.items() if not of_make.match(name)} | (variables or {})
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, **options)


def run(*command, **options):
    """Run a program that must succeed; what it prints."""
    finished = start(*command, **options)
    assert finished.returncode == 0, f"{command}\n{finished.stdout}{finished.stderr}"
    return finished.stdout


def make(*arguments):
    return run("make", "-s", "-C", str(ROOT / "csrc"), *arguments)


def once(tmp_path_factory, name, build):
    """The folder `name`, filled by `build` in whichever worker comes first."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    # One lock for all: two makes in csrc/build at once would spoil each other's files.
    with (shared / "c-library.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / name).exists():
            build(shared / f"{name}.unfinished")
            (shared / f"{name}.unfinished").rename(shared / name)
    return shared / name


@pytest.fixture(scope="session")
def staged(tmp_path_factory):
    """A package's root folder: installed with PREFIX=/usr and a LIBDIR of its own, as distributions do."""
    arguments = ("install", "symbols", "PREFIX=/usr", "LIBDIR=lib/machine")
    return once(tmp_path_factory, "staged", lambda folder: make(*arguments, f"DESTDIR={folder}"))


def build_by_cmake(source, folder, *definitions):
    require_tool("cmake")
    # The quickest to compile; without optimisation the intrinsics of AVX2 take thrice as long.
    run("cmake", "-S", str(source), "-B", str(folder), "-DCMAKE_BUILD_TYPE=MinSizeRel", *definitions)
    run("cmake", "--build", str(folder), "--parallel", "2")


@pytest.fixture(scope="session")
def built_by_cmake(tmp_path_factory):
    """The library as CMake builds it, for the same place."""
    definitions = ("-DCMAKE_INSTALL_PREFIX=/usr", "-DCMAKE_INSTALL_LIBDIR=lib/machine")

    def build(folder):
        build_by_cmake(ROOT / "csrc", folder / "build", *definitions)
        run("cmake", "--install", str(folder / "build"), variables={"DESTDIR": str(folder / "root")})

    return once(tmp_path_factory, "cmake", build)


def pkg_config(staged):
    """The variables with which pkg-config finds the staged package."""
    require_tool("pkg-config")
    return {"PKG_CONFIG_LIBDIR": str(staged / "usr/lib/machine/pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(staged)}


@pytest.fixture(scope="session")
def by_pkg_config(staged, tmp_path_factory):
    """The folder of the programs, as examples/c/Makefile builds them."""

    def build(folder):
        run("make", "-s", "-C", str(EXAMPLES), f"BUILD={folder}", "CFLAGS=-O1", variables=pkg_config(staged))

    return once(tmp_path_factory, "by-pkg-config", build)


@pytest.fixture(scope="session")
def by_cmake(staged, tmp_path_factory):
    """The folder of the programs, as find_package builds them."""
    where = f"-Dlightfr_DIR={staged}/usr/lib/machine/cmake/lightfr"
    return once(tmp_path_factory, "by-cmake", lambda folder: build_by_cmake(EXAMPLES, folder, where))


def start_program(folder, staged, name, *arguments):
    """Run a program of the example against the staged library; the finished process."""
    library = {"LD_LIBRARY_PATH": str(staged / "usr/lib/machine")}
    return start(str(folder / name), *map(str, arguments), variables=library)
