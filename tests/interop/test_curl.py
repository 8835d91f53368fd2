"""The command with which docs/protocol.md lets anybody speak to a coordinator by hand."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lightfr.device import Device, Trust
from lightfr.model.manifest import Manifest
from lightfr.v1 import coordinator_pb2
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess

DOCUMENT = (Path(__file__).parents[2] / "docs/protocol.md").read_text()
(COMMAND,) = re.findall(r"## With curl\n.*?```sh\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.fixture
def coordinator(tmp_path):
    Authority.init(tmp_path / "authority", ["localhost"]).close()
    (tmp_path / "items.tsv").write_text("a\nb\nc\n")
    with CoordinatorProcess(tmp_path / "state", tmp_path / "authority", tmp_path / "items.tsv", host="localhost") as it:
        yield it


def enrolled(coordinator, folder):
    """The folder of an enrolled device: identity.pem and trust.pem."""
    authority = Authority.open(folder / "authority")
    invitation = authority.invite(coordinator.addresses["server"], coordinator.addresses["enrollment"], 60)
    authority.close()
    (folder / "invitation.json").write_text(json.dumps(invitation))
    return Device.enroll(folder / "invitation.json", folder / "device").identity.parent


def test_the_documented_curl_command_gets_a_signed_manifest(coordinator, tmp_path):
    missing = [program for program in ("bash", "curl", "xxd") if shutil.which(program) is None]
    assert not missing, f"this test needs {', '.join(missing)}; on Debian: apt-get install curl xxd"
    device = enrolled(coordinator, tmp_path)
    assert "https://localhost:8443/" in COMMAND
    command = COMMAND.replace("https://localhost:8443", coordinator.addresses["server"])
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=device,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    answer = coordinator_pb2.GetManifestResponse.FromString(bytes.fromhex(ran.stdout))
    manifest = Manifest(answer.signed_manifest.SerializeToString(), Trust(device / "trust.pem"))
    assert (manifest.model_version, manifest.message.model.item_count) == (1, 3)
