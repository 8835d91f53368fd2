import hashlib
import io
import os
import random
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightfr import errors
from lightfr.model.deltas import HEADER, apply_delta
from lightfr_harness.server.artifacts import make_delta

NO_LIMIT = 2**40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("deltas")


def apply(folder, delta, old, max_bytes=NO_LIMIT):
    """The new codes, after a look at the digest that came with them."""
    (folder / "delta").write_bytes(delta)
    (folder / "old").write_bytes(old)
    new_file = io.BytesIO()
    digest = apply_delta(folder / "delta", folder / "old", new_file, max_bytes=max_bytes)
    assert digest == hashlib.sha256(new_file.getvalue()).hexdigest()
    return new_file.getvalue()


def random_versions(seed, old_items, new_items, code_bytes, share):
    generator = np.random.default_rng(seed)
    old = generator.integers(0, 256, (old_items, code_bytes), dtype=np.uint8)
    new = np.zeros((new_items, code_bytes), np.uint8)
    new[:old_items] = old
    changed = generator.random(new_items) < share
    new[changed] = generator.integers(0, 256, (int(changed.sum()), code_bytes), dtype=np.uint8)
    return old, new


def pack(content, *, code_bits=8, old_items=4, new_items=6, changed=2, magic=b"LFRD", version=1, zeros=bytes(3)):
    header = HEADER.pack(magic, version, zeros, code_bits, old_items, new_items, changed)
    return header + zlib.compress(content)


GAPS = bytes([1, 2, 0, 0, 0, 0, 0, 0])  # rows 1 and 4
CONTENT = GAPS + b"\x0f\xf0"
OLD = b"\x01\x02\x03\x04"
NEW = b"\x01\x0d\x03\x04\xf0\x00"


@given(
    seed=st.integers(0, 2**32 - 1),
    old_items=st.integers(0, 400),
    added=st.integers(0, 300),
    code_bytes=st.sampled_from([1, 3, 8, 16, 128]),
    share=st.sampled_from([0.0, 0.01, 0.3, 1.0]),
)
def test_a_delta_turns_the_old_codes_into_the_new_ones(folder, seed, old_items, added, code_bytes, share):
    old, new = random_versions(seed, old_items, old_items + added, code_bytes, share)
    assert apply(folder, make_delta(old, new), old.tobytes(), max_bytes=new.size) == new.tobytes()


@pytest.mark.parametrize("share", [0.0001, 0.05, 1.0])
@pytest.mark.parametrize(("code_bytes", "old_items"), [(8, 200_000), (7, 150_001)])
def test_a_delta_over_many_chunks_turns_the_old_codes_into_the_new_ones(tmp_path, code_bytes, old_items, share):
    """Both ends of a chunk, chunks without a change, and gaps beyond one and two bytes are met."""
    old, new = random_versions(7, old_items, 200_000, code_bytes, share)
    assert apply(tmp_path, make_delta(old, new), old.tobytes()) == new.tobytes()


@pytest.mark.parametrize("row", [0, 255, 256, 65_536, 2**24 - 1, 2**24 + 5])
def test_every_byte_of_a_gap_counts(tmp_path, row):
    old, new = np.zeros((2**24 + 6, 1), np.uint8), np.zeros((2**24 + 6, 1), np.uint8)
    new[row] = 9
    assert apply(tmp_path, make_delta(old, new), old.tobytes()) == new.tobytes()


def test_the_small_delta_of_these_tests_is_a_right_one(tmp_path):
    assert apply(tmp_path, pack(CONTENT), OLD, max_bytes=6) == NEW


def test_a_stream_may_have_empty_blocks_and_blocks_that_are_not_compressed(tmp_path):
    header, stream = pack(CONTENT)[: HEADER.size], zlib.compress(CONTENT, 0)
    empty_blocks = b"\x00\x00\x00\xff\xff" * 20_000
    assert apply(tmp_path, header + stream[:2] + empty_blocks + stream[2:], OLD) == NEW


@pytest.mark.parametrize(
    ("delta", "reason"),
    [
        (b"", "has 0 bytes, no header"),
        (pack(CONTENT, magic=b"LFRC"), "format version"),
        (pack(CONTENT, version=2), "format version"),
        (pack(CONTENT, zeros=b"\0\0\1"), "format version"),
        (pack(CONTENT, code_bits=12), "cannot have 12 bits"),
        (pack(CONTENT, code_bits=0), "cannot have 0 bits"),
        (pack(CONTENT, code_bits=1032), "cannot have 1032 bits"),
        (pack(CONTENT, code_bits=16), "old codes of 8 bytes, these have 4"),
        (pack(CONTENT, old_items=5), "old codes of 5 bytes, these have 4"),
        (pack(CONTENT, new_items=3), "from 4 to 3"),
        (pack(CONTENT, new_items=2**32), "from 4 to 4294967296"),
        (pack(CONTENT, new_items=7), "would have 7 bytes, at most 6"),
        (pack(CONTENT, changed=7), "7 changed rows are more"),
        (pack(CONTENT, new_items=4), "beyond the 4 items"),
        (pack(b"\xff\xff" * 4 + b"\x0f\xf0"), "beyond the 6 items"),
        (pack(CONTENT[:-1]), "too short"),
        (pack(GAPS[:-1]), "too short"),
        (pack(CONTENT, changed=3), "too short"),
        (pack(CONTENT + b"\0"), "too long"),
        (pack(CONTENT, changed=0), "too long"),
        (pack(CONTENT) + b"\0", "bytes follow"),
        (pack(CONTENT)[:-1], "no end"),
        (pack(CONTENT)[:-1] + b"\0", "corrupt"),
        (pack(CONTENT)[: HEADER.size] + b"no zlib", "corrupt"),
    ],
)
def test_a_malformed_delta_is_refused_with_its_reason(tmp_path, delta, reason):
    with pytest.raises(errors.ArtifactError, match=reason):
        apply(tmp_path, delta, OLD, max_bytes=6)


def test_every_truncation_is_refused(tmp_path):
    delta = pack(CONTENT)
    for size in range(len(delta)):
        with pytest.raises(errors.ArtifactError, match="delta refused"):
            apply(tmp_path, delta[:size], OLD)


def test_a_flipped_bit_is_refused_or_harmless(tmp_path):
    old, new = random_versions(3, 20, 25, 8, 0.5)
    delta = make_delta(old, new)
    refused = 0
    for bit in range(8 * len(delta)):
        changed = bytearray(delta)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            assert apply(tmp_path, bytes(changed), old.tobytes(), max_bytes=new.size) == new.tobytes()
        except errors.ArtifactError:
            refused += 1
    assert refused > 0.98 * 8 * len(delta)


def test_a_decompression_bomb_is_not_inflated(tmp_path):
    (tmp_path / "delta").write_bytes(pack(CONTENT + bytes(50_000_000)))
    (tmp_path / "old").write_bytes(OLD)
    tracemalloc.start()
    with pytest.raises(errors.ArtifactError, match="too long"):
        apply_delta(tmp_path / "delta", tmp_path / "old", io.BytesIO(), max_bytes=6)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 500_000


def test_applying_takes_half_a_mib_and_four_bytes_a_changed_row(tmp_path):
    old, new = random_versions(5, 200_000, 200_000, 8, 0.2)
    (tmp_path / "delta").write_bytes(make_delta(old, new))
    old.tofile(tmp_path / "old")
    with (tmp_path / "new").open("wb") as new_file:
        tracemalloc.start()
        apply_delta(tmp_path / "delta", tmp_path / "old", new_file, max_bytes=new.size)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak_bytes < 512 * 1024 + 4 * 40_500


def test_missing_files_are_named_without_their_folder(tmp_path):
    (tmp_path / "delta").write_bytes(pack(CONTENT))
    with pytest.raises(errors.ArtifactFileError, match="cannot open codes file 'old': No such file"):
        apply_delta(tmp_path / "delta", tmp_path / "old", io.BytesIO(), max_bytes=6)
    with pytest.raises(errors.ArtifactFileError, match="cannot open delta file 'absent': No such file"):
        apply_delta(tmp_path / "absent", tmp_path / "old", io.BytesIO(), max_bytes=6)


def test_old_codes_that_shrink_meanwhile_are_an_error(tmp_path):
    class Shrinking(io.BytesIO):
        def write(self, chunk):
            os.truncate(tmp_path / "old", 100)
            return super().write(chunk)

    old, new = random_versions(5, 50_000, 50_000, 8, 0.2)
    (tmp_path / "delta").write_bytes(make_delta(old, new))
    old.tofile(tmp_path / "old")
    with pytest.raises(errors.ArtifactFileError, match="shrank"):
        apply_delta(tmp_path / "delta", tmp_path / "old", Shrinking(), max_bytes=new.size)


def test_random_streams_give_typed_errors(tmp_path):
    generator = random.Random(4)
    for _ in range(200):
        content = generator.randbytes(generator.randrange(20))
        try:
            apply(tmp_path, pack(content, changed=generator.randrange(4)), OLD)
        except errors.ArtifactError:
            continue
        assert content == b""
