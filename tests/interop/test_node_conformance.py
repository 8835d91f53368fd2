"""The coordinator in TypeScript is what docs/protocol.md says, in every case of every kit."""

import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from lightfr_harness.conformance import cases
from lightfr_harness.conformance.registry import KITS, registry

# Says something, and has waited for what it asks for when the connection ends.
ASK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as asked:
    asked.sendall(" ".join(sys.argv[2:]).encode())
    asked.shutdown(socket.SHUT_WR)
    asked.recv(1)
"""


@contextmanager
def command_for(act):
    """A command that lets this process, whose child the server is, act on the command's last argument."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def act_when_asked():
            while not is_over.is_set():
                with listening.accept()[0] as asked, asked.makefile() as said:
                    argument = said.read()
                    if not is_over.is_set():
                        act(argument)

        is_over, port = threading.Event(), listening.getsockname()[1]
        acting = threading.Thread(target=act_when_asked, daemon=True)
        acting.start()
        yield shlex.join([sys.executable, "-c", ASK, str(port)])
        is_over.set()
        socket.create_connection(("127.0.0.1", port)).close()
        acting.join()


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

    def restart(_):
        server.kill()
        server.start()

    def change_catalogue(items):
        shutil.copy(items, kit / "items.tsv")
        server.process.send_signal(signal.SIGHUP)

    where = [server.addresses["server"], "--enrollment", server.addresses["enrollment"], "--kit", kit]
    only = [f"--only={group}.*" for group in groups]
    with command_for(restart) as restarting, command_for(change_catalogue) as changing:
        commands = ["--restart-command", restarting, "--catalogue-command", changing]
        command = [sys.executable, "-m", "lightfr_harness", "conformance", *where, *only, *commands]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
