"""The MovieLens shapes, sound and broken."""

import os

import pytest

from lightfr_harness.data import load
from lightfr_harness.data.errors import DataFileError
from lightfr_harness.data.readers import numbers

INTER_HEADER = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
CSV_HEADER = "userId,movieId,rating,timestamp\n"


def write(folder, text, name="ratings"):
    path = folder / name
    path.write_bytes(text.encode())
    return path


def rows(ratings):
    return [
        (ratings.user_ids[user], ratings.item_ids[item], float(rating), int(time))
        for user, item, rating, time in zip(
            ratings.user_index, ratings.item_index, ratings.rating, ratings.timestamp, strict=True
        )
    ]


SOUND = {
    "u.data": ("ml-100k", "7\t20\t3\t881\n8\t20\t5\t882\n7\t9\t1\t883\n"),
    "inter": ("ml-100k", INTER_HEADER + "7\t20\t3\t881\n8\t20\t5\t882\n7\t9\t1\t883\n"),
    "ml-1m": ("ml-1m", "7::20::3::881\n8::20::5::882\n7::9::1::883\n"),
    "ml-csv": ("ml-csv", CSV_HEADER + "7,20,3.0,881\n8,20,5.0,882\n7,9,1,883\n"),
}
EXPECTED = [("7", "20", 3.0, 881), ("8", "20", 5.0, 882), ("7", "9", 1.0, 883)]


@pytest.mark.parametrize("shape", SOUND)
def test_each_shape_is_read(tmp_path, shape):
    format_name, text = SOUND[shape]
    assert rows(load(write(tmp_path, text), format_name)) == EXPECTED


@pytest.mark.parametrize("shape", SOUND)
def test_windows_line_ends_blank_lines_and_a_missing_last_line_end_do_no_harm(tmp_path, shape):
    format_name, text = SOUND[shape]
    changed = text.replace("\n", "\r\n").removesuffix("\r\n")
    head, last = changed.rsplit("\r\n", 1)
    assert rows(load(write(tmp_path, head + "\r\n\r\n" + last), format_name)) == EXPECTED
    assert rows(load(write(tmp_path, text + "\n"), format_name)) == EXPECTED


@pytest.mark.parametrize("lines_at_once", [1, 2, 3])
def test_the_size_of_the_pieces_changes_nothing(tmp_path, monkeypatch, lines_at_once):
    monkeypatch.setattr(numbers, "LINES_AT_ONCE", lines_at_once)
    format_name, text = SOUND["ml-csv"]
    assert rows(load(write(tmp_path, text), format_name)) == EXPECTED


def test_each_format_declares_its_own_scale(tmp_path):
    scales = {}
    for shape, (format_name, text) in SOUND.items():
        ratings = load(write(tmp_path, text), format_name)
        scales[shape] = (ratings.rating_min, ratings.rating_max)
    assert scales == {"u.data": (1, 5), "inter": (1, 5), "ml-1m": (1, 5), "ml-csv": (0.5, 5)}


def test_the_columns_of_an_inter_file_go_by_its_header(tmp_path):
    text = "item_id:token\tuser_id:token\ttimestamp:float\trating:float\n20\t7\t881.0\t3\n"
    assert rows(load(write(tmp_path, text), "ml-100k")) == EXPECTED[:1]


BROKEN = [
    ("7,20,3", "3 fields where 4 are expected"),
    ("7,20,3,881,1", "5 fields where 4 are expected"),
    ("7,20,good,881", "the rating is not a number"),
    ("7,,3,881", "the item is not a number"),
    ("x7,20,3,881", "the user is not a number"),
    ("7.5,20,3,881", "the user id is not a whole number from 0 to 2^53"),
    ("7,-2,3,881", "the item id is not a whole number from 0 to 2^53"),
    ("7,20,nan,881", "the rating is NaN or outside"),
    ("7,20,6,881", "the rating is NaN or outside"),
    ("7,20,0,881", "the rating is NaN or outside"),
    ("7,20,3,inf", "the timestamp is not finite"),
    ("7,20,3,1_000", "the timestamp is not a number"),
    ("#7,20,3,881", "the user is not a number"),
    ("7,20,\N{SNOWMAN},881", "the rating is not a number"),
]


@pytest.mark.parametrize("separator", ["\t", "::", ","])
@pytest.mark.parametrize(("line", "reason"), BROKEN)
def test_a_broken_line_is_reported_with_file_number_and_reason(tmp_path, separator, line, reason):
    format_name = {"\t": "ml-100k", "::": "ml-1m", ",": "ml-csv"}[separator]
    header = CSV_HEADER if separator == "," else ""
    good = "".join(f"{user},20,3,881\n".replace(",", separator) for user in range(5))
    path = write(tmp_path, header + good + line.replace(",", separator) + "\n" + good)
    with pytest.raises(DataFileError) as caught:
        load(path, format_name)
    assert caught.value.line == 6 + bool(header)
    assert reason in caught.value.reason
    assert str(path) in str(caught.value)
    assert caught.value.advice in str(caught.value)


def test_the_line_number_counts_pieces_and_blank_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(numbers, "LINES_AT_ONCE", 3)
    path = write(tmp_path, "1::1::3::1\n\n\n\n\n1::2::3::1\nbroken\n")
    with pytest.raises(DataFileError) as caught:
        load(path, "ml-1m")
    assert caught.value.line == 7


def test_the_first_of_several_broken_lines_is_the_one_reported(tmp_path):
    text = "".join("1::2::3::4\n" if line not in (40, 41, 90) else "?\n" for line in range(1, 100))
    with pytest.raises(DataFileError) as caught:
        load(write(tmp_path, text), "ml-1m")
    assert caught.value.line == 40


def test_tabs_are_not_taken_for_the_double_colons_of_ml_1m(tmp_path):
    with pytest.raises(DataFileError, match="line 1: 1 fields where 4"):
        load(write(tmp_path, "7\t20\t3\t881\n"), "ml-1m")


@pytest.mark.parametrize(
    ("format_name", "text"),
    [("ml-csv", "user,item\n1,2\n"), ("ml-csv", ""), ("ml-100k", "user_id:token\titem_id:token\n")],
)
def test_a_header_that_is_not_the_formats_own_is_reported_as_line_one(tmp_path, format_name, text):
    with pytest.raises(DataFileError) as caught:
        load(write(tmp_path, text), format_name)
    assert caught.value.line == 1


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_file_without_ratings_is_refused(tmp_path, text):
    with pytest.raises(DataFileError, match="no ratings"):
        load(write(tmp_path, text), "ml-1m")


def test_fractions_of_a_second_tell_which_rating_is_the_newest(tmp_path):
    ratings = load(write(tmp_path, "1::2::3::881.75\n1::2::4::881.25\n1::3::5::880\n"), "ml-1m")
    assert (ratings.rating.tolist(), ratings.timestamp.tolist()) == ([3, 5], [881_750_000, 880_000_000])


def test_a_pipe_is_refused_before_it_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataFileError, match=r"this is a pipe or a device\. Save the ratings in a file"):
        load(tmp_path / "pipe", "ml-1m")


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(DataFileError, match="does not exist"):
        load(tmp_path / "absent", "ml-1m")
    with pytest.raises(DataFileError, match="this is a folder"):
        load(tmp_path, "ml-1m")


def test_messages_hold_no_rating_and_no_id(tmp_path):
    with pytest.raises(DataFileError) as caught:
        load(write(tmp_path, "4711::815::99::4\n", name="r"), "ml-1m")
    assert not any(secret in str(caught.value).replace(str(tmp_path), "") for secret in ("4711", "815", "99"))


# FilmTrust: blanks between the fields, half stars up to four, no times.


def test_lines_are_read_and_there_are_no_times(tmp_path):
    path = tmp_path / "ratings.txt"
    path.write_text("1 1 2\n1 2  0.5\n2 2 4\n")
    ratings = load(path, "filmtrust")
    assert ratings.rating.tolist() == [2, 0.5, 4]
    assert not ratings.has_times
    assert (ratings.rating_min, ratings.rating_max) == (0.5, 4.0)
    assert ratings.item_ids == ["2", "1"]


def test_a_rating_given_twice_counts_once_and_the_later_line_stands(tmp_path):
    path = tmp_path / "ratings.txt"
    path.write_text("1 1 2\n1 1 3\n")
    ratings = load(path, "filmtrust")
    assert (ratings.rating.tolist(), ratings.n_duplicates) == ([3], 1)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 1", "2 fields"),
        ("1 1 2 3", "4 fields"),
        ("1 1 4.5", "outside"),
        ("1 a 2", "item is not"),
    ],
)
def test_a_broken_line_is_reported_with_its_number(tmp_path, line, reason):
    path = tmp_path / "ratings.txt"
    path.write_text(f"1 1 2\n{line}\n")
    with pytest.raises(DataFileError, match=f"line 2: .*{reason}"):
        load(path, "filmtrust")
