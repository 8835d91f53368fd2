"""The coordinator in TypeScript is what docs/protocol.md says, in every case that the suite knows."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("kind", ["clear", "secagg", "crowd"])
def test_every_case_passes(kind, node):
    kit, server = node(kind)
    where = [server.addresses["server"], "--enrollment", server.addresses["enrollment"], "--kit", kit]
    command = [sys.executable, "-m", "lightfr_harness", "conformance", *where]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
