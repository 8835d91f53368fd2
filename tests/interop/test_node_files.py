"""What the coordinator in TypeScript writes is what the SDK reads."""

import base64
import io
import json
import random
import subprocess

import numpy as np
import pytest

from lightfr.model.bitmaps import read_bitmap
from lightfr.model.catalogue import Catalogue
from lightfr.model.deltas import apply_delta
from tests.interop.servers import NODE

# Reads a list of calls, [function, ...arguments], and prints the files that they make. Bytes are objects of base64.
WRITE = """
import { readFileSync } from "node:fs";
import * as formats from "./dist/formats.js";
const bytesOf = (value) => (typeof value?.base64 === "string" ? Buffer.from(value.base64, "base64") : value);
const files = JSON.parse(readFileSync(0)).map(([name, ...rest]) => formats[name](...rest.map(bytesOf)));
console.log(JSON.stringify(files.map((file) => file.toString("base64"))));
"""


def written(*calls):
    command = ["node", "--input-type=module", "--eval", WRITE]
    ran = subprocess.run(command, cwd=NODE, input=json.dumps(calls), capture_output=True, text=True, check=True)
    return [base64.b64decode(file) for file in json.loads(ran.stdout)]


def as_json(content):
    return {"base64": base64.b64encode(content).decode()}


@pytest.mark.parametrize("is_integer", [True, False])
def test_catalogues_of_any_size_in_two_parts_are_found_again(is_integer, tmp_path):
    rng, sizes = random.Random(3), (1, 2, 256, 257, 9000)
    numbers = [rng.sample(range(-(2**40), 2**40), size) for size in sizes] + [[-(2**63), 2**63 - 1]]
    catalogues = numbers if is_integer else [[f"é{number:x}" for number in one] for one in numbers]
    files = written(*(("writeCatalogue", [str(one) for one in ids], is_integer) for ids in catalogues))
    paths = [tmp_path / str(place) for place in range(len(files))]
    for path, file in zip(paths, files, strict=True):
        path.write_bytes(file)
    for before, after in zip(range(len(files)), [*range(1, len(files)), 0], strict=True):
        ids = catalogues[before] + catalogues[after]
        with Catalogue.open([paths[before], paths[after]], len(ids)) as catalogue:
            catalogue.check()
            for index in {0, len(ids) - 1, *rng.choices(range(len(ids)), k=50)}:
                assert catalogue.id_of(index) == ids[index]
                assert catalogue.index_of(ids[index]) == index


def test_bitmaps_have_a_bit_for_each_item(tmp_path):
    for count in (1, 8, 9, 1000):
        bits = np.random.default_rng(count).random(count) < 0.5
        (file,) = written(("writeBitmap", count, np.flatnonzero(bits).tolist()))
        (tmp_path / "bitmap").write_bytes(file)
        assert read_bitmap(tmp_path / "bitmap", count) == np.packbits(bits, bitorder="little").tobytes()


def test_deltas_lead_to_the_new_codes_wherever_rows_went(tmp_path):
    rng = np.random.default_rng(4)
    for n_old, n_new in ((0, 3), (3, 0), (40, 40), (300, 290)):
        old = rng.integers(0, 256, (n_old, 8), np.uint8)
        moved_from = np.sort(rng.integers(-1, n_old, n_new))
        new = np.vstack([old, np.zeros((1, 8), np.uint8)])[moved_from]
        new[rng.random(n_new) < 0.2] ^= 1
        call = ("writeDelta", as_json(old.tobytes()), as_json(new.tobytes()), 64, moved_from.tolist())
        (file,) = written(call)
        for name, content in (("old", old.tobytes()), ("delta", file)):
            (tmp_path / name).write_bytes(content)
        result = io.BytesIO()
        apply_delta(tmp_path / "delta", tmp_path / "old", result, max_bytes=new.nbytes)
        assert result.getvalue() == new.tobytes()
