"""Installs lightfr for development. It shows what pip is doing: one line that changes in a terminal, else short lines.

    python tools/install.py [--by-range] .venv test

The Makefile calls it with a virtual environment and an extra of the harness. What others wrote comes from the lock in
requirements/, by hash and as wheels, so that nobody's code runs while it is installed; then both distributions are
built here and linked. With --by-range, pip chooses versions by both pyproject.toml, without hashes.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

# A line of pip, and what to say of it; the first match counts.
STEPS = [
    (re.compile(r"\s*Installing build dependencies: started"), "fetching what the build needs"),
    (re.compile(r"(?:Collecting |Processing \S*/)([a-zA-Z0-9._]+(?:-[a-zA-Z][a-zA-Z0-9._]*)*)"), "collecting {0}"),
    (re.compile(r"\s*Downloading (\S+?)-\d\S* \(([\d.]+ [MG]B)\)"), "downloading {0}, {1}"),
    (re.compile(r"\s*Building (?:editable|wheel) for ([\w.-]+) .*started"), "building {0}"),
    (re.compile(r"Installing collected packages: (.*)"), "unpacking {count} packages"),
]
SECONDS_BETWEEN_SIGNS_OF_LIFE = 1.0
LINES_OF_A_FAILURE = 15


def step_of(line: str) -> str | None:
    """Say what this line of pip means, or None when it means nothing to a reader."""
    for pattern, text in STEPS:
        if found := pattern.match(line):
            return text.format(*found.groups(), count=line.count(",") + 1)
    return None


def lines_of(process: subprocess.Popen[str]) -> Iterator[str | None]:
    """Yield what the process prints, and None when a second passed without a line."""
    waiting: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in process.stdout or ():
            waiting.put(line.rstrip())
        waiting.put(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    while True:
        try:
            line = waiting.get(timeout=SECONDS_BETWEEN_SIGNS_OF_LIFE)
        except queue.Empty:
            yield None
            continue
        if line is None:
            return
        yield line


def show(process: subprocess.Popen[str], log: Path) -> None:
    """Show every step until the process ends; keep all that it printed."""
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    began, step = time.monotonic(), "starting pip"
    with log.open("w") as kept:
        for line in lines_of(process):
            new_step = None
            if line is not None:
                kept.write(f"{line}\n")
                new_step = step_of(line)
            step = new_step or step
            if is_terminal:
                shown = f"  {time.monotonic() - began:3.0f} s  {step}"
                print(f"\r{shown[: shutil.get_terminal_size().columns - 1]}\x1b[K", end="", flush=True)
            elif new_step:
                print(f"  {step}", flush=True)
    if is_terminal:
        print("\r\x1b[K", end="")


def steps(extra: str, *, is_locked: bool) -> list[list[str]]:
    """Return what pip is told, one list for each time it runs. The tests' lock comes first, and brings what builds."""
    if not is_locked:
        return [["--editable", ".", "--editable", f"./harness[{extra}]"]]
    locked = ["--require-hashes", "--only-binary", ":all:", "--requirement", f"requirements/{extra}.txt"]
    own = ["--no-deps", "--no-build-isolation", "--editable", ".", "--editable", "./harness"]
    return [locked, own] if extra == "test" else [locked]


def run(environment: Path, arguments: list[str]) -> int:
    """Run pip, and return its exit code; after a failure the end of its output is shown."""
    log = environment / "install.log"
    command = [str(environment / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-color"]
    command += ["--progress-bar", "off", *arguments]
    with subprocess.Popen(  # noqa: S603 # pip of our own environment, with what the Makefile says
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        try:
            show(process, log)
        except KeyboardInterrupt:
            process.wait()
            print("\nstopped; the next make goes on from here", file=sys.stderr)
            return 130
    if process.returncode:
        print(*log.read_text().splitlines()[-LINES_OF_A_FAILURE:], sep="\n", file=sys.stderr)
        print(f"pip could not install lightfr: its last lines stand above, all of them in {log}", file=sys.stderr)
        if "--only-binary" in arguments:
            print("If a package has no wheel for this platform, `make LOCKED=no` takes others.", file=sys.stderr)
    return process.returncode


def main() -> int:
    """Install, and return the exit code of pip."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", type=Path)
    parser.add_argument("extra")
    parser.add_argument("--by-range", action="store_true", help="choose versions anew, without hashes")
    options = parser.parse_args()
    print(f"installing lightfr and what it needs into {options.environment} ...", flush=True)
    began = time.monotonic()
    for arguments in steps(options.extra, is_locked=not options.by_range):
        if failed := run(options.environment, arguments):
            return failed
    print(f"  installed in {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
