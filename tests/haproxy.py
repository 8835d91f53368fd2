"""HAProxy for tests: a TCP load balancer before several servers on loopback."""

import socket
import subprocess
import time

_CONFIGURATION = """
defaults
  mode tcp
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  option redispatch
  retries 3
frontend devices
  bind 127.0.0.1:{port}
  default_backend replicas
backend replicas
  balance random
  {servers}
"""


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class Balancer:
    """Sends each connection to any server that listens."""

    def __init__(self, folder, ports):
        self.port = free_port()
        servers = "\n  ".join(
            f"server replica{i} 127.0.0.1:{port} check inter 200ms fall 1 rise 1" for i, port in enumerate(ports)
        )
        path = folder / "haproxy.cfg"
        path.write_text(_CONFIGURATION.format(port=self.port, servers=servers))
        with (folder / "haproxy.log").open("ab") as log:
            self._process = subprocess.Popen(["haproxy", "-db", "-f", str(path)], stdout=log, stderr=log)
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError((folder / "haproxy.log").read_text())

    def close(self):
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
