import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr import errors
from lightfr.model.catalogue import HEADER, Catalogue, require_item_id
from lightfr_harness.server.artifacts import write_catalogue

INTEGERS = st.integers(-(2**63), 2**63 - 1)
STRINGS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
ID_LISTS = st.one_of(st.lists(INTEGERS, min_size=1, unique=True), st.lists(STRINGS, min_size=1, unique=True))
SMALL = {"int": [7, -1, 300, -(2**63)], "str": ["b", "é", "ab", "ab\0", "x" * 255]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("catalogues")


@pytest.fixture(params=["int", "str"])
def small(request, tmp_path):
    path = tmp_path / "items.ids"
    write_catalogue(path, SMALL[request.param])
    return path, SMALL[request.param]


def read_everything(path, ids):
    """All answers of a catalogue for these ids; errors of the catalogue's own kind stand for themselves."""

    def answer(question, argument):
        try:
            return question(argument)
        except errors.ArtifactFileError:
            return errors.ArtifactFileError

    with Catalogue.open(path) as catalogue:
        found = [(item_id, answer(catalogue.row_of, item_id)) for item_id in ids]
        return found, [answer(catalogue.id_of, row) for row in range(min(catalogue.n_items, 10))]


@given(ids=ID_LISTS, other=st.one_of(INTEGERS, STRINGS))
def test_a_catalogue_answers_as_a_dictionary_does(folder, ids, other):
    path = folder / "items.ids"
    write_catalogue(path, ids)
    rows = {item_id: row for row, item_id in enumerate(ids)}
    with Catalogue.open(path, n_items=len(ids)) as catalogue:
        assert [catalogue.id_of(row) for row in range(len(ids))] == ids
        assert [catalogue.row_of(item_id) for item_id in ids] == list(range(len(ids)))
        assert catalogue.row_of(other) == rows.get(other)
        assert (len(catalogue), catalogue.n_items) == (len(ids), len(ids))
        assert catalogue.kind == ("str" if isinstance(ids[0], str) else "int")


def test_every_truncation_and_every_extension_is_refused(small):
    path, _ = small
    whole = path.read_bytes()
    for changed in [whole[:size] for size in range(len(whole))] + [whole + b"\0"]:
        path.write_bytes(changed)
        with pytest.raises(errors.ArtifactFileError):
            Catalogue.open(path)


def test_a_flipped_bit_gives_a_typed_error_or_an_answer_that_the_file_bears_out(small):
    path, ids = small
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            found, by_row = read_everything(path, ids)
        except errors.ArtifactFileError:
            continue
        assert bit >= 8 * HEADER.size, "a changed header was accepted"
        for item_id, row in found:
            assert row in (None, errors.ArtifactFileError) or by_row[row] == item_id


@settings(max_examples=300)
@given(data=st.data(), kind=st.sampled_from([1, 2]), m=st.integers(1, 6))
def test_any_bytes_behind_a_right_header_give_answers_or_typed_errors(folder, data, kind, m):
    path = folder / "fuzzed.ids"
    words = st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 8))
    text = data.draw(st.binary(max_size=12))
    if kind == 1:
        body = struct.pack(f"<{m}q", *data.draw(st.lists(INTEGERS, min_size=m, max_size=m)))
    else:
        body = struct.pack(f"<{m + 1}I", *data.draw(st.lists(words, min_size=m, max_size=m)), len(text))
    order = struct.pack(f"<{m}I", *data.draw(st.lists(words, min_size=m, max_size=m)))
    path.write_bytes(HEADER.pack(b"LFRC", 1, kind, 0, m) + body + order + (text if kind == 2 else b""))
    found, by_row = read_everything(path, ["a", "\0", "zz", 0, -5, 2**62])
    for item_id, row in found:
        assert row in (None, errors.ArtifactFileError) or by_row[row] == item_id


@pytest.mark.parametrize(
    ("offsets", "order", "text", "reason"),
    [
        ((0, 2, 1, 3), (0, 1, 2), b"abc", "1 to 255 bytes"),
        ((0, 1, 9, 3), (0, 1, 2), b"abc", "1 to 255 bytes"),
        ((0, 1, 1, 3), (0, 1, 2), b"abc", "1 to 255 bytes"),
        ((0, 1, 257, 300), (0, 1, 2), b"a" * 300, "1 to 255 bytes"),
        ((0, 1, 2, 3), (0, 3, 2), b"abc", "beyond its 3 items"),
        ((0, 1, 2, 3), (0, 2**32 - 1, 2), b"abc", "beyond its 3 items"),
    ],
)
def test_corrupt_entries_are_refused_when_met(tmp_path, offsets, order, text, reason):
    path = tmp_path / "items.ids"
    path.write_bytes(HEADER.pack(b"LFRC", 1, 2, 0, 3) + struct.pack("<4I3I", *offsets, *order) + text)
    with Catalogue.open(path) as catalogue, pytest.raises(errors.ArtifactFileError, match=reason):
        catalogue.row_of("b")


def test_text_that_is_not_utf_8_is_refused_without_showing_it(tmp_path):
    path = tmp_path / "items.ids"
    path.write_bytes(HEADER.pack(b"LFRC", 1, 2, 0, 1) + struct.pack("<3I", 0, 2, 0) + b"\xc3\x28")
    with Catalogue.open(path) as catalogue, pytest.raises(errors.ArtifactFileError, match="not UTF-8") as caught:
        catalogue.id_of(0)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("m", [0, 2**32, 2**64 - 1])
def test_an_impossible_number_of_items_is_refused(tmp_path, m):
    path = tmp_path / "items.ids"
    path.write_bytes(HEADER.pack(b"LFRC", 1, 1, 0, m))
    with pytest.raises(errors.ArtifactFileError, match="expected 1 to 4294967295"):
        Catalogue.open(path)


def test_a_catalogue_of_another_number_of_items_is_refused(small):
    path, ids = small
    with pytest.raises(errors.ArtifactFileError, match=f"has {len(ids)} items, expected 9"):
        Catalogue.open(path, n_items=9)


def test_missing_and_empty_files_are_refused_without_the_folder(tmp_path):
    with pytest.raises(errors.ArtifactFileError, match=r"cannot open catalogue file 'absent\.ids': No such file"):
        Catalogue.open(tmp_path / "absent.ids")
    (tmp_path / "empty.ids").touch()
    with pytest.raises(errors.ArtifactFileError, match="has 0 bytes, shorter than its header"):
        Catalogue.open(tmp_path / "empty.ids")


def test_opening_refusing_and_closing_leave_no_descriptor(small):
    path, _ = small
    before = len(os.listdir("/proc/self/fd"))
    Catalogue.open(path).close()
    with pytest.raises(errors.ArtifactFileError):
        Catalogue.open(path, n_items=9)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_shrinks_while_it_is_open_is_an_error(small):
    path, ids = small
    with Catalogue.open(path) as catalogue:
        os.truncate(path, 0)
        for look_up in (lambda: catalogue.row_of(ids[0]), lambda: catalogue.id_of(0)):
            with pytest.raises(errors.ArtifactFileError, match="shrank to 0 bytes"):
                look_up()


def test_a_closed_catalogue_refuses_look_ups_and_closes_twice(small):
    path, ids = small
    catalogue = Catalogue.open(path)
    catalogue.close()
    catalogue.close()
    for look_up in (lambda: catalogue.row_of(ids[0]), lambda: catalogue.id_of(0)):
        with pytest.raises(errors.LightFRError, match="closed"):
            look_up()


def test_ids_of_the_other_kind_are_absent_and_rows_outside_refused(small):
    path, ids = small
    with Catalogue.open(path) as catalogue:
        assert catalogue.row_of("7" if isinstance(ids[0], int) else 7) is None
        for item_index in (-1, len(ids)):
            with pytest.raises(errors.ItemIndexError):
                catalogue.id_of(item_index)


def test_a_catalogue_shows_counts_only(small):
    path, ids = small
    with Catalogue.open(path) as catalogue:
        assert repr(catalogue) == f"<Catalogue of {len(ids)} items, ids are {catalogue.kind}>"


@pytest.mark.parametrize("item_id", [0, -(2**63), 2**63 - 1, "a", "\0", "é" * 127, "x" * 255])
def test_ids_inside_the_domain_are_accepted(item_id):
    require_item_id(item_id)


@pytest.mark.parametrize(
    "item_id", [True, 2**63, -(2**63) - 1, "", "secret\ud800", "é" * 128, "x" * 256, b"secret", None, 1.5]
)
def test_ids_outside_the_domain_are_refused_without_showing_them(small, item_id):
    with pytest.raises(errors.ItemIdError) as caught:
        require_item_id(item_id)
    assert caught.value.__context__ is None
    assert not item_id or str(item_id) not in str(caught.value)
    with Catalogue.open(small[0]) as catalogue, pytest.raises(errors.ItemIdError):
        catalogue.row_of(item_id)


def test_rows_are_found_in_a_catalogue_of_many_integers(tmp_path):
    """A binary search has its mistakes at the ends of the file."""
    ids = np.random.default_rng(1).permutation(30_000) * 3 - 40_000
    write_catalogue(tmp_path / "items.ids", ids.tolist())
    with Catalogue.open(tmp_path / "items.ids") as catalogue:
        for row in [0, 29_999, int(ids.argmin()), int(ids.argmax()), 77]:
            assert catalogue.row_of(int(ids[row])) == row
            assert catalogue.row_of(int(ids[row]) + 1) is None
