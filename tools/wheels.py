"""Builds the wheels of lightfr for every platform from one machine, with zig as the compiler: `make wheels`.

    python tools/wheels.py dist/wheels [--only musllinux_1_2_aarch64]

Each wheel serves every Python from 3.11 on, because the kernel is built against the limited API. The same source gives
the same bytes: times in the archives are those of the last commit. Needs ziglang, build, cffi and setuptools.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Target:
    """A platform: the tag of its wheel, what zig calls it, and what Python calls it."""

    tag: str
    zig: str
    platform: str

    @property
    def is_mac(self) -> bool:
        """Whether the linker is told as Apple's is."""
        return self.tag.startswith("macosx")


TARGETS = (
    Target("manylinux_2_17_x86_64", "x86_64-linux-gnu.2.17", "linux-x86_64"),
    Target("manylinux_2_17_aarch64", "aarch64-linux-gnu.2.17", "linux-aarch64"),
    Target("manylinux_2_17_armv7l", "arm-linux-gnueabihf.2.17", "linux-armv7l"),
    Target("musllinux_1_2_x86_64", "x86_64-linux-musl", "linux-x86_64"),
    Target("musllinux_1_2_aarch64", "aarch64-linux-musl", "linux-aarch64"),
    Target("macosx_11_0_x86_64", "x86_64-macos.11.0", "macosx-11.0-x86_64"),
    Target("macosx_11_0_arm64", "aarch64-macos.11.0", "macosx-11.0-arm64"),
)

# Python's headers are those of this machine. On 32 bits only these of their numbers differ.
NARROW = """#include_next <pyconfig.h>
#undef SIZEOF_LONG
#define SIZEOF_LONG 4
#undef SIZEOF_SIZE_T
#define SIZEOF_SIZE_T 4
#undef SIZEOF_UINTPTR_T
#define SIZEOF_UINTPTR_T 4
#undef SIZEOF_VOID_P
#define SIZEOF_VOID_P 4
#undef SIZEOF_PTHREAD_T
#define SIZEOF_PTHREAD_T 4
"""


def build(target: Target, source: Path, out: Path, work: Path) -> Path:
    """Build the wheel of one target from the unpacked source, and return it."""
    compiler = f"{sys.executable} -m ziglang cc -target {target.zig}"
    linking = "-shared -undefined dynamic_lookup" if target.is_mac else "-shared -s"
    narrow = work / "narrow"
    narrow.mkdir(exist_ok=True)
    (narrow / "pyconfig.h").write_text(NARROW)
    headers = [narrow] if target.tag.endswith("armv7l") else []
    flags = " ".join(f"-I{folder}" for folder in [*headers, sysconfig.get_path("include")])
    environment = {
        **os.environ,
        "CC": compiler,
        # The path of the sources would end up in the bytes.
        "CFLAGS": f"{flags} -ffile-prefix-map={source}=. -Wno-date-time",
        "LDSHARED": f"{compiler} {linking}",
        "_PYTHON_HOST_PLATFORM": target.platform,
        "ARCHFLAGS": "",
        "MACOSX_DEPLOYMENT_TARGET": "11.0",
        "SOURCE_DATE_EPOCH": commit_time(),
    }
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(work / target.tag)]
    option = f"--config-setting=--build-option=--plat-name={target.tag}"
    done = subprocess.run(  # noqa: S603
        [*command, option, str(source)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{target.tag} could not be built:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    (wheel,) = (work / target.tag).glob("*.whl")
    return wheel.replace(out / wheel.name)


def commit_time() -> str:
    """Seconds of the last commit; without git, a time that never changes."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() or "1672531200"


def unpacked_source(work: Path) -> Path:
    """The source distribution, unpacked: what a stranger would build from."""
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(work), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    (archive,) = work.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(work, filter="data")
    return work / archive.name.removesuffix(".tar.gz")


def main() -> None:
    """Build what was asked for, and print size, digest and name of each wheel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder for the wheels")
    parser.add_argument("--only", choices=[target.tag for target in TARGETS], help="one platform")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for target in TARGETS:
        if arguments.only in (None, target.tag):
            # A folder of the same name for each build, since setuptools keeps objects beside the source.
            with tempfile.TemporaryDirectory() as work:
                wheel = build(target, unpacked_source(Path(work)), arguments.out.resolve(), Path(work))
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            print(f"{wheel.stat().st_size:>9,}  {digest[:16]}  {wheel.name}", flush=True)


if __name__ == "__main__":
    main()
