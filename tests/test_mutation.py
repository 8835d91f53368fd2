"""The tool that breaks modules to try their tests: tests/campaigns/mutation.py."""

import ast
import json
import subprocess
import sys
from pathlib import Path

from tests.campaigns.mutants import changes

SOURCE = """
def place(x: int, most: int = 9) -> int:
    if x < 0 or x > most:
        raise ValueError(x)
    log(x, most)
    return x + 1 if max(x, most) else True
"""
BROKEN = """
if x <= 0 or x > most
if x < 0 or x >= most
if x < 1 or x > most
if x < 0 and x > most
if not (x < 0 or x > most)
most: int=10
log(most, x)
return x - 1 if
return x + 2 if
if not max(x, most)
else False
"""


def all_broken(source):
    lines = source.splitlines()
    for number in range(len(list(changes(ast.parse(source), lines)))):
        tree = ast.parse(source)
        list(changes(tree, lines))[number][1]()
        yield ast.unparse(tree)


def test_every_place_is_broken_once_and_types_are_left_alone():
    broken = list(all_broken(SOURCE))
    assert len(set(broken)) == len(broken) == 13
    for piece in BROKEN.strip().splitlines():
        assert sum(piece in source for source in broken) == 1, piece
    assert sum("raise" not in source for source in broken) == sum("log" not in source for source in broken) == 1


# Sees every mutant but two: one that loads a constant anew, and one within a function.
TESTS = """
import pytest
from lightfr import cohorts
from lightfr.errors import OutOfRangeError

def test_limits():
    assert (cohorts.MIN_DEVICES, cohorts.MAX_DEVICES) == (2, 8192)

def test_requirement():
    cohorts.require_minimum_cohort(2)
    with pytest.raises(OutOfRangeError, match="^minimum_cohort"):
        cohorts.require_minimum_cohort(8193)
"""
TEST_OF_THE_FUNCTION = """
def test_most():
    cohorts.require_minimum_cohort(8192)
"""
TEST_OF_THE_CONSTANT = """
def test_default():
    assert cohorts.DEFAULT_MINIMUM_COHORT == 256
"""


def try_cohorts(tests, record):
    command = [sys.executable, "-m", "tests.campaigns.mutation", "sdk/lightfr/cohorts.py", "--tests", str(tests)]
    root = Path(__file__).parent.parent
    done = subprocess.run([*command, "--record", str(record)], cwd=root, capture_output=True, text=True, timeout=120)
    assert done.stdout, done.stderr
    return done.stdout.splitlines()


def test_a_mutant_survives_until_a_test_sees_it(tmp_path):
    tests, record = tmp_path / "test_cohorts.py", tmp_path / "record.json"
    tests.write_text(TESTS)
    assert try_cohorts(tests, record)[-1].endswith("8 of 8 tried, 0 equivalent, 2 survived")
    tests.write_text(TESTS + TEST_OF_THE_FUNCTION)
    lines = try_cohorts(tests, record)
    assert lines[0].endswith("2 mutants"), "what was killed is not tried again"
    assert lines[-1].endswith("8 of 8 tried, 0 equivalent, 1 survived")
    tests.write_text(TESTS + TEST_OF_THE_FUNCTION + TEST_OF_THE_CONSTANT)
    assert try_cohorts(tests, record)[-1].endswith("8 of 8 tried, 0 equivalent, 0 survived")
    assert sorted(json.loads(record.read_text())["sdk/lightfr/cohorts.py"]["killed"]) == list(range(8))
