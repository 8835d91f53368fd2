"""PostgreSQL for tests: Debian's server in a temporary folder, as a user of its own, reached by a socket there."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

USER = "postgres"
WANTED = "LIGHTFR_POSTGRES"


def programs():
    """The folder of the newest server that is installed, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


def _with_descendants(pid):
    """A process, its children, theirs and so on, parents first."""
    found = [pid]
    for parent in found:
        with suppress(FileNotFoundError):
            found += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
    return found


class Postgres:
    """A server that can be killed and started again. Its databases are made and named by `database`."""

    def __init__(self, **settings):
        self._bin, self._process, self._made = programs(), None, 0
        if self._bin is None:
            raise RuntimeError("PostgreSQL is not installed: apt-get install postgresql")
        self.folder = Path(tempfile.mkdtemp(prefix="lightfr-postgres-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER)
        self._run("initdb", "--pgdata", self.folder / "data", "--auth", "trust", "--username", USER)
        self._settings = {"listen_addresses": "", "unix_socket_directories": self.folder, **settings}

    def _command(self, program, *arguments):
        # PostgreSQL refuses to run as root.
        user = ("runuser", "-u", USER, "--") if os.geteuid() == 0 else ()
        return [*user, str(self._bin / program), *map(str, arguments)]

    def _run(self, program, *arguments):
        subprocess.run(self._command(program, *arguments), check=True, capture_output=True, cwd="/")

    def start(self):
        # It begins by reading its log from the last checkpoint on, which takes a while on a busy machine.
        for _ in range(3000):
            # After a kill its children may hold its memory for a moment, and then it does not start.
            if self._process is None or self._process.poll() is not None:
                self._launch()
            try:
                self._run("pg_isready", "--host", self.folder, "--username", USER)
                return self
            except subprocess.CalledProcessError:
                time.sleep(0.1)
        raise RuntimeError((self.folder / "log").read_text()[-2000:])

    def _launch(self):
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            command = self._command("postgres", "-D", self.folder / "data", *options)
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", start_new_session=True)

    def database(self):
        """The address of a new database."""
        self._made += 1
        name = f"lightfr{self._made}"
        self._run("createdb", "--host", self.folder, "--username", USER, name)
        return f"postgresql:///{name}?host={self.folder}&user={USER}"

    def freeze(self):
        """Let it do nothing, with all its connections open."""
        self._signal(signal.SIGSTOP)

    def thaw(self):
        self._signal(signal.SIGCONT)

    def _signal(self, number):
        # Its children have sessions of their own.
        for pid in _with_descendants(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self):
        """As the loss of its machine: no process of it does anything more."""
        # A child that outlived it would write beside the next server.
        self._signal(signal.SIGKILL)
        self._process.wait()
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def close(self):
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
