"""What a record carries, and which names and levels it takes."""

import pytest

from lightfr.errors import InvalidInputError, RatingError
from lightfr.store._state import Change, require_level, require_name


def test_a_change_is_compact_json_in_utf_8():
    change = Change(rated=[("ünïcode", 7)], unrated=[3], values={"gone": None, "kept": b"\xff"}, unfinished=True)
    text = '{"rate":[["ünïcode",7]],"unrate":[3],"more":true,"values":{"gone":null,"kept":"/w=="}}'
    assert change.encode() == text.encode()
    assert Change.decode(text.encode()) == change


def test_a_change_shows_how_much_it_changes_and_not_what():
    change = Change(rated=[("a", 1), ("b", 2)], unrated=["c"], values={"name": b""})
    assert repr(change) == "<Change of 3 ratings and 1 values>"


@pytest.mark.parametrize("level", [-2, 2521, True, 1.0, None])
def test_a_refused_level_is_told_the_scale(level):
    with pytest.raises(RatingError) as caught:
        require_level(level)
    assert (caught.value.minimum, caught.value.maximum) == (0, 2520)


@pytest.mark.parametrize("level", [-1, 0, 1, 2520])
def test_a_level_is_one_of_the_scale_or_that_of_a_hidden_item(level):
    assert require_level(level) == level


def test_a_name_has_no_half_of_a_pair_of_surrogates():
    for name in ("\ud7ff", "\ue000", "\U0001f600", "x" * 255):
        assert require_name(name) == name
    for name in ("\ud800", "\udfff", "", "x" * 256):
        with pytest.raises(InvalidInputError):
            require_name(name)
