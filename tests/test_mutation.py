"""The tool that breaks modules to try their tests: tests/campaigns/mutation.py."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaigns.mutation import changes

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


@pytest.mark.parametrize(("seen", "survivors"), [("== 256", 0), ("> 9", 1)])
def test_a_mutant_survives_tests_that_do_not_see_it(tmp_path, seen, survivors):
    """The mutant of lightfr.cohorts that this seed draws makes 256 devices 257."""
    tests = tmp_path / "test_cohorts.py"
    tests.write_text(
        f"from lightfr import cohorts\n\ndef test_it():\n    assert cohorts.DEFAULT_MINIMUM_COHORT {seen}\n"
    )
    command = [sys.executable, "-m", "tests.campaigns.mutation", "sdk/lightfr/cohorts.py", "--tests", str(tests)]
    done = subprocess.run(
        [*command, "--sample", "1"], cwd=Path(__file__).parent.parent, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines()[-1].endswith(f"1 of 8 tried, {survivors} survived"), done.stdout + done.stderr
