"""The coordinator in TypeScript is what docs/protocol.md says, in every case of every kit."""

import shlex
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from lightfr_harness.conformance import cases
from lightfr_harness.conformance.registry import KITS, registry

# Whoever connects and reads until the end has waited for a restart.
ASK = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(1)"


@contextmanager
def restart_command(server):
    """A command that kills the server and starts it again; the server stays a child of this process."""
    with socket.create_server(("127.0.0.1", 0)) as asked:

        def restart_when_asked():
            while not is_over.is_set():
                with asked.accept()[0]:
                    if not is_over.is_set():
                        server.kill()
                        server.start()

        is_over, port = threading.Event(), asked.getsockname()[1]
        restarting = threading.Thread(target=restart_when_asked, daemon=True)
        restarting.start()
        yield shlex.join([sys.executable, "-c", ASK, str(port)])
        is_over.set()
        socket.create_connection(("127.0.0.1", port)).close()
        restarting.join()


def parts_of(kind):
    """The groups of a kit's cases, in two parts for kit secagg: it waits for deadlines most of the time."""
    groups = {case.group for case in registry.cases(kind)}
    rounds = groups & {"sums", "abandon", "restart"}
    return [rounds, groups - rounds] if kind == "secagg" else [groups]


cases.load()
RUNS = [(kind, sorted(groups)) for kind in KITS for groups in parts_of(kind)]


@pytest.mark.parametrize(("kind", "groups"), RUNS, ids=[f"{kind}-{groups[0]}" for kind, groups in RUNS])
def test_every_case_passes(kind, groups, node):
    kit, server = node(kind)
    where = [server.addresses["server"], "--enrollment", server.addresses["enrollment"], "--kit", kit]
    only = [f"--only={group}.*" for group in groups]
    with restart_command(server) as restart:
        command = [sys.executable, "-m", "lightfr_harness", "conformance", *where, *only, "--restart-command", restart]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
