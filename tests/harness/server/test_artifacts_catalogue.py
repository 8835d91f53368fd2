import pytest

from lightfr import errors
from lightfr_harness.server.artifacts import write_catalogue


@pytest.mark.parametrize(
    ("ids", "error", "reason"),
    [
        ([], errors.OutOfRangeError, "number of item ids is 0, expected 1"),
        ([5, 6, 5, 5], errors.InvalidInputError, "2 item ids repeat"),
        (["secret", "b", "secret"], errors.InvalidInputError, "1 item ids repeat"),
        (["1", 1], errors.InvalidInputError, "mix strings and integers"),
        ([1, True], errors.ItemIdError, "an item id is neither"),
        ([1, 2**63], errors.ItemIdError, "an item id is neither"),
        (["a", ""], errors.ItemIdError, "an item id is neither"),
        (["a", "secret\udcff"], errors.ItemIdError, "an item id is neither"),
    ],
)
def test_ids_that_make_no_catalogue_are_refused_and_nothing_is_written(tmp_path, ids, error, reason):
    with pytest.raises(error, match=reason) as caught:
        write_catalogue(tmp_path / "items.ids", ids)
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_more_text_than_offsets_can_say_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("lightfr_harness.server.artifacts.MAX_TEXT_BYTES", 5)
    write_catalogue(tmp_path / "items.ids", ["abc", "de"])
    with pytest.raises(errors.OutOfRangeError, match="bytes of all item ids is 6"):
        write_catalogue(tmp_path / "more.ids", ["abc", "def"])


def test_a_new_catalogue_replaces_the_old_one_whole_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "items.ids"
    write_catalogue(path, [1, 2])
    with path.open("rb") as old:
        write_catalogue(path, [1, 2, 3])
        assert len(old.read()) == 16 + 2 * 12
    assert len(path.read_bytes()) == 16 + 3 * 12
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_a_typed_error(tmp_path):
    with pytest.raises(errors.ArtifactFileError, match=r"cannot write catalogue file 'items\.ids'"):
        write_catalogue(tmp_path / "absent" / "items.ids", [1])
