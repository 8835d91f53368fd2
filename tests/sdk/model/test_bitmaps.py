import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightfr.errors import ArtifactFileError
from lightfr.model.bitmaps import read_bitmap
from lightfr_harness.server.artifacts import make_bitmap


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("bitmaps") / "bitmap"


@given(bits=st.lists(st.booleans(), min_size=1, max_size=200))
def test_a_bitmap_has_a_bit_for_each_item_the_low_one_first(path, bits):
    path.write_bytes(make_bitmap(np.array(bits)))
    bitmap = read_bitmap(path, len(bits))
    assert len(bitmap) == (len(bits) + 7) // 8
    assert [bool(bitmap[item // 8] >> item % 8 & 1) for item in range(len(bits))] == bits


GOOD = zlib.compress(b"\xff\x03")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "too short"),
        (GOOD[:-1], "no end"),
        (GOOD[:-1] + b"\0", "corrupt"),
        (b"no zlib at all", "corrupt"),
        (zlib.compress(b"\xff"), "too short"),
        (zlib.compress(b"\xff\x03\x00"), "too long"),
        (GOOD + b"\0", "bytes follow"),
        (zlib.compress(b"\xff\x07"), "a bit behind its 10 items is set"),
    ],
)
def test_a_file_that_is_no_bitmap_over_ten_items_is_refused(path, content, reason):
    path.write_bytes(GOOD)
    assert read_bitmap(path, 10) == b"\xff\x03"
    path.write_bytes(content)
    with pytest.raises(ArtifactFileError, match=f"bitmap file is corrupt: .*{reason}"):
        read_bitmap(path, 10)


def test_a_missing_file_is_named_without_its_folder(tmp_path):
    with pytest.raises(ArtifactFileError, match="cannot open bitmap file 'absent': No such file"):
        read_bitmap(tmp_path / "absent", 10)


def test_a_decompression_bomb_is_not_inflated(path):
    path.write_bytes(zlib.compress(bytes(50_000_000)))
    tracemalloc.start()
    with pytest.raises(ArtifactFileError, match="too long"):
        read_bitmap(path, 80)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 500_000


def test_a_bitmap_whose_open_items_are_a_prefix_is_tiny():
    assert len(make_bitmap(np.arange(105_096) < 4_363)) < 60
