"""MATLAB files: Ciao and Douban, in the shapes found in public."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

from lightfr_harness.data import load
from lightfr_harness.data.errors import DataFileError
from lightfr_harness.errors import MissingPackageError

scipy_io = pytest.importorskip("scipy.io")
sparse = pytest.importorskip("scipy.sparse")

CIAO = np.array([[1, 20, 3, 4, 5], [2, 20, 3, 1, 0], [1, 9, 6, 5, 2]], dtype=np.int32)


def save(folder, **variables):
    path = folder / "data.mat"
    scipy_io.savemat(path, variables)
    return path


def test_ciao_takes_user_item_and_rating_and_has_no_times_in_five_columns(tmp_path):
    ratings = load(save(tmp_path, rating=CIAO), "ciao")
    assert ratings.rating.tolist() == [4, 1, 5]
    assert (ratings.user_ids, ratings.item_ids) == (["1", "2"], ["20", "9"])
    assert not ratings.has_times
    assert (ratings.rating_min, ratings.rating_max) == (1, 5)


def test_zeros_of_ciao_are_skipped_and_counted_and_of_repeats_the_latest_stands(tmp_path):
    rows = [[1, 20, 3, 4, 5, 70], [1, 9, 3, 0, 5, 71], [1, 20, 3, 2, 5, 60], [2, 20, 3, 5, 5, 1], [2, 20, 3, 0, 5, 9]]
    ratings = load(save(tmp_path, rating=np.array(rows)), "ciao")
    assert (ratings.n_zeros, ratings.n_duplicates) == (2, 1)
    assert (ratings.rating.tolist(), ratings.timestamp.tolist()) == ([4, 5], [70, 1])
    assert ratings.item_ids == ["20"]


def test_a_sparse_table_that_claims_a_huge_shape_is_refused_before_it_is_written_out(tmp_path):
    huge = sparse.csc_matrix(([1.0], ([0], [0])), shape=(2**20, 2**20))
    with pytest.raises(DataFileError, match="5 or 6 columns"):
        load(save(tmp_path, rating=huge), "ciao")


TEXTS = {
    "blanks": "7 20 3\n8 20 5\n7  9 1\n",
    "tabs": "7\t20\t3\r\n8\t20\t5\r\n7\t9\t1",
    "commas": "\ufeff7,20,3\n8,20,5.0\n7,9,1\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_douban_is_read_as_text_too(tmp_path, text):
    path = tmp_path / "ratings.txt"
    path.write_bytes(text.encode())
    ratings = load(path, "douban")
    assert (ratings.rating.tolist(), ratings.user_ids, ratings.has_times) == ([3, 5, 1], ["7", "8"], False)
    path.write_text("7 20 3 881\n8 20 5 880\n")
    assert load(path, "douban").timestamp.tolist() == [881, 880]


def test_ciao_takes_the_time_where_there_is_one(tmp_path):
    timed = np.column_stack((CIAO, [30, 20, 10]))
    assert load(save(tmp_path, rating=timed), "ciao").timestamp.tolist() == [30, 20, 10]


def test_douban_observes_the_marked_cells_only(tmp_path):
    values = np.array([[5, 0, 3], [0, 4, 2]], dtype=float)
    train, test = np.array([[1, 0, 0], [0, 1, 0]]), np.array([[0, 0, 1], [0, 0, 0]])
    ratings = load(save(tmp_path, M=values, Otraining=train, Otest=test), "douban")
    assert ratings.rating.tolist() == [5, 3, 4]
    assert ratings.user_ids == ["1", "2"]
    assert sorted(ratings.item_ids) == ["1", "2", "3"]


def test_douban_reads_a_sparse_matrix_alone(tmp_path):
    values = sparse.csc_matrix(np.array([[5.0, 0, 3], [0, 4, 0]]))
    assert load(save(tmp_path, M=values), "douban").rating.tolist() == [5, 3, 4]


def test_douban_reads_a_table(tmp_path):
    ratings = load(save(tmp_path, ratings=np.array([[1, 2, 3, 99], [1, 3, 4, 98]])), "douban")
    assert (ratings.rating.tolist(), ratings.timestamp.tolist()) == ([3, 4], [99, 98])


def test_a_file_of_matlab_7_3_is_read_through_h5py(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "data.mat"
    values, mask = np.array([[5.0, 0, 3], [0, 4, 2]]), sparse.csc_matrix([[1.0, 0, 1], [0, 1, 0]])
    with h5py.File(path, "w", userblock_size=512) as file:
        file["M"] = values.T
        group = file.create_group("Otraining")
        group.attrs["MATLAB_sparse"] = 2
        group["data"], group["ir"], group["jc"] = mask.data, mask.indices, mask.indptr
    banner = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    path.write_bytes(banner + path.read_bytes()[len(banner) :])
    assert load(path, "douban").rating.tolist() == [5, 3, 4]


def test_a_file_of_matlab_7_3_that_is_cut_short_is_refused(tmp_path):
    path = tmp_path / "data.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x00" * 400)
    with pytest.raises(DataFileError, match="not a sound MATLAB file"):
        load(path, "douban")


BROKEN = [
    ("ciao", {"other": CIAO}, "no matrix 'rating'; found: other"),
    ("ciao", {"rating": CIAO[:, :4]}, "5 or 6 columns"),
    ("ciao", {"rating": np.array([[1, 2, 3, 4, 5], [1, 2, 3, 6, 5]])}, "matrix row 2: the rating"),
    ("ciao", {"rating": np.array([[1, 2, 3, np.nan, 5]])}, "matrix row 1: the rating is NaN"),
    ("ciao", {"rating": np.array([[1.5, 2, 3, 4, 5]])}, "not a whole number"),
    ("ciao", {"rating": np.array([[1, 2, 3, 4, 5, np.inf]])}, "not finite"),
    ("ciao", {"rating": np.empty((0, 5))}, "no ratings"),
    ("ciao", {"rating": np.zeros((2, 5))}, "no ratings"),
    ("ciao", {"rating": np.array([[-1, 2, 3, 4, 5]])}, "not a whole number"),
    ("ciao", {"rating": np.array([[1, np.nan, 3, 4, 5]])}, "not a whole number"),
    ("ciao", {"rating": np.array([["a", 1, 2, 3, 4]], object)}, "plain numbers"),
    ("douban", {"rating": CIAO}, "3 or 4 columns"),
    ("douban", {"other": CIAO}, "no matrix 'rating'; found: other"),
    ("douban", {"M": np.ones((2, 2)), "Otraining": np.ones((2, 3))}, "'Otraining' has shape"),
    ("douban", {"M": np.zeros((2, 2)), "Otraining": np.ones((2, 2))}, "matrix row 1: the rating"),
]


@pytest.mark.parametrize(("format_name", "variables", "reason"), BROKEN)
def test_a_file_of_another_shape_is_reported_with_the_reason(tmp_path, format_name, variables, reason):
    with pytest.raises(DataFileError) as caught:
        load(save(tmp_path, **variables), format_name)
    assert reason in caught.value.reason


@pytest.mark.parametrize("content", [b"", b"not matlab", b"\x00" * 300])
def test_a_file_that_is_not_matlab_is_refused(tmp_path, content):
    path = tmp_path / "data.mat"
    path.write_bytes(content)
    with pytest.raises(DataFileError):
        load(path, "ciao")


def test_a_missing_package_is_named_with_the_command_that_brings_it(tmp_path, monkeypatch):
    def absent(module):
        raise ImportError(module)

    path = save(tmp_path, rating=CIAO)
    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingPackageError, match="pip install scipy"):
        load(path, "ciao")


def test_scipy_is_not_imported_before_a_matlab_file_is_read():
    code = "import sys, lightfr_harness.data; print('scipy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         env={"PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    assert run.stdout.strip() == "False"
