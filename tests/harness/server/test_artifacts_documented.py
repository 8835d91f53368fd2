"""The worked examples of docs/artifacts.md, byte by byte."""

import hashlib
import io
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

from lightfr.model.catalogue import Catalogue
from lightfr.model.deltas import HEADER, apply_delta
from lightfr_harness.server.artifacts import make_delta, write_catalogue

DOCUMENT = Path(__file__).parents[3] / "docs/artifacts.md"
OLD = np.array([[0x4D, 0xB2], [0x00, 0xFF], [0x10, 0x20]], np.uint8)
NEW = np.array([[0x4D, 0xB2], [0xAA, 0x55], [0x01, 0xFF], [0x10, 0x20]], np.uint8)
MOVED_FROM = np.array([0, -1, 1, 2])


def documented(name):
    (block,) = re.findall(rf"```{name}\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return bytes.fromhex(block)


@pytest.mark.parametrize(("name", "ids"), [("catalogue-int", [7, -1, 300]), ("catalogue-str", ["b", "é", "ab"])])
def test_the_documented_catalogues_are_what_is_written_and_read(tmp_path, name, ids):
    path = tmp_path / "items.ids"
    write_catalogue(path, ids)
    assert path.read_bytes() == documented(name)
    with Catalogue.open([path], 3) as catalogue:
        assert [catalogue.index_of(item_id) for item_id in ids] == [0, 1, 2]


def test_the_documented_delta_is_what_is_written_and_read(tmp_path):
    delta = documented("delta")
    # Another zlib may compress otherwise, so what is written is compared inflated.
    made = make_delta(OLD, NEW, MOVED_FROM)
    assert made[: HEADER.size] == delta[: HEADER.size]
    assert zlib.decompress(made[HEADER.size :]) == zlib.decompress(delta[HEADER.size :]) == documented("delta-content")
    (tmp_path / "delta").write_bytes(delta)
    (tmp_path / "old").write_bytes(OLD.tobytes())
    new_file = io.BytesIO()
    digest = apply_delta(tmp_path / "delta", tmp_path / "old", new_file, max_bytes=8)
    assert new_file.getvalue() == NEW.tobytes()
    assert digest == hashlib.sha256(NEW.tobytes()).hexdigest()
