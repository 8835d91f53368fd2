"""A folder somebody else has split."""

import subprocess
import sys

import pytest

from lightfr_harness.data import load
from lightfr_harness.data.errors import (
    DataFileError,
    DatasetWarning,
    InvalidRatingsError,
)

HEADER = "user_id,item_id,ratings\n"
TRAIN = "u,a,4\nu,b,1\nv,b,2\n"
TEST = "u,c,3\nu,x,0\nu,y,0\nv,a,5\nv,x,0\n"


def folder_of(folder, *, train=TRAIN, test=TEST, val=None):
    (folder / "train.csv").write_text(HEADER + train)
    (folder / "test.csv").write_text(HEADER + test)
    if val is not None:
        (folder / "val.csv").write_text(HEADER + val)
    return folder


def groups(split, candidates):
    return {
        split.train.user_ids[user]: "".join(split.train.item_ids[item] for item in group)
        for user, group in zip(candidates.user_index, candidates.groups, strict=True)
    }


def test_the_first_line_of_each_user_is_the_positive_and_groups_may_differ(tmp_path):
    split = load(folder_of(tmp_path), "prepared")
    assert groups(split, split.test) == {"u": "cxy", "v": "ax"}
    assert split.validation is None
    assert (split.test_as_given, split.n_negatives_dropped) == (None, 0)
    assert split.held_out == "as the prepared split has it"
    assert split.train.rating.tolist() == [4, 1, 2]


def test_validation_is_read_where_there_is_one(tmp_path):
    split = load(folder_of(tmp_path, val="v,y,1\nv,a,0\n"), "prepared")
    assert groups(split, split.validation) == {"v": "ya"}


def test_items_unknown_to_train_get_rows_after_the_trained_ones(tmp_path):
    split = load(folder_of(tmp_path, val="v,y,1\nv,a,0\n"), "prepared")
    assert split.train.item_ids == ["b", "a", "c", "x", "y"]
    assert split.train.item_counts().tolist() == [2, 1, 0, 0, 0]


def test_a_user_unknown_to_train_is_evaluated_with_an_empty_history(tmp_path):
    split = load(folder_of(tmp_path, test=TEST + "w,a,1\nw,b,1\n"), "prepared")
    assert split.train.user_ids == ["u", "v", "w"]
    assert groups(split, split.test)["w"] == "ab"


def test_the_scale_is_declared_by_the_caller_or_else_spans_the_train_ratings(tmp_path):
    folder = folder_of(tmp_path)
    found, declared = load(folder, "prepared"), load(folder, "prepared", rating_min=0, rating_max=5)
    assert (found.train.rating_min, found.train.rating_max) == (1, 4)
    assert (declared.train.rating_min, declared.train.rating_max) == (0, 5)
    with pytest.raises(InvalidRatingsError, match="outside the declared range"):
        load(folder, "prepared", rating_max=3)


def test_ratings_that_are_all_equal_need_a_declared_scale(tmp_path):
    folder = folder_of(tmp_path, train="u,a,1\nu,b,1\nv,b,1\n")
    with pytest.raises(DataFileError, match=r"all ratings in train\.csv are equal.* Declare --rating-min and"):
        load(folder, "prepared")
    assert load(folder, "prepared", rating_min=0).train.levels().tolist() == [2520] * 3


@pytest.mark.parametrize("name", ["train.csv", "test.csv", "val.csv"])
def test_ids_in_another_encoding_are_refused_in_every_file(tmp_path, name):
    file = folder_of(tmp_path, val="v,y,1\nv,a,0\n") / name
    file.write_bytes(file.read_bytes().replace(b"v,", b"\xe9,"))
    with pytest.raises(DataFileError, match="an id is not UTF-8 text"):
        load(tmp_path, "prepared")


def test_repeated_train_ratings_count_once(tmp_path):
    split = load(folder_of(tmp_path, train=TRAIN + "u,a,2\n"), "prepared")
    assert (split.train.n_duplicates, len(split.train)) == (1, 3)


def test_repeated_negatives_stay_as_given(tmp_path):
    split = load(folder_of(tmp_path, test="u,c,3\nu,x,0\nu,x,0\n"), "prepared")
    assert groups(split, split.test) == {"u": "cxx"}


def test_own_items_and_the_positive_among_the_negatives_are_left_out_with_one_warning(tmp_path):
    test = "u,c,3\nu,x,0\nu,c,0\nu,a,0\nu,b,0\nv,a,5\nv,b,0\nv,x,0\nw,a,1\nw,b,0\n"
    with pytest.warns(DatasetWarning) as caught:
        split = load(folder_of(tmp_path, test=test, val="u,x,1\nu,a,0\nu,c,0\n"), "prepared")
    assert len(caught) == 1
    assert "4 test negatives of 2 users" in str(caught[0].message)
    assert groups(split, split.test) == {"u": "cx", "v": "ax", "w": "ab"}
    assert groups(split, split.test_as_given) == {"u": "cxcab", "v": "abx", "w": "ab"}
    assert groups(split, split.validation) == {"u": "xc"}
    assert split.n_negatives_dropped == 4


def test_the_warning_is_one_line_for_people_too(tmp_path):
    folder_of(tmp_path, test="u,c,3\nu,x,0\nu,a,0\n")
    code = f"from lightfr_harness.data import load; load({str(tmp_path)!r}, 'prepared')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(run.stderr.splitlines()) == 1


BROKEN = [
    ("train", "u,a,4\nu,b\n", 3, "2 fields where 3"),
    ("train", "u,a,4\nu,b,four\n", 3, "not a number"),
    ("train", "u,a,4\nu,b,nan\n", 3, "not a finite number"),
    ("train", "", None, "no ratings"),
    ("test", "u,c,3\nu,x,0\nv,a,1\nv,b,0\nu,y,0\nu,z,0\n", 6, "already listed"),
    ("test", "u,c,3\nv,a,1\nv,b,0\n", 2, "without negatives"),
    ("test", "v,a,3\nv,x,0\nu,c,3\nu,c,0\n", 4, "the positive itself"),
    ("test", "u,c,3\nu,a,0\nu,b,0\n", 2, "items that the user rated"),
    ("test", "u,c,3\nu,,0\n", 3, "id is empty"),
    ("test", "", None, "no candidates"),
    ("val", "u\n", 2, "1 fields where 3"),
]


@pytest.mark.parametrize(("name", "text", "line", "reason"), BROKEN)
def test_a_broken_file_is_reported_with_line_and_reason(tmp_path, name, text, line, reason):
    with pytest.raises(DataFileError, match=reason) as caught:
        load(folder_of(tmp_path, **{name: text}), "prepared")
    assert caught.value.path.name == f"{name}.csv"
    assert caught.value.line == line


def test_a_missing_column_is_reported(tmp_path):
    folder_of(tmp_path)
    (tmp_path / "test.csv").write_text("user_id,item_id\nu,a\n")
    with pytest.raises(DataFileError, match="no column ratings"):
        load(tmp_path, "prepared")


def test_a_missing_folder_and_a_missing_file_are_reported(tmp_path):
    with pytest.raises(DataFileError, match=r"does not exist\. Name the folder that holds train\.csv and test\.csv"):
        load(tmp_path / "absent", "prepared")
    (folder_of(tmp_path) / "test.csv").unlink()
    with pytest.raises(DataFileError, match=r"test\.csv: it does not exist"):
        load(tmp_path, "prepared")
    with pytest.raises(DataFileError, match="this is not a folder"):
        load(tmp_path / "train.csv", "prepared")
