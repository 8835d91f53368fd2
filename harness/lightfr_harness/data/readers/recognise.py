"""What a file looks like: for commands that are not told its format, and for readers that could not read it."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import DataFileError, InvalidOptionError
from .files import DAMAGED, open_bytes

BYTES_LOOKED_AT = 4096

NUMBER = rb"-?\d+(\.\d+)?"
DATE = rb"\d{4}-\d\d-\d\d"
UNREADABLE = "Unpack or convert it first."
UTF_8 = "Save it as UTF-8 text."

# What the file begins with, what that is, the formats that read it, and what to do where none does. The first match
# counts.
LOOKS: tuple[tuple[bytes, str, tuple[str, ...], str], ...] = (
    (rb"MATLAB", "a MATLAB file", ("ciao", "douban"), ""),
    (rb"PK\x03\x04", "a zip file inside a zip file", (), UNREADABLE),
    (rb"\x1f\x8b", "a gzip file", (), UNREADABLE),
    (rb"7z\xbc\xaf|Rar!|BZh|\xfd7zXZ", "an archive", (), UNREADABLE),
    (rb"\x89HDF", "an HDF5 file", (), UNREADABLE),
    (rb"PAR1", "a Parquet file", (), UNREADABLE),
    (rb"SQLite format 3", "an SQLite database", (), UNREADABLE),
    (rb"\xff\xfe|\xfe\xff", "UTF-16 text", (), UTF_8),
    (rb"\s*<(!doctype|html|\?xml)", "a web page or XML", (), "Download the data themselves."),
    (rb"\s*[{\[]", "JSON", (), "Convert it to CSV."),
    (rb"[^\r\n]*:(token|float)", "a RecBole .inter file", ("inter", "ml-100k"), ""),
    (rb"userId,movieId,rating,timestamp", "a MovieLens ratings.csv", ("ml-csv", "csv"), ""),
    (rb"user_id,item_id,ratings", "a file of a prepared split, whose folder is to be named", ("prepared", "csv"), ""),
    (rb"\d+::\d+::", "a MovieLens ratings.dat", ("ml-1m",), ""),
    (rb"(\d+\t){2}%b\t\d+\s" % NUMBER, "a MovieLens u.data", ("ml-100k", "douban"), ""),
    (rb"(\d+[ \t]+){2}%b[ \t]*\r?\n" % NUMBER, "user, item and rating between blanks", ("filmtrust", "douban"), ""),
    (rb"(\d+,\s*){4}%b,\s*%b" % (NUMBER, DATE), "the movie-ratings.txt of CiaoDVD", ("ciaodvd", "csv"), ""),
    (rb"[^\r\n,]+,[^\r\n,]+,", "comma-separated text", ("csv", "ciaodvd", "ml-csv", "prepared"), ""),
)


def guess_format(path: Path, advice: str = "name it with --format, or convert the file to CSV") -> tuple[str, str]:
    """The format that reads this file or folder, and what it looks like; raises InvalidOptionError with advice."""
    if path.is_dir():
        return "prepared", "a folder of a prepared split"
    looks = _looks_like(path)
    if looks is None or not looks[1]:
        seen = f" It looks like {looks[0]}. {looks[2]}" if looks else ""
        raise InvalidOptionError(f"Cannot guess the format of {path}: {advice}.{seen}")
    name, formats, _ = looks
    # MovieLens-100K comes in this form too, and its scale is known.
    is_movielens = "ml-100k" in formats and path.name.startswith("ml-100k")
    return "ml-100k" if is_movielens else formats[0], name


def advice_for(path: Path, format: str) -> str | None:
    """A sentence that names the format the file looks like; None if that is the format asked for, or unknown."""
    try:
        looks = _looks_like(path)
    except (DataFileError, OSError):
        return None
    if looks is None or format in looks[1]:
        return None
    name, formats, otherwise = looks
    return f"This looks like {name}. " + (f"Name the format {formats[0]}." if formats else otherwise)


def _looks_like(path: Path) -> tuple[str, tuple[str, ...], str] | None:
    """What the file begins with: its name, the formats that read it, and what to do where none does."""
    try:
        with open_bytes(path) as file:
            start = file.read(BYTES_LOOKED_AT).removeprefix(b"\xef\xbb\xbf")
    except DAMAGED:
        return None
    for pattern, name, formats, otherwise in LOOKS:
        if re.match(pattern, start, re.IGNORECASE):
            return name, formats, otherwise
    return None
