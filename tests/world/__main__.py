"""Runs worlds: `python -m tests.world --worlds 100 --first 0`, or one alone with `--seed 123`."""

import os
import sys

if os.environ.get("PYTHONHASHSEED") != "0":
    # The order of a set must be the same in every process.
    os.execve(sys.executable, [sys.executable, "-m", "tests.world", *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})

from tests.world import system

system.install()

from tests.world.running import main

sys.exit(main())
