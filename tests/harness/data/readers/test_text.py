"""Any CSV with a header, its columns named by the caller."""

import pytest

from lightfr_harness.data import load
from lightfr_harness.data.errors import (
    DataFileError,
    InvalidOptionError,
    InvalidRatingsError,
)

SCALE = {"rating_min": 0, "rating_max": 10}


def write(folder, text):
    path = folder / "any.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_are_found_by_name_in_any_order(tmp_path):
    path = write(tmp_path, 'when,score,"who",extra,what\n5,10,ann,,"a, b"\n4,0,ann,,c\n')
    names = {"user": "who", "item": "what", "rating": "score", "timestamp": "when"}
    ratings = load(path, "csv", **names, **SCALE)
    assert ratings.item_ids == ["a, b", "c"]
    assert ratings.rating.tolist() == [10, 0]
    assert ratings.timestamp.tolist() == [5, 4]
    assert (ratings.rating_min, ratings.rating_max) == (0, 10)


def test_without_a_time_column_the_order_of_lines_is_the_order_of_time(tmp_path):
    path = write(tmp_path, "\ufeffuser_id,item_id,rating\nu,a,1\n\nu,b,1\n")
    assert load(path, "csv", **SCALE).timestamp.tolist() == [0, 1]


@pytest.mark.parametrize("missing", ["rating_min", "rating_max"])
def test_the_scale_must_be_declared(tmp_path, missing):
    path = write(tmp_path, "user_id,item_id,rating\nu,a,1\n")
    scale = {name: value for name, value in SCALE.items() if name != missing}
    with pytest.raises(InvalidOptionError, match="Declare rating_min and rating_max"):
        load(path, "csv", **scale)


def test_a_scale_that_is_no_range_is_refused_before_reading(tmp_path):
    path = write(tmp_path, "user_id,item_id,rating\nbroken\n")
    with pytest.raises(InvalidRatingsError, match="not a range"):
        load(path, "csv", rating_min=5, rating_max=1)


BROKEN = [
    ("u,a", "2 fields where 3"),
    ("u,a,1,2", "4 fields where 3"),
    ("u,a,", "rating is not a number"),
    ("u,a,nan", "rating is not a finite number"),
    ("u,a,11", "rating is outside 0 to 10"),
    ("u,a,-0.1", "rating is outside 0 to 10"),
    (",a,1", "user or item id is empty"),
    ("u, ,1", "user or item id is empty"),
    ('u,"a"b,1', "expected after"),
]


@pytest.mark.parametrize(("line", "reason"), BROKEN)
def test_a_broken_line_is_reported_with_its_number(tmp_path, line, reason):
    path = write(tmp_path, f"user_id,item_id,rating\nu,a,1\n{line}\nu,b,1\n")
    with pytest.raises(DataFileError) as caught:
        load(path, "csv", **SCALE)
    assert caught.value.line == 3
    assert reason in caught.value.reason


def test_a_broken_time_is_reported_with_its_number(tmp_path):
    path = write(tmp_path, "user_id,item_id,rating,t\nu,a,1,yesterday\n")
    with pytest.raises(DataFileError, match="line 2: the timestamp is not a number"):
        load(path, "csv", timestamp="t", **SCALE)


def test_an_unknown_column_is_reported_with_the_ones_there_are(tmp_path):
    path = write(tmp_path, "who,what,rating\nu,a,1\n")
    with pytest.raises(DataFileError, match=r"no column user_id, item_id.*who, what, rating"):
        load(path, "csv", **SCALE)


@pytest.mark.parametrize("text", ["", "user_id,item_id,rating\n"])
def test_a_file_without_ratings_is_refused(tmp_path, text):
    with pytest.raises(DataFileError):
        load(write(tmp_path, text), "csv", **SCALE)


def test_an_unknown_format_lists_the_known_ones(tmp_path):
    with pytest.raises(InvalidOptionError, match="ml-100k, ml-1m, ml-csv, filmtrust, douban"):
        load(tmp_path, "netflix")


def test_an_option_the_format_does_not_have_is_refused_by_name(tmp_path):
    with pytest.raises(InvalidOptionError, match=r"ml-1m has no option rating_min.*none"):
        load(tmp_path, "ml-1m", rating_min=1)
    with pytest.raises(InvalidOptionError, match=r"no option colour.*user, item"):
        load(tmp_path, "csv", colour="red")
