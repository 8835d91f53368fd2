"""A device in C and a coordinator that really listens."""

import zlib
from hashlib import sha256

import pytest

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.server.authority import Authority
from tests.certificates import client_context, client_pem
from tests.csrc.conftest import start_program
from tests.harness.server.coordinator.live import Live, call, exchange, place

CAPABLE = pb.Capabilities(
    wire_versions=[1],
    upload_kinds=[model_pb2.UPLOAD_KIND_TERNARY],
    privacy_modes=[model_pb2.PRIVACY_MODE_CLEAR],
)


@pytest.fixture
def live(tmp_path):
    authority = Authority.init(tmp_path / "ca", ["localhost", "127.0.0.1"])
    with Live(tmp_path / "state", authority) as running:
        yield running
    authority.close()


def sync(live, context, folder):
    """What an app does before the C programs can run: fetch the manifest and the files that it names."""
    answer = call(live, context, "GetManifest", pb.GetManifestRequest(capabilities=CAPABLE), pb.GetManifestResponse)
    (folder / "manifest").write_bytes(answer.signed_manifest.manifest)
    manifest = manifest_pb2.Manifest.FromString(answer.signed_manifest.manifest)
    for name, artifact in (("codes", manifest.codes), ("open_rows", manifest.open_rows)):
        path = f"/artifacts/{artifact.sha256.hex()}"
        status, _, content = exchange(live.connection(context), "GET", path, headers={})
        assert status == 200
        (folder / name).write_bytes(zlib.decompress(content) if name == "open_rows" else content)


def test_a_coordinator_takes_the_upload_of_the_c_program_and_gives_a_receipt(live, by_pkg_config, staged, tmp_path):
    folder = tmp_path / "device"
    folder.mkdir()
    context = client_context(live.authority, client_pem(live.authority, tmp_path))
    sync(live, context, folder)
    (folder / "ratings.txt").write_text("3 5\n0 4\n11 5\n29 1\n")  # the gate is closed for the last
    round_ = place(live, context, pb.CheckInRequest(capabilities=CAPABLE, known_model_version=1))
    command = ("upload", folder, round_.round_id.hex(), round_.manifest_sha256.hex())
    finished = start_program(by_pkg_config, staged, *command)
    assert finished.returncode == 0, finished.stderr
    upload = (folder / "upload").read_bytes()
    receipt = call(live, context, "Upload", upload, pb.UploadResponse)
    assert receipt.request_sha256 == sha256(upload).digest()
    assert len(pb.UploadRequest.FromString(upload).row_update.item_indices) == 3 * 4
