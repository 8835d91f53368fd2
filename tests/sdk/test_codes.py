import gc
import os
from pathlib import Path

import pytest

from lightfr import ItemCodes, ItemSet, UserCode, errors, rank, recommend


@pytest.fixture
def codes_file(tmp_path):
    path = tmp_path / "items.codes"
    path.write_bytes(bytes(range(80)))
    return path


def test_a_mapped_file_and_its_bytes_rank_the_same(codes_file):
    user = UserCode(b"\x0f" * 8)
    with ItemCodes.open(codes_file, 64, n_items=10) as mapped:
        assert rank(user, mapped, 10) == rank(user, ItemCodes(codes_file.read_bytes(), 64), 10)
        assert mapped.row(1) == bytes(range(8, 16))
        assert (len(mapped), mapped.code_bits, mapped.code_bytes) == (10, 64, 8)


def test_an_empty_file_is_an_empty_catalogue(tmp_path):
    path = tmp_path / "none.codes"
    path.touch()
    with ItemCodes.open(path, 64) as codes:
        assert rank(UserCode.random(64), codes, 5) == []


def test_a_missing_file_is_named_without_its_folder(tmp_path):
    with pytest.raises(errors.ArtifactFileError, match=r"cannot open codes file 'absent\.codes'"):
        ItemCodes.open(tmp_path / "absent.codes", 64)


def test_a_file_that_holds_no_whole_rows_is_refused_with_the_numbers(codes_file):
    codes_file.write_bytes(bytes(81))
    with pytest.raises(errors.ArtifactFileError) as caught:
        ItemCodes.open(codes_file, 64)
    assert (caught.value.actual_bytes, caught.value.expected_bytes) == (81, 80)


def test_a_file_with_another_number_of_items_is_refused(codes_file):
    with pytest.raises(errors.ArtifactFileError, match="has 80 bytes, expected 88"):
        ItemCodes.open(codes_file, 64, n_items=11)


def test_a_refused_file_leaves_no_descriptor_open(codes_file):
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(errors.ArtifactFileError):
        ItemCodes.open(codes_file, 64, n_items=11)
    assert len(os.listdir("/proc/self/fd")) == before


def test_codes_that_nobody_closed_leave_no_descriptor_open(codes_file):
    before = len(os.listdir("/proc/self/fd"))
    assert len(ItemCodes.open(codes_file, 64)) == 10
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_shrinks_while_mapped_is_an_error_not_a_crash(codes_file):
    with ItemCodes.open(codes_file, 64) as codes:
        os.truncate(codes_file, 40)
        with pytest.raises(errors.ArtifactFileError, match="shrank to 40 bytes, expected 80"):
            rank(UserCode.random(64), codes, 1)


def test_a_file_that_shrinks_while_it_is_opened_is_an_error_of_the_file(codes_file, monkeypatch):
    look = os.fstat

    def look_and_shrink(file):
        seen = look(file)
        os.truncate(codes_file, 40)
        return seen

    monkeypatch.setattr(os, "fstat", look_and_shrink)
    with pytest.raises(errors.ArtifactFileError, match="no longer has the 80 bytes"):
        ItemCodes.open(codes_file, 64)


def _mapped_file_pages():
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    # A temporary folder may be in memory itself.
    return sum(int(status[kind].split()[0]) for kind in ("RssFile", "RssShmem")) // 4


def test_pages_that_a_search_has_read_can_be_given_back_and_are_read_again(tmp_path):
    path = tmp_path / "items.codes"
    path.write_bytes(os.urandom(8 * 2**20))
    user = UserCode.random(64)
    with ItemCodes.open(path, 64) as codes:
        ranked = rank(user, codes, 10)
        read = _mapped_file_pages()
        codes.release_pages()
        assert read - _mapped_file_pages() > 1500
        assert rank(user, codes, 10) == ranked


def test_closed_codes_refuse_to_be_used_and_close_twice(codes_file):
    codes = ItemCodes.open(codes_file, 64)
    codes.close()
    codes.close()
    with pytest.raises(errors.LightFRError, match="closed"):
        rank(UserCode.random(64), codes, 1)
    with pytest.raises(errors.LightFRError, match="closed"):
        codes.row(0)


def test_codes_that_are_closed_while_a_search_reads_them_stay_in_memory_until_it_ends(codes_file):
    codes = ItemCodes.open(codes_file, 64)
    of_a_search = codes.kernel_pointer()
    codes.close()
    assert str(codes_file) in Path("/proc/self/maps").read_text()
    assert bytes(of_a_search.pointer[0:80]) == bytes(range(80))
    del of_a_search
    assert str(codes_file) not in Path("/proc/self/maps").read_text()


def test_a_buffer_is_its_owners_again_once_the_codes_are_closed():
    buffer = bytearray(80)
    codes = ItemCodes(buffer, 64)
    with pytest.raises(BufferError):
        buffer.clear()
    codes.close()
    buffer.clear()


def test_closed_codes_are_still_those_of_as_many_items_and_bits(codes_file):
    codes = ItemCodes.open(codes_file, 64)
    codes.close()
    assert (codes.n_items, codes.n_rows, codes.code_bits) == (10, 10, 64)
    assert repr(codes) == "<ItemCodes of 10 items, 64 bits>"
    with pytest.raises(errors.LightFRError, match="closed"):
        recommend(UserCode.random(64), codes, 1, rated=[3])


def test_codes_in_memory_have_no_pages_to_give_back_and_close_too():
    codes = ItemCodes(bytes(80), 64)
    codes.release_pages()
    assert repr(codes) == "<ItemCodes of 10 items, 64 bits>"
    assert codes.row(9) == bytes(8)
    codes.close()
    with pytest.raises(errors.LightFRError, match="closed"):
        codes.row(9)


@pytest.mark.parametrize("item_index", [-1, 10])
def test_a_row_outside_the_matrix_is_refused_without_naming_it(item_index):
    with pytest.raises(errors.ItemIndexError) as caught:
        ItemCodes(bytes(80), 64).row(item_index)
    assert caught.value.n_items == 10
    assert str(item_index) not in str(caught.value).replace("10", "")


@pytest.mark.parametrize("n_bytes", [0, 129])
def test_a_user_code_of_an_impossible_length_is_refused(n_bytes):
    with pytest.raises(errors.CodeLengthError):
        UserCode(bytes(n_bytes))


def test_a_user_code_shows_its_length_and_nothing_else():
    code = UserCode(b"\xde\xad\xbe\xef" * 2)
    assert repr(code) == str(code) == "<UserCode of 64 bits>"
    assert code == UserCode(code.reveal())
    assert code != UserCode(bytes(8))
    assert hash(code) == hash(UserCode(code.reveal()))


def test_random_user_codes_differ():
    assert UserCode.random(128) != UserCode.random(128)


def test_an_item_set_takes_and_forgets_members_and_hides_them():
    members = ItemSet(20, [3, 17])
    members.discard(3)
    members.discard(99)
    assert members.bitmap(20) == bytes([0, 0, 2])
    assert repr(members) == "<ItemSet over 20 items>"
    with pytest.raises(errors.ItemIndexError):
        members.add(20)


def test_what_lies_outside_the_catalogue_is_in_no_set():
    every = ItemSet(10, range(10))
    assert [i for i in range(-20, 30) if i in every] == list(range(10))


def test_an_item_set_of_another_catalogue_is_refused():
    with pytest.raises(errors.BufferSizeError):
        rank(UserCode.random(64), ItemCodes(bytes(80), 64), 1, exclude=ItemSet(100))


def test_public_errors_have_one_root_and_their_natural_builtin():
    for name, error in vars(errors).items():
        if isinstance(error, type) and issubclass(error, Exception):
            assert issubclass(error, errors.LightFRError), name
    assert issubclass(errors.CodeLengthError, ValueError)
    assert issubclass(errors.ItemIndexError, IndexError)
    assert issubclass(errors.ArtifactFileError, OSError)


def test_a_set_may_begin_with_a_bitmap_which_it_copies():
    bitmap = b"\x05\x01"
    items = ItemSet(9, [3], bitmap=bitmap)
    assert [i for i in range(9) if i in items] == [0, 2, 3, 8]
    assert (len(items), len(ItemSet(9)), bitmap) == (4, 0, b"\x05\x01")
    with pytest.raises(errors.BufferSizeError):
        ItemSet(9, bitmap=b"\x05")


def test_a_set_counts_no_bits_behind_its_last_item_for_it_takes_none():
    assert len(ItemSet(9, bitmap=b"\xff\x01")) == 9
    with pytest.raises(errors.InvalidInputError, match="a bit behind the last item"):
        ItemSet(9, bitmap=b"\x00\x02")
