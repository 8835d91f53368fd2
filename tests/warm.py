"""Real programs that start in a tenth of the time: they fork from a process that has imported what they need.

That process is started afresh by multiprocessing, so a program shares nothing with the test that starts it.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from multiprocessing.reduction import DupFd

from lightfr_harness.server.coordinator import child

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([
    "lightfr.client", "lightfr.kept_rounds", "lightfr.store", "lightfr_harness.cli",
    "lightfr_harness.server.authority.cli", "lightfr_harness.server.coordinator.cli",
    "lightfr_harness.server.authority.serving", "lightfr_harness.server.coordinator.browsers",
    "lightfr_harness.server.coordinator.options", "lightfr_harness.server.coordinator.serving",
    "tests.sdk.store.sessions", "tests.warm",
])  # fmt: skip


class Program:
    """`lightfr-harness` with some arguments, as subprocess.Popen would run it: its output is a pipe, its errors a file."""

    def __init__(self, arguments, errors):
        read, write = os.pipe()
        self._process = CONTEXT.Process(target=_run, args=(arguments, DupFd(write), DupFd(errors.fileno())), daemon=True)
        self._process.start()
        os.close(write)
        self.pid = self._process.pid
        self.stdout = open(read)  # noqa: SIM115 # closed by whoever has the program, as with Popen

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("lightfr-harness", timeout)
        return self._process.exitcode

    def send_signal(self, number):
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def end(self):
        """Kill it if it lives, and leave nothing of it."""
        self.kill()
        self.wait()
        self.stdout.close()


def _run(arguments, output, errors):
    os.dup2(output.detach(), 1)
    os.dup2(errors.detach(), 2)
    sys.argv = ["lightfr-harness", *arguments]
    from lightfr_harness.cli import app

    app()


class _Warm:
    def spawn(self, log):
        return Program(self.arguments, log)


class CoordinatorProcess(_Warm, child.CoordinatorProcess):
    """`lightfr-harness serve`."""


class AuthorityProcess(_Warm, child.AuthorityProcess):
    """`lightfr-harness ca serve`."""
