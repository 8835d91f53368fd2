"""Looks into the built distributions and tries them as a stranger would, outside the checkout: `make wheel`.

Plain asserts, so that it runs with any Python: what it tries has an environment of its own.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from email.parser import BytesParser
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
# A device carries the SDK with every app: what makes it grow beyond this needs a reason.
LARGEST_WHEEL_BYTES = 256 * 1024
# The folder of each distribution, what it is compiled to, and the kinds of files that are no Python and belong to it.
HOLDS = {
    "lightfr": ("sdk", "lightfr/_kernel/_lfr.abi3.so", (".pyi", "py.typed")),
    "lightfr_harness": (
        "harness",
        "lightfr_harness/bench/_floor.abi3.so",
        (".pyi", ".toml", "templates/page.html", "templates/style.css", "play.html", "play.css", "play.js"),
    ),
}
ABOUT = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt", "licenses/LICENSE"}
# What `pip install lightfr` may bring along; pycparser comes with cffi, the last three with the environment.
SDK_ENVIRONMENT = {"lightfr", "cffi", "pycparser", "protobuf", "cryptography", "pip", "setuptools", "wheel"}

IMPORT_EVERYTHING = """
import importlib, importlib.metadata, pkgutil, sys
package = importlib.import_module(sys.argv[1])
names = [found.name for found in pkgutil.walk_packages(package.__path__, sys.argv[1] + ".")]
for name in names:
    # The modules named postgres need psycopg, of the extra of that name.
    if not name.endswith(("__main__", ".postgres")):
        importlib.import_module(name)
print(len(names), "modules of", package.__path__[0])
print(*(distribution.name for distribution in importlib.metadata.distributions()))
"""


def metadata(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return BytesParser().parsebytes(wheel.read(name))


def expected_files(package, version):
    """What a wheel holds: the files of the checkout that belong to it, its binary, and what is said of it."""
    folder, binary, kinds = HOLDS[package]
    found = (path.relative_to(ROOT / folder).as_posix() for path in (ROOT / folder / package).rglob("*"))
    files = {name for name in found if name.endswith((".py", *kinds)) and "__pycache__" not in name}
    if package == "lightfr_harness":
        files |= {f"lightfr_harness/vectors/v1/{path.name}" for path in (ROOT / "vectors/v1").iterdir()}
    return files | {binary} | {f"{package}-{version}.dist-info/{name}" for name in ABOUT}


def check_files(path, wheel):
    """It holds what belongs to it and nothing else."""
    package, version = path.name.split("-")[:2]
    names, expected = set(wheel.namelist()), expected_files(package, version)
    assert names == expected, f"{path.name} holds {sorted(names - expected)} and lacks {sorted(expected - names)}"


def check_bill(path, about):
    """The bill of materials beside it is of this wheel, and has every package that it asks for."""
    bill = json.loads(path.with_name(f"{path.name}.cdx.json").read_text())
    (digest,) = bill["metadata"]["component"]["hashes"]
    assert digest["content"] == hashlib.sha256(path.read_bytes()).hexdigest(), path.name
    listed = {component["name"] for component in bill["components"]}
    assert required_names(about) <= listed, f"{path.name}: its bill of materials lacks {required_names(about) - listed}"


def required_names(about):
    """The packages that a wheel always asks for."""
    lines = [line for line in about.get_all("Requires-Dist") if "extra ==" not in line]
    return {re.split("[^a-z0-9-]", line)[0] for line in lines}


def check_sdk_wheel(path):
    """It holds the SDK, the kernel and nothing else, is small, and asks for three packages."""
    with ZipFile(path) as wheel:
        for entry in wheel.infolist():
            print(f"{entry.file_size:>9,}  {entry.filename}")
        check_files(path, wheel)
        about = metadata(wheel)
    print(f"{path.stat().st_size:>9,}  {path.name}; at most {LARGEST_WHEEL_BYTES:,}")
    assert "-cp311-abi3-" in path.name, f"{path.name} does not serve every Python from 3.11 on"
    assert path.stat().st_size <= LARGEST_WHEEL_BYTES, f"{path.name} is too large"
    assert required_names(about) == {"cffi", "protobuf", "cryptography"}
    assert about["License-Expression"] == "Apache-2.0"
    check_bill(path, about)


def check_sdk_source(path):
    """It can be built anywhere, for it brings the C sources along, and knows no harness."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    sources = {file.relative_to(ROOT).as_posix() for file in (ROOT / "csrc").glob("lfr*")}
    assert sources <= names, f"{path.name} lacks {sources - names}"
    assert not [name for name in names if name.startswith(("harness", "tests", "vectors"))]


def check_harness_wheel(path):
    """It holds the harness and the vectors as they are, needs the SDK of its own version, and does not repeat it."""
    with ZipFile(path) as wheel:
        check_files(path, wheel)
        for file in (ROOT / "vectors/v1").iterdir():
            assert wheel.read(f"lightfr_harness/vectors/v1/{file.name}") == file.read_bytes(), file.name
        about = metadata(wheel)
    assert f"lightfr=={about['Version']}" in about.get_all("Requires-Dist")
    assert about["License-Expression"] == "Apache-2.0"
    check_bill(path, about)


class Environment:
    """A fresh virtual environment in a folder far from the checkout, which no variable of ours reaches."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.bin = self.folder / "venv" / "bin"
        self.variables = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
        }
        venv.create(self.folder / "venv", with_pip=True)

    def run(self, program, *arguments):
        """Run one of its programs; what it printed."""
        command = [self.bin / program, *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.variables, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, f"{program} {arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def install(self, wheel):
        self.run(
            "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", wheel
        )

    def import_everything(self, package):
        """Import every module; the names of all that is installed."""
        about, installed = self.run("python", "-W", "error", "-c", IMPORT_EVERYTHING, package).splitlines()
        assert str(self.folder) in about, about
        print(f"imported {about}")
        return set(installed.split())


def check_conformance(environment):
    """Make a kit, serve it, and try the server, with the installed command alone."""
    folder = environment.folder
    environment.run("lightfr-harness", "conformance-kit", "kit", "--privacy", "clear")
    # What docs/conformance.md says of the kit for rounds in the clear.
    settings = "--bits 32 --gate 10 --goal 4 --over-selection 1.5 --minimum 2 --deadline-seconds 3 --privacy clear"
    ports = "--port 0 --enrollment-port 0 --operations-port 0 --gate-every 1000000000"
    kit = "--authority kit/authority --catalogue kit/items.tsv --codes kit/codes.bin"
    command = [environment.bin / "lightfr-harness", "serve", "state", *f"{kit} {settings} {ports}".split()]
    with (folder / "serve.log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment.variables, stdout=log, stderr=log)
    try:
        while not (folder / "state/addresses.json").exists():
            assert server.poll() is None, (folder / "serve.log").read_text()
            time.sleep(0.1)
        found = json.loads((folder / "state/addresses.json").read_text())
        arguments = ("conformance", found["server"], "--enrollment", found["enrollment"], "--kit", "kit")
        print(environment.run("lightfr-harness", *arguments).splitlines()[-1])
    finally:
        server.terminate()
        server.wait()


def main(dist):
    (sdk,), (harness,) = dist.glob("lightfr-*.whl"), dist.glob("lightfr_harness-*.whl")
    check_sdk_wheel(sdk)
    check_sdk_source(*dist.glob("lightfr-*.tar.gz"))
    check_harness_wheel(harness)
    with tempfile.TemporaryDirectory(prefix="lightfr-wheels-") as folder:
        environment = Environment(folder)
        environment.install(sdk)
        installed = environment.import_everything("lightfr")
        assert installed <= SDK_ENVIRONMENT, f"lightfr brought {installed - SDK_ENVIRONMENT}"
        environment.run("lightfr", "--help")
        environment.install(harness)
        environment.import_everything("lightfr_harness")
        check_conformance(environment)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
