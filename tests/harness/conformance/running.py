"""A coordinator for the suite to try, on ports that it keeps when it is killed and started again."""

import random
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress

from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors
from lightfr_harness.conformance.world import World
from tests.warm import CoordinatorProcess


def coordinator(kit, folder, module="lightfr_harness"):
    """A coordinator that has not been started."""
    port, enrollment_port = free_ports(2)
    ports = {"port": port, "enrollment_port": enrollment_port}
    return CoordinatorProcess(
        folder / "state", kit.authority, kit.folder / "items.tsv", module=module, **ports, **kit.serve_options()
    )


def free_ports(count):
    """Ports that nobody listens on, below those that the system gives to anybody who asks."""
    found = set()
    while len(found) < count:
        port = random.randrange(12_000, 32_000)
        with suppress(OSError), socket.create_server(("localhost", port)):
            found.add(port)
    return sorted(found)


@contextmanager
def world_of(running, kit, folder):
    """The suite's world around a running coordinator, whose state is in the folder."""

    def restart():
        running.stop(signal.SIGKILL)
        running.start()

    def change_catalogue(items):
        subprocess.run([*shlex.split(catalogue_command(folder)), items], check=True, capture_output=True)

    addresses = running.addresses["server"], running.addresses["enrollment"]
    with World(*addresses, kit, Vectors.read(DEFAULT_FOLDER), restart, change_catalogue) as world:
        yield world


def catalogue_command(folder):
    """What gives a coordinator, whose state is in the folder, another list of items."""
    return shlex.join([sys.executable, "-m", "lightfr_harness", "catalogue", "update", str(folder / "state")])
