"""The small version of `make world`. Each test is a process of its own: a world replaces clock, chance and disks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A world takes a third of a second of a processor. This bounds a process that hangs, on however busy a machine.
LONGEST_SECONDS = 500
WORLDS_OF_A_TEST, WORLDS = 50, 200
# Planted faults, a seed that finds each, and what the world says then. A change of shipped code draws other worlds, so
# those behind the seed are tried too.
PLANTED = {
    "acknowledges-before-it-stores": (19, "acknowledged"),
    "wakes-nobody": (0, "a device that waits was not told"),
}
WORLDS_TO_FIND_A_FAULT = 60


def run(*options):
    command = [sys.executable, "-m", "tests.world", *map(str, options)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("first", range(0, WORLDS, WORLDS_OF_A_TEST))
def test_nothing_goes_wrong_in_a_world_of_hostile_weather(first):
    code, told = run("--first", first, "--worlds", WORLDS_OF_A_TEST)
    assert code == 0, told


def test_one_seed_is_one_world_in_any_process():
    """All that happens is the same, bit for bit, whatever the process did before."""
    alone, after_another = run("--seed", 28)[1], run("--first", 27, "--worlds", 2, "--digests")[1]
    digest = re.search("seed 28: .* digest (.*)", alone)
    assert digest is not None
    assert digest[0] in after_another


def test_a_run_goes_on_where_the_last_one_ended_and_adds_up(tmp_path):
    """However many processes share the work."""
    alone, shared = tmp_path / "alone.json", tmp_path / "shared.json"
    run("--worlds", 4, "--record", alone)
    run("--worlds", 1, "--record", shared)
    run("--worlds", 3, "--record", shared, "--processes", 2)
    known, other = (json.loads(path.read_text()) for path in (alone, shared))
    for record in known, other:
        del record["totals"]["cpu_milliseconds"]
    assert known["next"] == known["totals"]["worlds"] == 4
    assert other == known


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found_and_its_seed_is_told(fault):
    first, symptom = PLANTED[fault]
    code, told = run("--plant", fault, "--first", first, "--worlds", WORLDS_TO_FIND_A_FAULT, "--until-failure")
    assert code == 1
    assert symptom in told
    assert re.search(rf"python -m tests.world --seed \d+ --plant {fault}\n", told)
