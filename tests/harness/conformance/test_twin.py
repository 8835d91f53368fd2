"""The suite's own server: equal to the vectors, and to the coordinator's rule, with which it shares no code."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import lightfr_harness
from lightfr.v1 import model_pb2, update_pb2
from lightfr_harness import oracle
from lightfr_harness.cli import app
from lightfr_harness.conformance.rounds import random_update
from lightfr_harness.conformance.twin import Contribution, PaperTwin, Twin, signs_of
from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors, find_vectors
from lightfr_harness.conformance.versions import published_codes
from lightfr_harness.errors import CannotRunError
from lightfr_harness.server.rules import CatalogueRule, UploadReader


def test_the_twin_walks_the_vectors():
    vectors = Vectors.read(DEFAULT_FOLDER)
    twin = Twin(vectors.codes, vectors.code_bits)
    assert len(vectors.rounds) == 3
    for number, one in enumerate(vectors.rounds):
        twin.finish_round([Contribution.of(update_pb2.RowUpdate.FromString(upload)) for upload in one.uploads])
        assert twin.model_version == number + 2
        assert twin.codes == one.codes
        assert twin.mean_user.tolist() == one.mean_user
        assert twin.memory.tolist() == one.memory


def test_the_twin_moves_as_the_coordinator_does():
    counts = np.where(np.arange(50) < 44, 20, 3)
    server = CatalogueRule(counts, 40, upload_kind=model_pb2.UPLOAD_KIND_TERNARY, gate=10, max_rows=40, seed=1)
    twin = Twin(oracle.pack(server.signs()), 40)

    def train():
        updates = [random_update(server.open_rows.tolist(), 40, 40) for _ in range(3)]
        for update in updates:
            server.add(update.SerializeToString())
        server.finish_round()
        twin.finish_round([Contribution.of(update) for update in updates])

    def require_same():
        assert (twin.signs == server.signs()).all()
        assert published_codes(twin.codes, server.open_rows.tolist()) == server.codes.tobytes()
        assert (twin.mean_user == server.mean_user).all()

    for _ in range(6):
        train()
        require_same()
    # The other way round, without two items, and with two others in their places.
    old = np.arange(50)[::-1].copy()
    old[[7, 30]] = -1
    server.change_items(old, np.zeros(50, bool), np.where(old < 0, 0, counts[old]), seed=0)
    twin.change_items([index if index >= 0 else 49 for index in old])
    require_same()
    train()
    require_same()


def test_the_twin_of_exact_gradients_moves_as_the_coordinator_does(tmp_path):
    """With 24 bits, so that a gradient's part of 256 has to be rounded."""
    server = CatalogueRule(np.full(50, 20), 24, upload_kind=model_pb2.UPLOAD_KIND_EXACT, gate=10, max_rows=0, seed=1)
    twin, source = Twin(oracle.pack(server.signs()), 24, is_exact=True), np.random.default_rng(2)
    for _ in range(6):
        parts = [
            Contribution({int(row): source.integers(-48, 49, 24) for row in rows}, source.choice([-1, 1], 24))
            for rows in (source.choice(50, 40, replace=False) for _ in range(3))
        ]
        for part in parts:
            server.add(part.as_update("exact").SerializeToString())
        server.finish_round()
        twin.finish_round(parts)
        assert (twin.signs == server.signs()).all()


def test_the_twins_of_the_paper_walk_the_vectors():
    for known in json.loads((DEFAULT_FOLDER / "paper.json").read_text())["rounds"]:
        for kind, rule in (("exact", "grad"), ("codes", "para")):
            codes, has_codes = bytes.fromhex(known["codes"]), kind == "codes"
            twin = PaperTwin(codes, known["code_bits"], balance=known["balance"], has_codes=has_codes)
            uploads = [update_pb2.RowUpdate.FromString(bytes.fromhex(device[kind])) for device in known["devices"]]
            twin.finish_round([Contribution.of(upload) for upload in uploads])
            assert twin.codes.hex() == known[f"codes_after_agg_{rule}"]


def test_a_round_without_uploads_keeps_the_mean_user():
    twin = Twin(bytes([0x4D, 0xB2]), 8)
    twin.mean_user = np.arange(8)
    twin.finish_round([])
    assert twin.mean_user.tolist() == list(range(8))
    assert twin.codes == bytes([0x4D, 0xB2])


def test_bits_are_those_of_the_document():
    signs = signs_of(bytes([0x4D]), 8)
    assert signs.tolist() == [[1, -1, 1, 1, -1, -1, 1, -1]]
    assert oracle.pack(signs) == bytes([0x4D])


@pytest.mark.parametrize("kind", ["ternary", "exact", "codes"])
def test_every_kind_of_upload_comes_back_as_it_was(kind):
    rows = {3: np.array([1, -1] * 8), 5: -np.ones(16, np.int64)}
    for has_user_code in (True, False):
        update = Contribution(rows, np.ones(16, np.int64)).as_update(kind, has_user_code=has_user_code)
        back = Contribution.of(update)
        assert update.WhichOneof("rows") == kind
        assert {row: elements.tolist() for row, elements in back.rows.items()} == {
            row: elements.tolist() for row, elements in rows.items()
        }
        assert back.user.tolist() == ([1] * 16 if has_user_code else [])


@pytest.mark.parametrize("rows", [0, 1, 5, None])
def test_random_updates_are_legal_and_come_back_as_they_were(rows):
    update = random_update([True] * 6 + [False] * 2, 16, 6, rows)
    model = model_pb2.RoundModel(
        code_bits=16, item_count=8, max_rows=6,
        objective=model_pb2.OBJECTIVE_CATALOGUE, upload_kind=model_pb2.UPLOAD_KIND_TERNARY,
    )  # fmt: skip
    UploadReader(model, bytes([0b00111111])).check(update)
    assert Contribution.of(update).as_update() == update
    assert rows is None or len(Contribution.of(update).rows) == rows


def test_vectors_that_are_not_there_are_asked_for(tmp_path):
    with pytest.raises(CannotRunError, match="--vectors FOLDER"):
        Vectors.read(tmp_path)


def test_an_installed_harness_uses_its_own_copy_of_the_vectors(tmp_path):
    """A checkout has vectors/v1 at its top; an installed package has a copy inside."""
    assert find_vectors(tmp_path) == Path(lightfr_harness.__file__).parent / "vectors" / "v1"
    (tmp_path / "vectors" / "v1").mkdir(parents=True)
    assert find_vectors(tmp_path) == tmp_path / "vectors" / "v1"


def test_missing_vectors_end_the_command_with_one_sentence_and_exit_code_2(tmp_path):
    command = ["conformance-kit", str(tmp_path / "kit"), "--privacy", "clear", "--vectors", str(tmp_path / "none")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: the vectors {tmp_path}/none/aggregation.json cannot be read")
    assert "--vectors FOLDER" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "kit").exists()
