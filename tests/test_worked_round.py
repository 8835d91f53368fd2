"""The worked round of docs/protocol.md, byte by byte: what it says is what the device and the server compute."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr import ItemCodes, UserCode, _wire
from lightfr._wire import coordinator
from lightfr.interactions import Interactions
from lightfr.training import PublishedModel, fit_for_round, make_update
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness import oracle
from lightfr_harness.server.artifacts import write_catalogue
from lightfr_harness.server.coordinator.publishing import upload_limit_bytes
from lightfr_harness.server.rules import CatalogueRule

DOCUMENT = (Path(__file__).parents[1] / "docs/protocol.md").read_text()


def documented(name):
    (block,) = re.findall(rf"```round-{name}\n(.*?)```", DOCUMENT, re.DOTALL)
    return bytes.fromhex(block)


def table(first_column):
    """The cells of a row of the section, by what stands in its first column."""
    section = DOCUMENT[DOCUMENT.index("## A worked round") :]
    (row,) = re.findall(rf"^\| {first_column} \| (.*) \|$", section, re.MULTILINE)
    return row.replace("`", "").split(" | ")


def numbers(cell):
    return [[int(number) for number in row.split()] for row in cell.split(";")]


@pytest.fixture
def server():
    made = CatalogueRule(
        np.zeros(5, np.int64), 8, upload_kind=model_pb2.UPLOAD_KIND_TERNARY, gate=0, max_rows=64, seed=0
    )
    made.set_codes(np.frombuffer(documented("codes"), np.uint8).reshape(5, 1))
    return made


def manifest_of(server, version, created, catalogue):
    def artifact(content):
        return manifest_pb2.Artifact(sha256=hashlib.sha256(content).digest(), size_bytes=len(content))

    return manifest_pb2.Manifest(
        wire_version=1,
        model_version=version,
        created_unix_seconds=created,
        model=server.model(),
        codes=artifact(server.codes.tobytes()),
        catalogue_parts=[artifact(catalogue)],
    ).SerializeToString()


def test_the_manifest_and_its_signature(server, tmp_path):
    write_catalogue(tmp_path / "catalogue", ["a", "b", "c", "d", "e"])
    assert (tmp_path / "catalogue").read_bytes() == documented("catalogue")
    manifest = documented("manifest")
    assert manifest == manifest_of(server, 1, 1_800_000_000, documented("catalogue"))
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    assert key.public_key().public_bytes_raw() == documented("public-key")
    signed = pb.GetManifestResponse.FromString(documented("get-manifest-answer")).signed_manifest
    assert signed.manifest == manifest
    assert signed.signature == key.sign(b"lightfr manifest v1\n" + manifest)
    assert signed.key_id == hashlib.sha256(documented("public-key")).digest()[:8]


def test_what_the_device_asks_and_the_assignment(server):
    capabilities = pb.Capabilities(wire_versions=[1], upload_kinds=[model_pb2.UPLOAD_KIND_TERNARY])
    assert documented("get-manifest") == pb.GetManifestRequest(capabilities=capabilities).SerializeToString()
    capabilities.privacy_modes.append(model_pb2.PRIVACY_MODE_CLEAR)
    check_in = pb.CheckInRequest(capabilities=capabilities, known_model_version=1)
    assert documented("check-in") == check_in.SerializeToString()
    assignment = pb.CheckInResponse.FromString(documented("assignment")).assignment
    assert assignment.round_id == bytes(range(0xA0, 0xB0))
    assert assignment.manifest_sha256 == hashlib.sha256(documented("manifest")).digest()
    assert (assignment.model_version, assignment.deadline_ms) == (1, 60_000)
    assert assignment.upload_limit_bytes == 231 == upload_limit_bytes(server.model())


@pytest.mark.parametrize(("number", "name"), [(1, "first"), (2, "second")])
def test_what_a_device_computes_and_uploads(server, number, name):
    rated, old, fitted, gradients, draws, nonzero, positive = table(name)
    model = PublishedModel(ItemCodes(documented("codes"), 8), server.model())
    indices = [int(index) for index in rated.split(",")]
    interactions = Interactions([(index, 0) for index in indices])
    code = fit_for_round(model, interactions, UserCode(bytes.fromhex(old)))
    assert code.reveal().hex() == fitted
    rows = np.stack([oracle.unpack(documented("codes")[index : index + 1]) for index in indices])
    targets = np.full(len(indices), 5, np.int32)
    assert oracle.row_gradients(rows, oracle.unpack(code.reveal()), targets, 1).tolist() == numbers(gradients)
    random = bytes.fromhex(draws.replace(";", ""))
    update = make_update(model, interactions, code, lambda n: random[:n])
    assert (bytes(update.nonzero), bytes(update.positive)) == (bytes.fromhex(nonzero), bytes.fromhex(positive))
    request = documented(f"upload-{number}")
    assignment = pb.CheckInResponse.FromString(documented("assignment")).assignment
    upload_id = bytes(range(0xA0 + 16 * number, 0xB0 + 16 * number))
    assert request == coordinator.encode_upload(assignment, upload_id, _wire.encode_update(update))
    receipt = pb.UploadResponse.FromString(documented(f"receipt-{number}"))
    assert receipt.upload_id == upload_id
    assert receipt.request_sha256 == hashlib.sha256(request).digest()


def test_what_the_server_makes_of_it(server):
    for number in (1, 2):
        update = pb.UploadRequest.FromString(documented(f"upload-{number}")).row_update
        server.add(update.SerializeToString())
    # Behind the rows of the items stands one for closed items, which there are none of.
    assert [[row] for row in server._row_sums.tolist()[:-1]] == [numbers(table(row)[0]) for row in range(5)]
    server.finish_round()
    assert [[row] for row in server.memory.tolist()[:-1]] == [numbers(table(row)[1]) for row in range(5)]
    assert server.codes.tobytes() == documented("new-codes")
    (mean,) = re.findall(r"and mu = ([-\d ]+)\.", DOCUMENT)
    assert server.mean_user.tolist() == numbers(mean)[0]
    assert documented("new-manifest") == manifest_of(server, 2, 1_800_000_060, documented("catalogue"))
