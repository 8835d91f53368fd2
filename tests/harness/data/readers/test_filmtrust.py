"""FilmTrust: blanks between the fields, half stars up to four, no times."""

import pytest

from lightfr_harness.data import load
from lightfr_harness.data.errors import MalformedDataError


def test_lines_are_read_and_file_order_is_time(tmp_path):
    path = tmp_path / "ratings.txt"
    path.write_text("1 1 2\n1 2  0.5\n2 2 4\n")
    ratings = load(path, "filmtrust")
    assert ratings.rating.tolist() == [2, 0.5, 4]
    assert ratings.timestamp.tolist() == [0, 1, 2]
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
    with pytest.raises(MalformedDataError, match=f"line 2: .*{reason}"):
        load(path, "filmtrust")
