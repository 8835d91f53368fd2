"""The first example of docs/embedding.md, run verbatim: the operator's commands, then the app's lines, twice."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import _cffi_backend
import cffi
import cryptography
import google._upb._message
import google.protobuf
import pytest

ROOT = Path(__file__).parent.parent
COMMANDS, LINES = (
    re.search(rf"^```{language}\n(.*?)^```", (ROOT / "docs/embedding.md").read_text(), re.M | re.S)[1]
    for language in ("shell", "python")
)


def build_wheel(folder):
    """Build the wheel of this checkout, from a copy of what it is made of, and return it."""
    source = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.o", "build", "*.egg-info")
    for name in ("sdk", "csrc"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder / "wheels", source]
    subprocess.run([*pip, *options], check=True)
    (wheel,) = (folder / "wheels").glob("lightfr-*.whl")
    return wheel


@pytest.fixture(scope="module")
def app_python(tmp_path_factory):
    """The Python of a new environment that has the wheel; what lightfr needs is borrowed from this one."""
    folder = tmp_path_factory.mktemp("app")
    venv.create(folder / "venv")
    python = folder / "venv/bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--no-index", build_wheel(folder)], check=True)
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    for package in (cffi, cryptography, google.protobuf):
        link = packages / package.__name__.replace(".", "/")
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(Path(package.__file__).parent)
    for module in (_cffi_backend, google._upb._message):
        link = packages / module.__name__.replace(".", "/")
        link.parent.mkdir(exist_ok=True)
        link.with_name(Path(module.__file__).name).symlink_to(module.__file__)
    return python


@pytest.fixture
def operated(tmp_path):
    """A folder in which the operator's commands have been run; its coordinator is ready."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    shell = subprocess.Popen(["bash", "-ec", COMMANDS + "wait"], cwd=tmp_path, env={"PATH": path}, process_group=0)
    try:
        deadline = time.monotonic() + 60
        while not ((tmp_path / "coordinator/addresses.json").exists() and _is_whole(tmp_path / "invitation.json")):
            assert shell.poll() is None, "the operator's commands ended"
            assert time.monotonic() < deadline, "the coordinator was not ready in time"
            time.sleep(0.1)
        yield tmp_path
    finally:
        os.killpg(shell.pid, signal.SIGTERM)
        shell.wait(30)


def _is_whole(invitation):
    return invitation.exists() and invitation.read_text().rstrip().endswith("}")


def test_the_first_example_runs_as_printed_and_once_more(operated, app_python):
    assert len([line for line in LINES.splitlines() if line]) <= 10
    where = subprocess.run(
        [app_python, "-c", "import lightfr; print(lightfr.__file__)"],
        cwd=operated,
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(app_python.parent.parent)
    for _ in range(2):
        done = subprocess.run(
            [app_python, "-c", LINES], cwd=operated, env={}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        shown = [line.split() for line in done.stdout.splitlines()]
        assert len(shown) == 10
        assert "item-17" not in [item for item, _ in shown]
