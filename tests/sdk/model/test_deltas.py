import hashlib
import io
import os
import random
import struct
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


def random_versions(seed, old_rows, new_rows, code_bytes, share):
    generator = np.random.default_rng(seed)
    old = generator.integers(0, 256, (old_rows, code_bytes), dtype=np.uint8)
    new, kept = np.zeros((new_rows, code_bytes), np.uint8), min(old_rows, new_rows)
    new[:kept] = old[:kept]
    changed = generator.random(new_rows) < share
    new[changed] = generator.integers(0, 256, (int(changed.sum()), code_bytes), dtype=np.uint8)
    return old, new


def moved_versions(seed, old, joined, left, moved, share):
    """Where the new rows come from, and what they are: some join anywhere, some leave, some move, some change."""
    generator = np.random.default_rng(seed)
    kept = np.delete(np.arange(len(old)), generator.integers(0, len(old), left) if len(old) else [])
    for _ in range(moved if len(kept) else 0):
        kept = np.insert(np.delete(kept, 0), generator.integers(0, len(kept)), kept[0])
    moved_from = np.insert(kept, generator.integers(0, len(kept) + 1, joined), -1)
    new = np.vstack((old, np.zeros((1, old.shape[1]), np.uint8)))[moved_from]
    changed = generator.random(len(new)) < share
    new[changed] ^= generator.integers(0, 256, (int(changed.sum()), old.shape[1]), dtype=np.uint8)
    return new, moved_from


def pack(
    content,
    *,
    code_bits=8,
    old_rows=4,
    new_rows=6,
    runs=2,
    changed=2,
    magic=b"LFRD",
    version=2,
    zeros=bytes(3),
):
    header = HEADER.pack(magic, version, zeros, code_bits, old_rows, new_rows, runs, changed)
    return header + zlib.compress(content)


def runs_of(*runs):
    return b"".join(struct.pack("<II", first, count) for first, count in runs)


RUNS = runs_of((0, 4), (2**32 - 1, 2))
GAPS = bytes([1, 2, 0, 0, 0, 0, 0, 0])  # rows 1 and 4
FLIPS = b"\x0f\xf0"
CONTENT = RUNS + GAPS + FLIPS
OLD = b"\x01\x02\x03\x04"
NEW = b"\x01\x0d\x03\x04\xf0\x00"


@given(
    seed=st.integers(0, 2**32 - 1),
    old_rows=st.integers(0, 400),
    new_rows=st.integers(0, 600),
    code_bytes=st.sampled_from([1, 3, 8, 16, 128]),
    share=st.sampled_from([0.0, 0.01, 0.3, 1.0]),
)
def test_a_delta_turns_the_old_codes_into_the_new_ones(folder, seed, old_rows, new_rows, code_bytes, share):
    old, new = random_versions(seed, old_rows, new_rows, code_bytes, share)
    assert apply(folder, make_delta(old, new), old.tobytes(), max_bytes=new.size) == new.tobytes()


@given(
    seed=st.integers(0, 2**32 - 1),
    old_rows=st.integers(0, 300),
    joined=st.integers(0, 20),
    left=st.integers(0, 20),
    moved=st.integers(0, 20),
    share=st.sampled_from([0.0, 0.05, 1.0]),
)
def test_a_delta_follows_rows_that_join_leave_and_move(folder, seed, old_rows, joined, left, moved, share):
    old = np.random.default_rng(seed).integers(1, 256, (old_rows, 8), dtype=np.uint8)
    new, moved_from = moved_versions(seed, old, joined, left, moved, share)
    delta = make_delta(old, new, moved_from)
    assert apply(folder, delta, old.tobytes(), max_bytes=new.size) == new.tobytes()
    assert share or HEADER.unpack_from(delta)[-1] == 0, "rows that only moved are not changed rows"


def test_a_renumbering_that_moves_every_row_is_followed(tmp_path):
    old = np.random.default_rng(1).integers(0, 256, (30_000, 8), dtype=np.uint8)
    order = np.random.default_rng(2).permutation(30_000)
    delta = make_delta(old, old[order], order)
    assert HEADER.unpack_from(delta)[-2] > 29_000
    assert apply(tmp_path, delta, old.tobytes()) == old[order].tobytes()


def test_a_run_over_many_chunks_may_begin_anywhere(tmp_path):
    old = np.random.default_rng(1).integers(0, 256, (60_000, 7), dtype=np.uint8)
    moved_from = np.concatenate((np.arange(31, 30_000), np.full(20_000, -1), np.arange(5, 55_005)))
    new = np.vstack((old[31:30_000], np.zeros((20_000, 7), np.uint8), old[5:55_005]))
    new[::4001] ^= 3
    assert apply(tmp_path, make_delta(old, new, moved_from), old.tobytes()) == new.tobytes()


@pytest.mark.parametrize("share", [0.0001, 0.05, 1.0])
@pytest.mark.parametrize(("code_bytes", "old_rows"), [(8, 200_000), (7, 150_001)])
def test_a_delta_over_many_chunks_turns_the_old_codes_into_the_new_ones(tmp_path, code_bytes, old_rows, share):
    """Both ends of a chunk, chunks without a change, and gaps beyond one and two bytes are met."""
    old, new = random_versions(7, old_rows, 200_000, code_bytes, share)
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
        (pack(CONTENT, version=1), "format version"),
        (pack(CONTENT, zeros=b"\0\0\1"), "format version"),
        (pack(CONTENT, code_bits=12), "cannot have 12 bits"),
        (pack(CONTENT, code_bits=0), "cannot have 0 bits"),
        (pack(CONTENT, code_bits=1032), "cannot have 1032 bits"),
        (pack(CONTENT, code_bits=16), "old codes of 8 bytes, these have 4"),
        (pack(CONTENT, old_rows=5), "old codes of 5 bytes, these have 4"),
        (pack(CONTENT, old_rows=2**32), "cannot have 4294967296 rows"),
        (pack(CONTENT, new_rows=2**32), "cannot have 4294967296 rows"),
        (pack(CONTENT, new_rows=7), "would have 7 bytes, at most 6"),
        (pack(CONTENT, runs=7), "7 runs are more"),
        (pack(CONTENT, changed=7), "7 changed rows are more"),
        (pack(CONTENT, new_rows=5), "runs have 6 rows, expected 5"),
        (pack(runs_of((0, 4), (2**32 - 1, 1)) + GAPS + FLIPS), "runs have 5 rows, expected 6"),
        (pack(runs_of((0, 0), (2**32 - 1, 6)) + GAPS + FLIPS), "a run is empty"),
        (pack(runs_of((1, 4), (2**32 - 1, 2)) + GAPS + FLIPS), "beyond the 4 old rows"),
        (pack(runs_of((4, 1), (2**32 - 1, 5)) + GAPS + FLIPS), "beyond the 4 old rows"),
        (pack(runs_of((2**32 - 2, 2), (0, 4)) + GAPS + FLIPS), "beyond the 4 old rows"),
        (pack(RUNS + bytes([1, 4, 0, 0, 0, 0, 0, 0]) + FLIPS), "beyond the 6 rows"),
        (pack(RUNS + b"\xff\xff" * 4 + FLIPS), "beyond the 6 rows"),
        (pack(RUNS[:-1]), "too short"),
        (pack(b"", runs=0), "runs have 0 rows, expected 6"),
        (pack(CONTENT[:-1]), "too short"),
        (pack(RUNS + GAPS[:-1]), "too short"),
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


@pytest.mark.parametrize("is_moved", [False, True])
def test_applying_takes_half_a_mib_and_four_bytes_a_changed_row_and_eight_a_run(tmp_path, is_moved):
    old, new = random_versions(5, 40_000, 40_000, 64, 0.2)
    order = np.random.default_rng(1).permutation(40_000) if is_moved else np.arange(40_000)
    new = new[order]
    delta = make_delta(old, new, order)
    (tmp_path / "delta").write_bytes(delta)
    old.tofile(tmp_path / "old")
    with (tmp_path / "new").open("wb") as new_file:
        tracemalloc.start()
        apply_delta(tmp_path / "delta", tmp_path / "old", new_file, max_bytes=new.size)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    n_runs, n_changed = HEADER.unpack_from(delta)[-2:]
    assert (n_runs > 39_000) is is_moved
    # A buffer that grows has up to an eighth to spare.
    assert peak_bytes < 512 * 1024 + 9 * n_runs + 4 * n_changed


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


def squeezed(*, runs, changed=0):
    """A delta of rows that all are the first old one, as often as there are runs: a few bytes for each thousand."""
    content = runs_of((0, 1)) * runs + bytes(5 * changed)
    return pack(content, new_rows=runs, runs=runs, changed=changed)


def test_a_small_delta_that_would_fill_the_memory_is_refused_before_it_is_inflated(tmp_path):
    for delta in (squeezed(runs=2**20), pack(b"", new_rows=2**26, runs=1, changed=2**26)):
        tracemalloc.start()
        with pytest.raises(errors.ArtifactError, match="of memory, at most"):
            apply(tmp_path, delta, OLD)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**20


def test_a_delta_may_take_a_mebibyte_and_64_times_its_size(tmp_path):
    """Each run takes 8 bytes of memory, each changed row 4; bytes behind the stream only make the file larger."""
    runs = 2**17
    assert len(apply(tmp_path, squeezed(runs=runs), OLD)) == runs
    larger = squeezed(runs=runs + 2**15, changed=2**15)
    needed = 8 * (runs + 2**15) + 4 * 2**15
    enough = -(-(needed - 2**20) // 64)
    assert len(larger) < enough
    for size, reason in ((enough, "bytes follow"), (enough - 1, "of memory, at most")):
        with pytest.raises(errors.ArtifactError, match=reason):
            apply(tmp_path, larger + bytes(size - len(larger)), OLD)
