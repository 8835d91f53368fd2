"""Opening files, also those inside a zip file.

A path may go on inside a zip file: `ml-1m.zip/ml-1m/ratings.dat`. Where a zip file holds a single data file, the path
of the zip file is enough.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, TextIO

from ..errors import DataFileError

LARGEST_UNPACKED_BYTES = 1 << 31
LONGEST_FIRST_LINE = 1 << 16
NAMES_SHOWN = 10
ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
# What reading a zip file that is cut short or spoilt raises.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)
# Other methods unpack without a bound on memory.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def open_bytes(path: Path) -> IO[bytes]:
    """The bytes of a file, or of the file that the path names inside a zip file."""
    if path.is_dir():
        raise DataFileError(path, None, "this is a folder", "Name the file with the ratings inside it.")
    if path.exists() and not path.is_file():
        raise DataFileError(path, None, "this is a pipe or a device", "Save the ratings in a file and name that.")
    file = next((each for each in (path, *path.parents) if each.is_file()), None)
    inside = path.relative_to(file).as_posix() if file else ""
    if file is None or (inside != "." and not _is_zip(file)):
        raise DataFileError(path, None, "it does not exist", "Check the path, or run: lightfr-harness data list")
    if not _is_zip(file):
        return file.open("rb")
    try:
        # The archive stays open until the entry is closed.
        with zipfile.ZipFile(file) as archive:
            return archive.open(_entry(path, archive, "" if inside == "." else inside))
    except (*DAMAGED, NotImplementedError, RuntimeError) as error:  # The last two: another version, or encrypted.
        raise damaged_zip(path) from error


def open_text(path: Path) -> TextIO:
    # A byte that is not UTF-8 becomes half a surrogate pair, which is no digit and no proper text, so that its line is
    # reported instead of stopping the decoder somewhere before it.
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", errors="surrogateescape", newline="")


def first_line(path: Path) -> str:
    """Bounded, because a file that is no text may have no line ends at all."""
    with open_text(path) as handle:
        line = handle.readline(LONGEST_FIRST_LINE)
    if len(line) == LONGEST_FIRST_LINE:
        raise DataFileError(path, 1, f"the line has {LONGEST_FIRST_LINE} characters or more", "Name a file of ratings.")
    return line.rstrip("\r\n")


def damaged_zip(path: Path) -> DataFileError:
    reason = "the zip file is cut short, damaged or encrypted"
    return DataFileError(path, None, reason, "Bring it again, or unpack it and name the file inside it.")


def _is_zip(file: Path) -> bool:
    with file.open("rb") as handle:
        return handle.read(4) in ZIP_STARTS


def _entry(path: Path, archive: zipfile.ZipFile, inside: str) -> zipfile.ZipInfo:
    entries = [each for each in archive.infolist() if _is_data(each)]
    chosen = [each for each in entries if inside in ("", each.filename)]
    if len(chosen) != 1:
        names = ", ".join(repr(each.filename) for each in entries[:NAMES_SHOWN]) or "nothing"
        more = " and more" if len(entries) > NAMES_SHOWN else ""
        reason = f"the zip file has no file {inside!r}" if inside else f"the zip file has {len(entries)} data files"
        advice = f"It holds {names}{more}. Put the name of one of them after the path of the zip file and a slash."
        raise DataFileError(path, None, reason, advice)
    if chosen[0].file_size > LARGEST_UNPACKED_BYTES:
        reason = f"unpacked it would take {chosen[0].file_size:,} bytes; at most {LARGEST_UNPACKED_BYTES:,} are read"
        raise DataFileError(path, None, reason, "If you trust the file, unpack it and name the file inside it.")
    if chosen[0].compress_type not in METHODS:
        reason = "the file inside is packed by a method that is not read here"
        raise DataFileError(path, None, reason, "Unpack it and name the file inside it.")
    return chosen[0]


def _is_data(entry: zipfile.ZipInfo) -> bool:
    """Folders, what macOS adds, hidden files and read-me files are not data."""
    parts = PurePosixPath(entry.filename).parts
    return not entry.is_dir() and "__MACOSX" not in parts and not parts[-1].lower().startswith((".", "readme"))
