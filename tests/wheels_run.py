"""Runs the wheels of `make wheels` as far as this machine can: the same small program in fresh environments.

    python tests/wheels_run.py dist/wheels

x86-64 runs with every Python from 3.11 on that is here, 64-bit ARM under qemu with Debian's own Python for it. The
others are said to be built only. Fails when a wheel that can be run gives a wrong answer.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# The README's example: it loads the kernel, and any wrong bit gives other items.
PROGRAM = """
import random, sys
import lightfr
from lightfr import ItemCodes, UserCode, rank
from lightfr._kernel import isa_name
codes = ItemCodes(random.Random(1).randbytes(8 * 100_000), code_bits=64)
found = [item.item_index for item in rank(UserCode(bytes.fromhex("0123456789abcdef")), codes, k=3)]
assert found == [85048, 20944, 52841], found
print("run with Python", sys.version.split()[0], "kernel", isa_name())
"""
DEBIAN_ARM = (
    "libc6", "libpython3.11-minimal", "libpython3.11-stdlib", "python3.11-minimal", "zlib1g", "libexpat1", "libssl3",
    "libffi8", "libgcc-s1",
)  # fmt: skip


def pythons():
    """Every python3.N here from 3.11 on, by version."""
    found = {}
    folders = [*map(Path, os.environ["PATH"].split(os.pathsep)), *Path.home().glob(".pyenv/versions/*/bin")]
    for minor in range(11, 20):
        for folder in folders:
            python = folder / f"python3.{minor}"
            works = python.exists() and subprocess.run([python, "-c", ""], capture_output=True, check=False)
            if works and works.returncode == 0:
                found.setdefault(minor, python)
    return found


def run_here(wheel, work):
    """In a new environment of each Python; says which."""
    said = []
    for minor, python in pythons().items():
        folder = work / f"venv-3.{minor}"
        subprocess.run([python, "-m", "venv", folder], check=True)
        pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
        subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
        done = subprocess.run([folder / "bin/python", "-c", PROGRAM], check=True, capture_output=True, text=True)
        said.append(done.stdout.strip())
    return said


def run_arm(wheel, work):
    """With Debian's Python for 64-bit ARM, unpacked beside the machine's own, under qemu."""
    root, packages = work / "arm64", work / "packages"
    root.mkdir()
    subprocess.run(
        ["apt-get", "download", *(f"{name}:arm64" for name in DEBIAN_ARM)], cwd=root, check=True, capture_output=True
    )
    for archive in root.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", archive, root], check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", packages]
    platforms = [f"--platform=manylinux{name}_aarch64" for name in ("_2_34", "_2_28", "_2_17", "2014")]
    options = ["--python-version=3.11", "--implementation=cp", "--abi=cp311", "--abi=abi3", "--only-binary=:all:"]
    subprocess.run([*pip, *platforms, *options, wheel], check=True, stderr=subprocess.DEVNULL)
    emulated = [
        "qemu-aarch64-static",
        "-L",
        root,
        "-E",
        f"PYTHONPATH={packages}",
        root / "usr/bin/python3.11",
        "-c",
        PROGRAM,
    ]
    done = subprocess.run(emulated, check=True, capture_output=True, text=True)
    return [f"{done.stdout.strip()} (under qemu)"]


def can_run_arm():
    if not all(map(shutil.which, ("qemu-aarch64-static", "apt-get", "dpkg-deb"))):
        return False
    shown = subprocess.run(["dpkg", "--print-foreign-architectures"], capture_output=True, text=True, check=False)
    return "arm64" in shown.stdout.split()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheels", type=Path)
    folder = parser.parse_args().wheels.resolve()
    runners = {f"manylinux_2_17_{os.uname().machine}": run_here}
    if can_run_arm():
        runners["manylinux_2_17_aarch64"] = run_arm
    for wheel in sorted(folder.glob("*.whl")):
        tag = wheel.stem.split("-")[-1]
        with tempfile.TemporaryDirectory() as work:
            said = runners[tag](wheel, Path(work)) if tag in runners else ["built, not run"]
        print(f"{wheel.stat().st_size:>9,}  {tag}: {'; '.join(said)}", flush=True)


if __name__ == "__main__":
    main()
