"""The small version of `make world`: each test is a process of its own, since a world replaces clock, chance and disk."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A world takes half a second of a processor. This bounds a process that hangs, on whatever machine.
LONGEST_SECONDS = 280
WORLDS_OF_A_TEST = 11
# Of each planted fault, a seed that finds it. After a change of the weather: --plant NAME --until-failure finds another.
SEEDS = {
    "acknowledges-before-it-stores": (1, "acknowledged"),
    "sends-before-it-stores": (12, "step 'acknowledge' was asked for where 'share' is next"),
    "wakes-nobody": (0, "a device that waits was not told"),
}


def run(*options):
    command = [sys.executable, "-m", "tests.world", *map(str, options)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("first", range(0, 4 * WORLDS_OF_A_TEST, WORLDS_OF_A_TEST))
def test_nothing_goes_wrong_in_a_world_of_hostile_weather(first):
    code, told = run("--first", first, "--worlds", WORLDS_OF_A_TEST)
    assert code == 0, told


def test_one_seed_is_one_world_in_any_process():
    """All that happens is the same, bit for bit, whatever the process did before."""
    alone, after_another = run("--seed", 28)[1], run("--first", 27, "--worlds", 2, "--digests")[1]
    digest = re.search("seed 28: .* digest (.*)", alone)
    assert digest is not None
    assert digest[0] in after_another


@pytest.mark.parametrize("fault", SEEDS)
def test_a_planted_fault_is_found_and_its_seed_is_told(fault):
    seed, symptom = SEEDS[fault]
    code, told = run("--seed", seed, "--plant", fault)
    assert code == 1
    assert symptom in told
    assert f"python -m tests.world --seed {seed} --plant {fault}" in told
