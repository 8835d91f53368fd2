"""Runs `pip install` and shows what it is doing: one line that changes in a terminal, short lines elsewhere.

The Makefile calls it. The first argument names the virtual environment, the others go to pip.
"""

from __future__ import annotations

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


def main(environment: Path, arguments: list[str]) -> int:
    """Install, and return pip's exit code; after a failure the end of its output is shown."""
    log = environment / "install.log"
    command = [str(environment / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-color"]
    command += ["--progress-bar", "off", *arguments]
    print(f"installing lightfr and what it needs into {environment} ...", flush=True)
    began = time.monotonic()
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
    else:
        print(f"  installed in {time.monotonic() - began:.0f} s", flush=True)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
