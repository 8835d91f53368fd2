"""The names of the package: all are listed, and those that load more are loaded when they are asked for."""

import ast
from pathlib import Path

import pytest

import lightfr


def test_every_name_is_listed_and_there():
    assert dir(lightfr) == sorted(lightfr.__all__)
    assert [name for name in lightfr.__all__ if not hasattr(lightfr, name)] == []


def test_type_checkers_know_every_name_that_is_loaded_later():
    blocks = [block for block in ast.parse(Path(lightfr.__file__).read_text()).body if isinstance(block, ast.If)]
    imports = [line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom)]
    assert {alias.name: line.module for line in imports for alias in line.names} == lightfr._LAZY


def test_a_name_that_is_none_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'recomend'"):
        _ = lightfr.recomend
