import string
from random import Random

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


def test_more_bytes_than_offsets_can_say_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("lightfr_harness.server.artifacts.MAX_IDS_BYTES", 4)
    write_catalogue(tmp_path / "items.ids", ["abc"])
    with pytest.raises(errors.OutOfRangeError, match="bytes of all item ids is 5"):
        write_catalogue(tmp_path / "more.ids", ["abcd"])


def test_a_new_catalogue_replaces_the_old_one_whole_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "items.ids"
    write_catalogue(path, [1, 2])
    before = path.read_bytes()
    with path.open("rb") as old:
        write_catalogue(path, [1, 2, 3])
        assert old.read() == before
    assert path.read_bytes() != before
    assert list(tmp_path.iterdir()) == [path]


def random_ids(kind, m):
    random = Random(1)
    if kind == "scattered integers":
        return random.sample(range(4295 * m), m)
    if kind == "dense integers":
        return random.sample(range(m), m)
    return ["".join(random.choices(string.ascii_letters + string.digits + "-_", k=12)) for _ in range(m)]


@pytest.mark.parametrize(
    ("kind", "most_bytes"), [("scattered integers", 4.7), ("dense integers", 2.7), ("strings of 12 characters", 11)]
)
def test_an_id_costs_few_bytes(tmp_path, kind, most_bytes):
    """As docs/artifacts.md says of a million, less 6 bits for the place of an item among 10 times as few."""
    write_catalogue(tmp_path / "items.ids", random_ids(kind, 100_000))
    assert (tmp_path / "items.ids").stat().st_size <= most_bytes * 100_000


def test_a_folder_that_is_not_there_is_a_typed_error(tmp_path):
    with pytest.raises(errors.ArtifactFileError, match=r"cannot write catalogue file 'items\.ids'"):
        write_catalogue(tmp_path / "absent" / "items.ids", [1])
