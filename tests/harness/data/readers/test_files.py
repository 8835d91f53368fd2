"""Zip files, sound and hostile."""

import struct
import zipfile

import pytest

from lightfr_harness.data import load
from lightfr_harness.data.errors import DataFileError
from lightfr_harness.data.readers import files

RATINGS = "7::20::3::881\n8::20::5::882\n" * 50
FOLDER = {"ml-1m/": "", "ml-1m/README": "licence", "__MACOSX/ml-1m/._x": "-", "ml-1m/.hidden": "-"}


def pack(folder, entries, method=zipfile.ZIP_DEFLATED):
    path = folder / "data.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def spoil(path, change):
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def test_the_single_data_file_of_a_zip_file_is_read(tmp_path):
    path = pack(tmp_path, {**FOLDER, "ml-1m/ratings.dat": RATINGS})
    assert len(load(path, "ml-1m")) == 2


def test_one_of_several_files_is_named_after_the_path_of_the_zip_file(tmp_path):
    path = pack(tmp_path, {"ml-1m/ratings.dat": RATINGS, "ml-1m/movies.dat": "x"})
    assert len(load(path / "ml-1m" / "ratings.dat", "ml-1m")) == 2
    with pytest.raises(DataFileError, match=r"has 2 data files. It holds 'ml-1m/ratings.dat', 'ml-1m/movies.dat'"):
        load(path, "ml-1m")
    with pytest.raises(DataFileError, match=r"no file 'users.dat'. It holds"):
        load(path / "users.dat", "ml-1m")


def test_of_many_names_a_few_are_shown(tmp_path):
    path = pack(tmp_path, {f"{number}.txt": "" for number in range(500)})
    with pytest.raises(DataFileError, match="and more") as caught:
        load(path, "ml-1m")
    assert len(str(caught.value)) < 500 + len(str(path))


@pytest.mark.parametrize("entries", [{}, FOLDER])
def test_a_zip_file_without_data_is_refused(tmp_path, entries):
    with pytest.raises(DataFileError, match=r"0 data files\. It holds nothing"):
        load(pack(tmp_path, entries), "ml-1m")


def test_a_broken_line_inside_a_zip_file_has_its_number(tmp_path):
    with pytest.raises(DataFileError, match=r"data.zip, line 101"):
        load(pack(tmp_path, {"ratings.dat": RATINGS + "?\n"}), "ml-1m")


def test_a_matlab_file_inside_a_zip_file_is_read(tmp_path):
    scipy_io = pytest.importorskip("scipy.io")
    scipy_io.savemat(tmp_path / "rating.mat", {"rating": [[1, 20, 3, 4, 5], [2, 20, 3, 1, 0]]})
    path = pack(tmp_path, {"rating.mat": (tmp_path / "rating.mat").read_bytes()})
    assert load(path, "ciao").rating.tolist() == [4, 1]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("format_name", ["ml-1m", "ciaodvd", "ciao", "douban"])
def test_a_zip_file_that_is_cut_short_is_refused(tmp_path, share, format_name):
    path = pack(tmp_path, {"ratings.dat": RATINGS})
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(DataFileError, match="cut short, damaged or encrypted"):
        load(path, format_name)


def test_a_zip_file_whose_content_was_spoilt_is_refused(tmp_path):
    path = pack(tmp_path, {"ratings.dat": RATINGS})

    def flip(content):
        content[50] ^= 0xFF

    spoil(path, flip)
    with pytest.raises(DataFileError, match="damaged"):
        load(path, "ml-1m")


def claim_size(size):
    def change(content):
        struct.pack_into("<I", content, content.index(b"PK\x01\x02") + 24, size)

    return change


def test_a_zip_file_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(tmp_path):
    path = pack(tmp_path, {"ratings.dat": RATINGS})
    spoil(path, claim_size(files.LARGEST_UNPACKED_BYTES + 1))
    with pytest.raises(DataFileError, match="would take 2,147,483,649 bytes"):
        load(path, "ml-1m")


def test_a_zip_file_that_lies_about_its_size_gives_no_more_than_it_said(tmp_path):
    path = pack(tmp_path, {"ratings.dat": RATINGS})
    spoil(path, claim_size(28))
    with pytest.raises(DataFileError, match="damaged"):
        load(path, "ml-1m")


def test_methods_without_a_bound_on_memory_and_encrypted_files_are_refused(tmp_path):
    with pytest.raises(DataFileError, match="a method that is not read here"):
        load(pack(tmp_path, {"ratings.dat": RATINGS}, zipfile.ZIP_BZIP2), "ml-1m")
    path = pack(tmp_path, {"ratings.dat": RATINGS})

    def encrypt(content):
        for start, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            content[content.index(start) + place] |= 1

    spoil(path, encrypt)
    with pytest.raises(DataFileError, match="encrypted"):
        load(path, "ml-1m")


@pytest.mark.parametrize("format_name", ["ml-100k", "ml-1m", "filmtrust", "douban", "ciaodvd"])
def test_a_file_without_line_ends_is_refused_before_it_is_read_as_one_line(tmp_path, format_name):
    path = pack(tmp_path, {"zeros": b"0" * 1_000_000})
    with pytest.raises(DataFileError, match="line 1: the line has 65536 characters or more"):
        load(path, format_name)


def test_a_path_that_goes_on_after_a_file_that_is_no_zip_file_does_not_exist(tmp_path):
    (tmp_path / "ratings.dat").write_text(RATINGS)
    with pytest.raises(DataFileError, match="does not exist"):
        load(tmp_path / "ratings.dat" / "more", "ml-1m")
