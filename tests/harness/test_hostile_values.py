"""No value of any option of any command ends in a traceback: both programs say in a sentence what they cannot use.

tests/hostile.py says how the values are chosen. `make hostile` tries pairs of them with real processes.
"""

import pytest

from lightfr import cli
from tests import hostile

ALL = list(hostile.harness_inputs())
NAMES = [name for name, _ in hostile.commands()]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Wide enough that no sentence is broken in two.
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERM", "dumb")
    hostile.make_traps(tmp_path)
    return tmp_path


def require_refused(code, said, line):
    assert (code, line.named in said) == (2, True), f"{[word[:80] for word in line.words]}: exit code {code}\n{said}"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "data list"])
def test_a_command_refuses_every_hostile_value_with_a_sentence_that_names_the_option(name, folder):
    before = set(folder.iterdir())
    lines = [line for parameter, line in ALL if parameter.command == name]
    assert lines
    for line in lines:
        require_refused(*hostile.call_harness(line.words), line)
    assert set(folder.iterdir()) == before, "a refused command leaves nothing behind"


def test_the_command_for_apps_refuses_every_hostile_value(folder):
    lines = list(hostile.sdk_inputs())
    assert len(lines) > 200
    for line in lines:
        require_refused(*hostile.call(lambda line=line: cli.main(line.words)), line)


def test_the_walk_sees_every_command_and_tries_thousands_of_values():
    assert {parameter.command for parameter, _ in ALL} == set(NAMES) - {"data list"}
    assert len(NAMES) > 30
    assert len(ALL) > 2000


def test_every_number_has_a_range_and_every_output_is_checked_before_the_work():
    for parameter in hostile.parameters():
        where = f"{parameter.command} {parameter.name}"
        if parameter.kind in (int, float):
            assert None not in (parameter.info.min, parameter.info.max), f"{where} has no range"
        if parameter.kind is float:
            assert parameter.info.callback is not None, f"{where} takes nan"
        if parameter.name in ("--json", "--report", "--save", "--checkpoint", "--to") and parameter.kind is not int:
            assert parameter.info.callback is not None, f"{where} is not checked before the work"


@pytest.mark.parametrize(("call", "name"), [(hostile.call_harness, "lightfr-harness"), (None, "lightfr")])
def test_both_programs_say_their_release(call, name):
    from lightfr import __version__

    answer = call(["--version"]) if call else hostile.call(lambda: cli.main(["--version"]))
    assert answer == (0, f"{name} {__version__}\n")
