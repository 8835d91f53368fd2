"""The two coordinators that are compared, each started from a conformance kit: ours and the one in TypeScript."""

import json
import signal
import subprocess
from pathlib import Path

from lightfr_harness.conformance import kit as conformance_kit
from lightfr_harness.conformance.kit import Kit
from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors
from lightfr_harness.server.coordinator.child import CoordinatorProcess

NODE = Path(__file__).parent / "node"
MAIN = NODE / "dist/main.js"


def make_kit(folder, kind, **settings):
    """A kit of a kind, with some settings changed."""
    conformance_kit.make_kit(folder, kind, "localhost", Vectors.read(DEFAULT_FOLDER))
    path = folder / "settings.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return folder


class NodeProcess:
    """The coordinator in TypeScript; started when entered, killed when left."""

    def __init__(self, kit, state):
        self.state = state
        self._command = ["node", MAIN, kit, state]
        self._ports = []

    def start(self):
        """Start it and wait until it listens; after a kill it goes on at the same address."""
        assert MAIN.exists(), "the coordinator in TypeScript is not built: run 'make test-interop'"
        log = self.state.with_suffix(".log")
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                self._command + self._ports, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        line = self.process.stdout.readline()
        assert line, f"the coordinator ended: {log.read_text()}"
        self.addresses = json.loads(line)
        names = {"server": "--port", "enrollment": "--enrollment-port"}
        self._ports = [word for key, flag in names.items() for word in (flag, self.addresses[key].rpartition(":")[2])]
        return self

    def kill(self):
        """End it as a loss of power would: nothing is said goodbye to."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


def python_coordinator(kit, state):
    """Ours, set as the kit says."""
    options = Kit(kit).serve_options()
    return CoordinatorProcess(state, kit / "authority", kit / "items.tsv", host="localhost", **options)


SERVERS = {"python": python_coordinator, "node": NodeProcess}
