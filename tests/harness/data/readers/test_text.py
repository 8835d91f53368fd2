"""CSV with a header or without, CiaoDVD and RecBole's .inter files."""

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


def test_without_a_time_column_there_are_no_times(tmp_path):
    path = write(tmp_path, "\ufeffuser_id,item_id,rating\nu,a,1\n\nu,b,1\n")
    assert not load(path, "csv", **SCALE).has_times


@pytest.mark.parametrize(
    ("texts", "seconds"),
    [
        (("2013-06-21", "1970-01-02"), [1371772800, 86400]),
        (("1970-01-01T00:00:10", "1970-01-01 01:00:00+01:00"), [10, 0]),
        (("1970-01-01T00:00:01Z", "1969-12-31"), [1, -86400]),
        (("-5", "881"), [-5, 881]),
        (("-5", "881.9"), [-5_000_000, 881_900_000]),
        (("1970-01-01T00:00:01.25", "1970-01-01"), [1_250_000, 0]),
        (("1e15", "0.5"), [10**15, 0]),
    ],
)
def test_times_are_numbers_or_iso_dates_and_in_millionths_where_one_has_a_fraction(tmp_path, texts, seconds):
    path = write(tmp_path, "user_id,item_id,rating,t\n" + "".join(f"u,i{n},1,{text}\n" for n, text in enumerate(texts)))
    assert load(path, "csv", timestamp="t", **SCALE).timestamp.tolist() == seconds


NUMBERED = {"user": "2", "item": "1", "rating": "3"}


def test_columns_by_number_are_those_of_a_file_without_a_header(tmp_path):
    path = write(tmp_path, '"a, b",ann,10,2001-01-02\r\nc,bob,0,2001-01-01\r\n')
    ratings = load(path, "csv", **NUMBERED, timestamp="4", **SCALE)
    assert (ratings.user_ids, ratings.item_ids) == (["ann", "bob"], ["a, b", "c"])
    assert ratings.rating.tolist() == [10, 0]
    assert (ratings.timestamp[0] - ratings.timestamp[1]) == 86400


@pytest.mark.parametrize("column", ["0", "5"])
def test_a_column_number_that_is_not_there_is_reported(tmp_path, column):
    with pytest.raises(DataFileError, match="line 1: the line has 4 columns"):
        load(write(tmp_path, "a,u,1,2\n"), "csv", **{**NUMBERED, "item": column}, **SCALE)


def test_without_a_header_the_error_does_not_show_the_first_line(tmp_path):
    with pytest.raises(DataFileError, match="number them from 1") as caught:
        load(write(tmp_path, "anna,item4711,3\n"), "csv", **SCALE)
    assert "anna" not in str(caught.value)


def test_ids_in_another_encoding_are_refused(tmp_path):
    path = tmp_path / "any.csv"
    path.write_bytes("user_id,item_id,rating\nJos\u00e9,a,1\nu,b,1\n".encode("latin-1"))
    with pytest.raises(DataFileError, match="not UTF-8"):
        load(path, "csv", **SCALE)
    path.write_text("user_id,item_id,rating\nJos\u00e9,a,1\nu,b,1\n", encoding="utf-8")
    assert load(path, "csv", **SCALE).user_ids == ["Jos\u00e9", "u"]


def test_a_header_in_another_encoding_is_not_printed(tmp_path):
    path = tmp_path / "any.csv"
    path.write_bytes("w\u00e4r,item_id,rating\nu,a,1\n".encode("latin-1"))
    with pytest.raises(DataFileError) as caught:
        load(path, "csv", **SCALE)
    assert str(caught.value).encode()


CIAODVD = "1,1,7,1,5,2003-06-21\n1,2,7,2,1,2003-06-20\n9,1,8,3,3,2011-01-01\n"


def test_ciaodvd_has_no_header_and_iso_dates(tmp_path):
    ratings = load(write(tmp_path, CIAODVD), "ciaodvd")
    assert (ratings.user_ids, ratings.item_ids, ratings.rating.tolist()) == (["1", "9"], ["1", "2"], [5, 1, 3])
    assert ratings.timestamp.argsort().tolist() == [1, 0, 2]
    assert (ratings.rating_min, ratings.rating_max) == (1, 5)


@pytest.mark.parametrize(
    ("line", "reason"),
    [("1,1,7,1,5", "5 fields"), ("1,1,7,1,0,2003-06-21", "outside 1 to 5"), ("1,1,7,1,5,2003-13-21", "ISO date")],
)
def test_a_broken_line_of_ciaodvd_is_reported(tmp_path, line, reason):
    with pytest.raises(DataFileError, match=f"line 2: .*{reason}"):
        load(write(tmp_path, f"1,1,7,1,5,2003-06-21\n{line}\n"), "ciaodvd")


def test_an_inter_file_may_have_any_ids_quotes_and_further_columns(tmp_path):
    header = "review:token_seq\titem_id:token\tuser_id:token\trating:float\ttimestamp:float\n"
    text = header + 'ok\t"a\tB00X\t4.5\t9\nno\tb\tB00Y\t1\t8\n'
    ratings = load(write(tmp_path, text), "inter", **SCALE)
    assert (ratings.user_ids, ratings.item_ids) == (["B00X", "B00Y"], ['"a', "b"])
    assert (ratings.rating.tolist(), ratings.timestamp.tolist()) == ([4.5, 1], [9, 8])


def test_an_inter_file_may_lack_times_and_name_its_rating_otherwise(tmp_path):
    text = "user_id:token\titem_id:token\tstars:float\nu\ta\t4\n"
    assert not load(write(tmp_path, text), "inter", rating="stars:float", **SCALE).has_times
    with pytest.raises(DataFileError, match="no column rating:float"):
        load(write(tmp_path, text), "inter", **SCALE)
    with pytest.raises(InvalidOptionError, match="format inter does not know"):
        load(write(tmp_path, text), "inter")


@pytest.mark.parametrize("missing", ["rating_min", "rating_max"])
def test_the_scale_must_be_declared(tmp_path, missing):
    path = write(tmp_path, "user_id,item_id,rating\nu,a,1\n")
    scale = {name: value for name, value in SCALE.items() if name != missing}
    with pytest.raises(InvalidOptionError, match="Declare --rating-min and --rating-max"):
        load(path, "csv", **scale)


def test_a_scale_that_is_no_range_is_refused_before_reading(tmp_path):
    path = write(tmp_path, "user_id,item_id,rating\nbroken\n")
    with pytest.raises(InvalidRatingsError, match="not a range"):
        load(path, "csv", rating_min=5, rating_max=1)


BROKEN = [
    ("u,a", "2 fields where 3"),
    ("u,a,1,2", "4 fields where 3"),
    ("u,a,", "rating is not a number"),
    ("u,a,1_0", "rating is not a finite number"),
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
    with pytest.raises(InvalidOptionError, match=r"ml-1m has no option --rating-min.*none"):
        load(tmp_path, "ml-1m", rating_min=1)
    with pytest.raises(InvalidOptionError, match=r"no option --colour.*--user, --item"):
        load(tmp_path, "csv", colour="red")
