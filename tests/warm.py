"""Real programs that start in a tenth of the time: they fork from a process that has imported what they need.

That process is started afresh by multiprocessing, so a program shares nothing with the test that starts it.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from contextlib import suppress
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
    """`python -m MODULE ARGUMENTS` as subprocess.Popen would run it: its output is a pipe, its errors go to a file."""

    def __init__(self, arguments, errors, module="lightfr_harness"):
        read, write = os.pipe()
        files = DupFd(write), DupFd(errors.fileno())
        how = module, arguments, dict(os.environ), *files
        self._process = CONTEXT.Process(target=_run, args=how, daemon=True)
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
        # It may have ended since, and the process that it was forked from has told nobody yet.
        if self._process.exitcode is None:
            with suppress(ProcessLookupError):
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


def _run(module, arguments, environment, output, errors):
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(output.detach(), 1)
    os.dup2(errors.detach(), 2)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__")


class _Warm:
    def spawn(self, log):
        return Program(self.arguments, log, self.module)


class AuthorityProcess(_Warm, child.AuthorityProcess):
    """`lightfr-harness ca serve`."""


class CoordinatorProcess(_Warm, child.CoordinatorProcess):
    """`lightfr-harness serve`; if it has an authority, that is started by us and not by it, and outlives its kills."""

    def __init__(self, folder, authority, catalogue, *, enrollment_port=0, **options):
        self._authority = None
        if authority:
            same = {name: options[name] for name in ("host", "module") if name in options}
            self._authority = AuthorityProcess(authority, port=enrollment_port, **same)
            options["credentials"] = authority / "coordinator"
        super().__init__(folder, None, catalogue, **options)

    def start(self):
        super().start()
        if self._authority:
            self.addresses |= self._authority.addresses
        return self

    @property
    def log(self):
        """All that both have logged, as if one had started the other."""
        return super().log + (self._authority.log if self._authority else "")

    def __enter__(self):
        if self._authority:
            self._authority.start()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        if self._authority:
            self._authority.__exit__(*error)
