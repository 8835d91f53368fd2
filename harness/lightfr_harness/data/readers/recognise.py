"""What a file looks like: for who does not name a format, and for the error message of a reader that failed."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import DataFileError
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


def guess_format(path: Path) -> tuple[str, str]:
    """The format that reads the file, and what the file looks like."""
    found = _look(_start_of(path))
    if found is None:
        advice = f"Name a file of one of the formats {', '.join(sorted({each for look in LOOKS for each in look[2]}))}."
        raise DataFileError(path, None, "its format cannot be guessed", advice)
    name, formats, otherwise = found
    if not formats:
        raise DataFileError(path, None, f"this looks like {name}", otherwise)
    return formats[0], name


def advice_for(path: Path, format: str) -> str | None:
    """A sentence that names the format the file looks like; None if that is the format asked for, or unknown."""
    try:
        found = _look(_start_of(path))
    except (DataFileError, OSError, *DAMAGED):
        return None
    if found is None or format in found[1]:
        return None
    name, formats, otherwise = found
    return f"This looks like {name}. " + (f"Name the format {formats[0]}." if formats else otherwise)


def _start_of(path: Path) -> bytes:
    with open_bytes(path) as file:
        return file.read(BYTES_LOOKED_AT).removeprefix(b"\xef\xbb\xbf")


def _look(start: bytes) -> tuple[str, tuple[str, ...], str] | None:
    return next((look[1:] for look in LOOKS if re.match(look[0], start, re.IGNORECASE)), None)
