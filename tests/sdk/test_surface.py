"""The names of the package: all are listed, and those that load more are loaded when they are asked for."""

import pytest

import lightfr


def test_every_name_is_listed_and_there():
    assert dir(lightfr) == sorted(lightfr.__all__)
    assert [name for name in lightfr.__all__ if not hasattr(lightfr, name)] == []


def test_a_name_that_is_none_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'recomend'"):
        _ = lightfr.recomend
