"""Pairs of hostile values for both programs, each in a process of its own, as a shell would start them.

    python -m tests.campaigns.hostile_commands --lines 500 --seed 0

tests/hostile.py says what a hostile value is; `make test` walks every single one in one process. Exits with 1 if a
program printed a traceback, had another exit code than 2, or took longer than it may.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import hostile

# Starting Python and reading the line takes a second or two; a busy machine gets time.
LONGEST_SECONDS = 60


def lines(count: int, source: random.Random) -> list[list[str]]:
    """Return whole commands. Of `lightfr-harness`, two hostile options of the same command are joined."""
    by_command: dict[str, list[list[str]]] = {}
    for parameter, line in hostile.harness_inputs():
        by_command.setdefault(parameter.command, []).append(line.words[len(parameter.command.split()) :])
    made = []
    for _ in range(count):
        if source.random() < 0.2:
            made.append(["lightfr", *source.choice(APP).words])
            continue
        command = source.choice(sorted(by_command))
        one, other = (source.choice(by_command[command]) for _ in range(2))
        made.append(["lightfr_harness", *command.split(), *(other[:1] if other[0].startswith("--") else []), *one])
    return made


APP = list(hostile.sdk_inputs())


def fault(words: list[str], folder: Path) -> str:
    """Say what went wrong with a line; empty: it was refused as it should be."""
    for_apps = ["-c", "import sys; from lightfr.cli import main; sys.exit(main())"]
    program = [sys.executable, *(for_apps if words[0] == "lightfr" else ["-m", words[0]]), *words[1:]]
    try:
        ended = subprocess.run(program, cwd=folder, capture_output=True, timeout=LONGEST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it ran for {LONGEST_SECONDS} seconds"
    if b"Traceback" in ended.stderr + ended.stdout:
        return ended.stderr.decode(errors="replace")[-600:]
    return "" if ended.returncode == 2 else f"exit code {ended.returncode}: {ended.stderr[-300:]!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    n_faults = 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        hostile.make_traps(folder)
        for words in lines(options.lines, random.Random(options.seed)):
            if found := fault(words, folder):
                n_faults += 1
                print(f"{[word[:60] for word in words]}\n  {found}", flush=True)
    print(f"{options.lines} lines, {n_faults} not refused as they should be")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
