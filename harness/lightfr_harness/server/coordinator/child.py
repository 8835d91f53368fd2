"""A coordinator, or an authority, in a process of its own, for the demo, benchmarks and tests."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from lightfr.errors import LightFRError


class ServerFailedError(LightFRError):
    """The server's process ended before it was ready."""


class ServerProcess:
    """Started when entered; terminated, gracefully, when left."""

    def __init__(self, command: list[str], log: Path, module: str) -> None:
        """Take the arguments of a command, and the module to run, which may be one that wraps ours."""
        self.arguments, self.module, self._log = command, module, log
        self.addresses: dict[str, str] = {}

    def start(self) -> Self:
        """Start it and wait until it listens; call again after a kill to resume."""
        with self._log.open("ab") as log:
            self.process = self.spawn(log)
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            self._close()
            raise ServerFailedError(f"the server ended with {self.process.wait()}; its log is {self._log}")
        self.addresses = json.loads(line)
        return self

    def spawn(self, log: BinaryIO) -> subprocess.Popen[str]:
        """Begin the process, whose output is a pipe."""
        command = [sys.executable, "-m", self.module, *self.arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)

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
        self._close()


class CoordinatorProcess(ServerProcess):
    """`lightfr-harness serve`: a coordinator, with its authority beside it unless told otherwise.

    Ports are free ones unless given.
    """

    def __init__(
        self, folder: Path, authority: Path | None, catalogue: Path, *, module: str = "lightfr_harness", **options: Any
    ) -> None:
        """Take `serve`'s options by name: goal=64, integer_ids=True. Without an authority: credentials=FOLDER."""
        ports = {"port": 0, "enrollment_port": 0, "operations_port": 0}
        named = {"catalogue": catalogue, **ports, **options} | ({"authority": authority} if authority else {})
        super().__init__(["serve", str(folder), *_flags(named)], folder.with_name(f"{folder.name}.log"), module)


class AuthorityProcess(ServerProcess):
    """`lightfr-harness ca serve`: an authority alone."""

    def __init__(
        self, folder: Path, *, port: int = 0, host: str = "127.0.0.1", module: str = "lightfr_harness"
    ) -> None:
        command = ["ca", "serve", str(folder), "--host", host, "--port", str(port)]
        super().__init__(command, folder.with_name(f"{folder.name}.log"), module)


def _flags(options: dict[str, Any]) -> list[str]:
    """--name value for each; a bare --name for True."""
    flags = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        flags += [flag] if value is True else [flag, str(value)]
    return flags
