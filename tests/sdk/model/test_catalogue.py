import os
import struct
import zlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr import errors
from lightfr.model.catalogue import Catalogue, require_item_id
from lightfr.model.catalogue_part import HEADER, keep_pages
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


def packed(numbers, bits):
    """Numbers of so many bits, the low bit first."""
    joined = sum(number << at * bits for at, number in enumerate(numbers))
    return joined.to_bytes((len(numbers) * bits + 7) // 8, "little")


def text_block(first, entries=(), end=b""):
    """A block of strings: the first id, and what each other shares with the one before and has behind it."""
    shared, further = bytes(n for n, _ in entries), bytes(len(rest) for _, rest in entries)
    content = shared + further + b"".join(rest for _, rest in entries) + end
    return bytes([len(first)]) + first + (zlib.compress(content) if content else b"")


def part(kind, m, blocks, firsts=(), numbers=None, offsets=None):
    """A file of at most one group whose numbers are by default the positions, whatever is in it."""
    ends = offsets or [sum(map(len, blocks[:at])) for at in range(len(blocks) + 1)]
    directory = struct.pack(f"<{len(ends)}I{len(firsts)}q", *ends, *firsts)
    packed_numbers = packed(range(m), (m - 1).bit_length()) if numbers is None else numbers
    return HEADER.pack(b"LFRC", 2, kind, 0, m) + directory + b"".join(blocks) + packed_numbers


def answers(path, ids):
    """All answers of a catalogue for these ids; errors of the catalogue's own kind stand for themselves."""

    def answer(question, argument):
        try:
            return question(argument)
        except errors.ArtifactFileError:
            return errors.ArtifactFileError

    with Catalogue.open([path]) as catalogue:
        found = [(item_id, answer(catalogue.index_of, item_id)) for item_id in ids]
        return found, [answer(catalogue.id_of, index) for index in range(min(catalogue.n_items, 10))]


@settings(max_examples=60)
@given(ids=ID_LISTS, cuts=st.lists(st.integers(0, 200), max_size=3), other=st.one_of(INTEGERS, STRINGS))
def test_a_catalogue_answers_as_a_dictionary_does_however_it_is_cut_into_parts(folder, ids, cuts, other):
    bounds = sorted({0, len(ids), *(cut for cut in cuts if cut < len(ids))})
    paths = [folder / f"{first}.ids" for first in bounds[:-1]]
    for path, (first, beyond) in zip(paths, pairwise(bounds), strict=True):
        write_catalogue(path, ids[first:beyond])
    with Catalogue.open(paths, n_items=len(ids)) as catalogue:
        catalogue.check()
        assert [catalogue.id_of(index) for index in range(len(ids))] == ids
        assert [catalogue.index_of(item_id) for item_id in ids] == list(range(len(ids)))
        assert catalogue.index_of(other) == {item_id: index for index, item_id in enumerate(ids)}.get(other)
        assert (len(catalogue), catalogue.n_items) == (len(ids), len(ids))
        assert catalogue.kind == ("str" if isinstance(ids[0], str) else "int")


def many_ids(kind, m):
    """Ids whose gaps need every size in some block, or strings that share much and little."""
    shuffled = np.random.default_rng(1).permutation(m)
    if kind == "str":
        return [f"{'item' * (int(i) % 7)} {i * 7919}é" for i in shuffled]
    steps = np.repeat([1, 200, 60_000, 2**31, 2**44], -(-m // 5))[:m]
    return (np.cumsum(steps) - 2**50)[shuffled].tolist()


@pytest.mark.parametrize(("kind", "m"), [("int", 256), ("int", 257), ("int", 8192), ("int", 70_001), ("str", 8449)])
def test_items_are_found_over_many_blocks_and_groups(tmp_path, kind, m):
    """A search has its mistakes at the ends of blocks, groups and files. 70,001 numbers do not fit 16 bits."""
    ids = many_ids(kind, m)
    write_catalogue(tmp_path / "items.ids", ids)
    order = sorted(range(m), key=lambda index: ids[index].encode() if kind == "str" else ids[index])
    index_of = {item_id: index for index, item_id in enumerate(ids)}
    edges = {p for at in (0, 256, 8192, 16_384, m) for p in range(at - 2, at + 2) if 0 <= p < m}
    with Catalogue.open([tmp_path / "items.ids"], m) as catalogue:
        catalogue.check()
        for index in {order[position] for position in edges} | set(range(0, m, 1 + m // 150)) | {m - 1}:
            assert catalogue.id_of(index) == ids[index]
            assert catalogue.index_of(ids[index]) == index
            behind = ids[index] + (" " if kind == "str" else 1)
            assert catalogue.index_of(behind) == index_of.get(behind)


@pytest.mark.parametrize("gap", [0, 1, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**64 - 2])
def test_every_gap_has_room(tmp_path, gap):
    ids = [-(2**63), -(2**63) + gap + 1]
    write_catalogue(tmp_path / "items.ids", ids)
    with Catalogue.open([tmp_path / "items.ids"]) as catalogue:
        assert [catalogue.id_of(index) for index in (0, 1)] == ids
        assert catalogue.index_of(ids[1]) == 1


def test_every_truncation_and_every_extension_is_refused(small):
    path, _ = small
    whole = path.read_bytes()
    for changed in [whole[:size] for size in range(len(whole))] + [whole + b"\0"]:
        path.write_bytes(changed)
        with pytest.raises(errors.ArtifactFileError):
            Catalogue.open([path])


def test_a_flipped_bit_gives_a_typed_error_or_an_answer_that_the_file_bears_out(small):
    path, ids = small
    whole = path.read_bytes()
    numbers_begin = 8 * (len(whole) - (3 * len(ids) + 7) // 8)
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            found, by_index = answers(path, ids)
        except errors.ArtifactFileError:
            continue
        assert bit >= 8 * HEADER.size, "a changed header was accepted"
        for item_id, index in found:
            if index is not None and index is not errors.ArtifactFileError:
                assert bit >= numbers_begin or by_index[index] == item_id


@settings(max_examples=300)
@given(data=st.data(), kind=st.sampled_from([1, 2]), m=st.integers(1, 6))
def test_any_bytes_behind_a_right_header_give_answers_or_typed_errors(folder, data, kind, m):
    path = folder / "fuzzed.ids"
    ids = data.draw(st.binary(max_size=12))
    if kind == 2 and data.draw(st.booleans()):
        ids = b"\1a" + zlib.compress(ids)
    first = data.draw(st.lists(INTEGERS, min_size=1, max_size=1)) if kind == 1 else []
    numbers = data.draw(st.binary(min_size=(m * 3 + 7) // 8, max_size=(m * 3 + 7) // 8))
    path.write_bytes(part(kind, m, [ids], first, numbers[: (m * (m - 1).bit_length() + 7) // 8]))
    found, _ = answers(path, ["a", "\0", "zz", 0, -5, 2**62])
    assert all(index in (None, errors.ArtifactFileError, *range(m)) for _, index in found)


BAD_DIRECTORIES = {
    "an offset falls": (part(2, 513, [b""] * 3, numbers=bytes(642), offsets=[0, 9, 3, 0]), "above the next"),
    "an offset is behind the ids": (part(2, 300, [b""] * 2, numbers=bytes(338), offsets=[0, 9, 0]), "above the next"),
    "the first offset is not 0": (part(2, 1, [b"xx", b""], offsets=[1, 2]), "begin where the ids do"),
    "a block is too long": (part(2, 1, [bytes(2**17 + 1)]), "at most 131072"),
    "first ids fall": (part(1, 257, [bytes(0)] * 2, [5, 4], numbers=bytes(290)), "do not ascend"),
    "first ids are equal": (part(1, 257, [bytes(0)] * 2, [5, 5], numbers=bytes(290)), "do not ascend"),
    "a bit behind the last number": (part(1, 3, [b""], [5], numbers=b"\x64"), "behind the last number"),
}


@pytest.mark.parametrize(("content", "reason"), BAD_DIRECTORIES.values(), ids=BAD_DIRECTORIES)
def test_a_check_goes_through_the_directory(tmp_path, content, reason):
    path = tmp_path / "items.ids"
    path.write_bytes(content)
    with Catalogue.open([path]) as catalogue, pytest.raises(errors.ArtifactFileError, match=reason):
        catalogue.check()


GAPS_OF_ONE = bytes(255)
BAD_ENTRIES = {
    "gaps of 3 bytes": (part(1, 2, [bytes(3)], [5]), "none of the sizes"),
    "gaps of no whole size": (part(1, 3, [bytes(3)], [5]), "none of the sizes"),
    "a gap for the only id": (part(1, 1, [b"\0"], [5]), "none of the sizes"),
    "ids beyond 64 bits": (part(1, 2, [b"\0"], [2**63 - 1]), "beyond 64 bits"),
    "ids that reach the next block": (part(1, 257, [GAPS_OF_ONE, b""], [5, 260]), "reach the next"),
    "an offset falls": (part(2, 2, [b"\1a"], offsets=[9, 2], numbers=b"\2"), "above the next"),
    "an offset is behind the ids": (part(2, 300, [b""] * 2, offsets=[0, 9, 0]), "behind the ids"),
    "a block that is too long": (part(2, 1, [b"\1a" + bytes(2**17)]), "at most 131072"),
    "an empty block": (part(2, 1, [b""]), "1 to 255 bytes inside"),
    "an empty first id": (part(2, 1, [b"\0"]), "1 to 255 bytes inside"),
    "a first id longer than its block": (part(2, 1, [b"\2a"]), "1 to 255 bytes inside"),
    "bytes behind the only id": (part(2, 1, [b"\1a\0"]), "follow the only id"),
    "a stream that is no zlib": (part(2, 2, [b"\1ano zlib"]), "the stream of a block"),
    "a stream without its end": (part(2, 2, [text_block(b"a", [(0, b"b")])[:-1]]), "do not fit its stream"),
    "bytes behind a stream": (part(2, 2, [text_block(b"a", [(0, b"b")]) + b"\0"]), "do not fit its stream"),
    "lengths beyond the content": (part(2, 2, [text_block(b"a", end=b"\0\2b")]), "do not fit its stream"),
    "lengths before its end": (part(2, 2, [text_block(b"a", [(0, b"b")], b"c")]), "do not fit its stream"),
    "a stream shorter than its lengths": (part(2, 2, [text_block(b"a", end=b"\0")]), "do not fit its stream"),
    "too much shared": (part(2, 2, [text_block(b"a", [(2, b"b")])]), "shares more"),
    "an id of 256 bytes": (part(2, 2, [text_block(b"a", [(1, b"b" * 255)])]), "more than 255"),
    "ids that fall": (part(2, 2, [text_block(b"b", [(0, b"a")])]), "do not ascend"),
    "an id twice": (part(2, 2, [text_block(b"b", [(1, b"")])]), "do not ascend"),
    "an id that is no UTF-8": (part(2, 2, [text_block(b"a", [(0, b"\xc3\x28")])]), "not UTF-8"),
    "a number that nobody has": (part(1, 3, [b""], [5], numbers=b"\x04"), "not in its group"),
    "a bit behind the last number": (part(1, 3, [b""], [5], numbers=b"\x64"), "behind the last number"),
}


@pytest.mark.parametrize(("content", "reason"), BAD_ENTRIES.values(), ids=BAD_ENTRIES)
def test_corrupt_entries_are_refused_when_met(tmp_path, content, reason):
    path = tmp_path / "items.ids"
    path.write_bytes(content)
    with Catalogue.open([path]) as catalogue, pytest.raises(errors.ArtifactFileError, match=reason) as caught:
        _ = [catalogue.id_of(index) for index in (0, catalogue.n_items - 1)]
    # The bytes of an id are in no error that this one carries along.
    assert not isinstance(caught.value.__context__, UnicodeError)


@pytest.mark.parametrize("numbers", [b"\x0c", b"\x3c"])
def test_a_number_beyond_the_items_is_refused_when_met(tmp_path, numbers):
    path = tmp_path / "items.ids"
    path.write_bytes(part(1, 3, [b""], [5], numbers))
    with Catalogue.open([path]) as catalogue, pytest.raises(errors.ArtifactFileError, match="not below its 3 items"):
        catalogue.index_of(6)


def test_a_group_beyond_the_positions_is_refused_when_met(tmp_path):
    path, m = tmp_path / "items.ids", 2 * 8192 + 1
    write_catalogue(path, range(m))
    content = bytearray(path.read_bytes())
    content[-1] |= 3
    path.write_bytes(content)
    with Catalogue.open([path]) as catalogue, pytest.raises(errors.ArtifactFileError, match="not in its group"):
        catalogue.id_of(m - 1)


def test_a_number_is_not_found_across_two_others(tmp_path):
    """The bytes of 256 stand between 0 and 1 too, and its low byte in 0."""
    path = tmp_path / "items.ids"
    ids = [*range(10, 300), 0, 1]
    write_catalogue(path, ids)
    with Catalogue.open([path]) as catalogue:
        assert [catalogue.id_of(index) for index in range(len(ids))] == ids


@pytest.mark.parametrize("m", [0, 2**32, 2**64 - 1])
def test_an_impossible_number_of_items_is_refused(tmp_path, m):
    path = tmp_path / "items.ids"
    path.write_bytes(HEADER.pack(b"LFRC", 2, 1, 0, m))
    with pytest.raises(errors.ArtifactFileError, match="expected 1 to 4294967295"):
        Catalogue.open([path])


def test_parts_of_another_number_of_items_are_refused(small):
    path, ids = small
    with pytest.raises(errors.ArtifactFileError, match=f"has {2 * len(ids)} items, expected 9"):
        Catalogue.open([path, path], n_items=9)


def test_parts_of_different_kinds_are_refused(tmp_path):
    for name, ids in SMALL.items():
        write_catalogue(tmp_path / name, ids)
    with pytest.raises(errors.ArtifactFileError, match="one catalogue file has integers, another has strings"):
        Catalogue.open([tmp_path / name for name in SMALL])


def test_missing_and_empty_files_are_refused_without_the_folder(tmp_path):
    with pytest.raises(errors.ArtifactFileError, match=r"cannot open catalogue file 'absent\.ids': No such file"):
        Catalogue.open([tmp_path / "absent.ids"])
    (tmp_path / "empty.ids").touch()
    with pytest.raises(errors.ArtifactFileError, match="has 0 bytes, shorter than its header"):
        Catalogue.open([tmp_path / "empty.ids"])


def test_opening_refusing_and_closing_leave_no_descriptor(small):
    path, _ = small
    before = len(os.listdir("/proc/self/fd"))
    Catalogue.open([path, path]).close()
    for paths in ([path], [path, path.with_name("absent")]):
        with pytest.raises(errors.ArtifactFileError):
            Catalogue.open(paths, n_items=9)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_shrinks_while_it_is_open_is_an_error(small):
    path, ids = small
    with Catalogue.open([path]) as catalogue:
        os.truncate(path, 0)
        for look_up in (lambda: catalogue.index_of(ids[0]), lambda: catalogue.id_of(0), catalogue.check):
            with pytest.raises(errors.ArtifactFileError, match="shrank to 0 bytes"):
                look_up()


def test_a_page_that_shrinks_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(4500))
    with path.open("rb") as file:
        assert len(keep_pages()(file, 4500, 1)) == 4500 - 4096
        with pytest.raises(errors.ArtifactFileError, match="shrank to 4500 bytes"):
            keep_pages()(file, 5000, 1)


def test_a_closed_catalogue_refuses_look_ups_and_closes_twice(small):
    path, ids = small
    catalogue = Catalogue.open([path])
    catalogue.close()
    catalogue.close()
    for look_up in (lambda: catalogue.index_of(ids[0]), lambda: catalogue.id_of(0)):
        with pytest.raises(errors.LightFRError, match="closed"):
            look_up()


def test_ids_of_the_other_kind_are_absent_and_indices_outside_refused(small):
    path, ids = small
    with Catalogue.open([path]) as catalogue:
        assert catalogue.index_of("7" if isinstance(ids[0], int) else 7) is None
        for item_index in (-1, len(ids)):
            with pytest.raises(errors.ItemIndexError):
                catalogue.id_of(item_index)


def test_a_catalogue_shows_counts_only(small):
    path, ids = small
    with Catalogue.open([path]) as catalogue:
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
    with Catalogue.open([small[0]]) as catalogue, pytest.raises(errors.ItemIdError):
        catalogue.index_of(item_id)
