"""A coordinator for the suite to try, on ports that it keeps when it is killed and started again."""

import signal
import socket
from contextlib import contextmanager

from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors
from lightfr_harness.conformance.world import World
from lightfr_harness.server.coordinator.child import CoordinatorProcess


def coordinator(kit, folder, module="lightfr_harness"):
    """A coordinator that has not been started."""
    port, enrollment_port = free_ports(2)
    ports = {"port": port, "enrollment_port": enrollment_port}
    return CoordinatorProcess(
        folder / "state", kit.authority, kit.folder / "items.tsv", module=module, **ports, **kit.serve_options()
    )


def free_ports(count):
    """Ports that nobody listens on; all are taken at once, so that they differ."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def world_of(running, kit):
    """The suite's world around a running coordinator."""

    def restart():
        running.stop(signal.SIGKILL)
        running.start()

    addresses = running.addresses["server"], running.addresses["enrollment"]
    with World(*addresses, kit, Vectors.read(DEFAULT_FOLDER), restart) as world:
        yield world
