"""A reader that meets another format says which."""

import gzip

import pytest

from lightfr_harness.data import load
from lightfr_harness.data.errors import DataFileError
from lightfr_harness.data.readers import READERS

INTER = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n1\t2\t3\t4\n"
LINES = {
    "ml-100k": "7\t20\t3\t881\n",
    "ml-1m": "7::20::3::881\n",
    "ml-csv": "userId,movieId,rating,timestamp\n7,20,3.0,881\n",
    "filmtrust": "7 20 3.5\n",
    "ciaodvd": "1,1,7,1,5,2003-06-21\n",
    "inter": INTER,
    "ciao": "MATLAB 5.0 MAT-file, Platform: posix",
    "prepared": "user_id,item_id,ratings\nu,a,1\n",
}


def message(tmp_path, content, format_name):
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataFileError) as caught:
        load(path, format_name)
    return str(caught.value)


@pytest.mark.parametrize("format_name", LINES)
@pytest.mark.parametrize("asked", ["ml-1m", "ml-csv"])
def test_a_file_of_another_format_is_recognised_and_named(tmp_path, format_name, asked):
    if asked == format_name:
        asked = "filmtrust"
    for mark in ("", "\ufeff"):
        found = message(tmp_path, mark + LINES[format_name], asked)
        assert "This looks like" in found
        assert found.endswith(f"Name the format {format_name}.")


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (gzip.compress(b"7::20::3::881\n", mtime=0), "a gzip file"),
        ("7::20::3::881\n".encode("utf-16"), "UTF-16 text"),
        ("<!DOCTYPE html><html>404</html>", "a web page"),
        ('{"user": 1}\n', "JSON"),
        (b"PAR1....", "a Parquet file"),
        (b"SQLite format 3\x00", "an SQLite database"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    ],
)
@pytest.mark.parametrize("format_name", ["ml-100k", "ciao", "douban", "ciaodvd"])
def test_a_file_that_no_format_reads_is_named_too(tmp_path, content, name, format_name):
    found = message(tmp_path, content, format_name)
    assert f"This looks like {name}" in found
    assert "Name the format" not in found


def test_a_broken_line_in_a_file_of_the_right_format_suggests_no_other(tmp_path):
    for format_name in ("ml-100k", "ml-1m", "ml-csv", "filmtrust"):
        assert "looks like" not in message(tmp_path, LINES[format_name] + "?\n", format_name)


@pytest.mark.parametrize("format_name", [name for name in READERS if name not in ("csv", "inter", "prepared")])
@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\x00", b"\xff\xff\xff", b"\x00" * 5000, b"nan nan nan\n", b"-1 -1 -1\n"]
)
def test_what_is_no_data_at_all_ends_in_a_typed_error(tmp_path, format_name, content):
    assert message(tmp_path, content, format_name)
