"""A coordinator in a process of its own, for the demo, benchmarks and tests."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lightfr.errors import LightFRError


class CoordinatorFailedError(LightFRError):
    """The coordinator's process ended before it was ready."""


class CoordinatorProcess:
    """Started when entered; terminated, gracefully, when left. Ports are free ones unless given."""

    def __init__(
        self, folder: Path, authority: Path, catalogue: Path, *, module: str = "lightfr_harness", **options: Any
    ) -> None:
        """Take `serve`'s options by name: goal=64, integer_ids=True. `module` may be one that wraps `serve`."""
        self._folder = folder
        self._log = folder.with_name(f"{folder.name}.log")
        ports = {"port": 0, "enrollment_port": 0, "operations_port": 0}
        named = {"authority": authority, "catalogue": catalogue, **ports, **options}
        self._command = [sys.executable, "-m", module, "serve", str(folder), *_flags(named)]
        self.addresses: dict[str, str] = {}

    def start(self) -> Self:
        """Start it and wait until it listens; call again after a kill to resume."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            self._close()
            raise CoordinatorFailedError(f"the coordinator ended with {self.process.wait()}; its log is {self._log}")
        self.addresses = json.loads(line)
        return self

    def stop(self, how: int = signal.SIGTERM) -> int:
        """End it and return its exit code."""
        self.process.send_signal(how)
        code = self.process.wait()
        self._close()
        return code

    def _close(self) -> None:
        if self.process.stdout:
            self.process.stdout.close()

    @property
    def log(self) -> str:
        """All that it has logged."""
        return self._log.read_text()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.stop()


def _flags(options: dict[str, Any]) -> list[str]:
    """--name value for each; a bare --name for True."""
    flags = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        flags += [flag] if value is True else [flag, str(value)]
    return flags
