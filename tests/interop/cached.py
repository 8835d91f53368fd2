"""A coordinator behind the cache of docs/cache.md: its very commands and nginx.conf, with other ports and paths."""

import hashlib
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from typer.testing import CliRunner

from lightfr import Client, FileKey, cli, device
from lightfr_harness.cli import app
from lightfr_harness.devices.link import Link, Loop
from lightfr_harness.server.coordinator import downloads
from lightfr_harness.server.coordinator.options import ItemList, Settings
from tests.harness.server.coordinator.live import Live, exchange

DOCUMENT = (Path(__file__).parents[2] / "docs/cache.md").read_text()
(CONFIGURATION,) = re.findall(r"```nginx\n(.*?)```", DOCUMENT, re.DOTALL)
COMMANDS = [shlex.split(line, comments=True) for line in re.findall(r"^    (lightfr.*)$", DOCUMENT, re.M)]
TIMEOUT_SECONDS = 20
SLICE_BYTES = 2**20
# Long ids that do not shrink make the catalogue the large artifact: three slices of the cache, without a large model.
ITEMS = ItemList([hashlib.shake_256(f"{number}".encode()).hexdigest(120) for number in range(20_000)], None, "0" * 64)
SETTINGS = Settings(bits=64, gate=0, seed=1, integer_ids=False, privacy="clear")
LOG_LINE = re.compile(r'\S+ (?P<method>\S+) (?P<uri>\S+) "(?P<range>.*)" (?P<status>\d+) (?P<sent>\d+) (?P<cache>\S+)')


def eventually(holds):
    """Wait until something is so, and return it."""
    ends = time.monotonic() + TIMEOUT_SECONDS
    while not (found := holds()):
        assert time.monotonic() < ends, "it has not come so in time"
        time.sleep(0.01)
    return found


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def filled_in(text, changes):
    """The text with every name replaced; each must be there, so that the document and the tests stay together."""
    for name, value in changes.items():
        assert name in text, f"docs/cache.md does not have {name!r} any more"
        text = text.replace(name, value)
    return text


class Device:
    """One device, whose client can be opened again and again."""

    def __init__(self, folder, enrolled, server):
        self._folder, self.models = folder, folder / "data" / "models"
        self._how = {"server": server, "identity": enrolled.identity, "trust": enrolled.trust}

    def open(self):
        return Client.open(self._folder / "data", key=FileKey(self._folder / "key"), **self._how)


class CutLink(Link):
    """The link to the cache. After its last cut nothing gets through it, nor through the one to the coordinator."""

    other, is_last_cut = None, False

    async def _join(self, device_in, device_out):
        try:
            await super()._join(device_in, device_out)
        finally:
            if self.is_last_cut:
                self.break_after = self.other.break_after = 0


class Nginx:
    """A real nginx in a folder of its own."""

    def __init__(self, folder, port, coordinator_port):
        program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
        assert program, "this test needs nginx; on Debian: apt-get install nginx"
        self.port, self.log_file = port, folder / "artifacts.log"
        temporary = "".join(
            f"    {kind}_temp_path {folder}/temporary;\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        changes = {
            "http {\n": "http {\n" + temporary,
            "/etc/lightfr-cache/": f"{folder}/",
            "/var/cache/lightfr": f"{folder}/kept",
            "/var/log/nginx/": f"{folder}/",
            "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
            # An address for the connection, the name for the certificate.
            "server coordinator.example:8443;": f"server 127.0.0.1:{coordinator_port};",
            "coordinator.example": "localhost",
            "cache.example": "localhost",
        }
        (folder / "nginx.conf").write_text(filled_in(CONFIGURATION, changes))
        how = f"daemon off; pid {folder}/nginx.pid;" + ("user root;" if os.geteuid() == 0 else "")
        self._command = [program, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log", "-g", how]

    def __enter__(self):
        self._process = subprocess.Popen(self._command)
        eventually(self._listens)
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(TIMEOUT_SECONDS)

    def _listens(self):
        assert self._process.poll() is None, "nginx ended at once; its error.log says why"
        with closing(socket.socket()) as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0

    @contextmanager
    def stopped(self):
        """Not there for a while."""
        self.__exit__()
        yield
        self.__enter__()

    def reload(self):
        """Read the configuration, certificates and lists anew, and wait until nobody goes by the old ones."""
        before = self._workers()
        self._process.send_signal(signal.SIGHUP)
        eventually(lambda: (now := self._workers()) and not now & before)

    def _workers(self):
        process = self._process.pid
        return set(Path(f"/proc/{process}/task/{process}/children").read_text().split())

    def log(self, digest=""):
        """Requests that are over, in that order; of one artifact, or of all."""
        lines = [LOG_LINE.fullmatch(line) for line in self.log_file.read_text().splitlines()]
        assert all(lines)
        return [line for line in lines if line["uri"].endswith(digest)]


class Cached:
    """Coordinator, cache, and between devices and each of them a link that can be cut."""

    def __init__(self, folder, authority, monkeypatch):
        self.folder, self.authority = folder, authority
        self.asked = []
        self._devices = 0
        monkeypatch.setattr(downloads, "answer", self._watched(downloads.answer))

    def _watched(self, answer):
        async def watched(request, artifacts, digest):
            self.asked.append((digest, request.headers.get("Range")))
            return await answer(request, artifacts, digest)

        return watched

    def __enter__(self):
        with ExitStack() as opening:
            port = free_port()
            loop = opening.enter_context(Loop())
            self.cache_link = opening.enter_context(CutLink(loop, ("127.0.0.1", port)))
            address = f"https://localhost:{self.cache_link.port}"
            how = {"goal": 1000, "artifacts_address": address}
            self.live = opening.enter_context(Live(self.folder / "live", self.authority, ITEMS, SETTINGS, **how))
            coordinator_port = urlsplit(self.live.addresses["server"]).port
            self.own_link = opening.enter_context(Link(loop, ("127.0.0.1", coordinator_port)))
            self.cache_link.other = self.own_link
            self._set_up()
            self.nginx = opening.enter_context(Nginx(self.folder / "cache", port, coordinator_port))
            self._opened = opening.pop_all()
        return self

    def __exit__(self, *_):
        self._opened.close()

    def _set_up(self):
        """Run the commands of the document."""
        certify, invite, join, serve = COMMANDS
        assert serve[-2:] == ["--artifacts-address", "https://cache.example:443"]
        cache = self.folder / "cache"
        named = {"CA": self.authority.folder, "cache.example": "localhost", "cache": cache}
        named |= {"https://coordinator.example:8443": self.live.addresses["server"]}
        named |= {"https://coordinator.example:8444": self.live.addresses["enrollment"]}
        assert CliRunner().invoke(app, [str(named.get(word, word)) for word in certify[1:]]).exit_code == 0
        printed = CliRunner().invoke(app, [str(named.get(word, word)) for word in invite[1:] if word != ">"][:-1])
        (cache / "invitation.json").write_text(printed.stdout)
        named = {"/etc/lightfr-cache": cache, "invitation.json": cache / "invitation.json"}
        assert cli.main([str(named.get(word, word)) for word in join[1:]]) == 0

    def mend(self):
        """Let all links work again."""
        self.cache_link.is_last_cut = False
        self.cache_link.break_after = self.own_link.break_after = None

    def publish(self, content):
        """Have the coordinator offer a file; returns its digest."""
        digest = hashlib.sha256(content).hexdigest()
        (self.live.folder / "artifacts" / digest).write_bytes(content)
        return digest

    def asked_for(self, digest):
        """The ranges in which the coordinator was asked for an artifact, in that order; None for the whole."""
        return [asked_range for asked, asked_range in self.asked if asked == digest]

    def get(self, context, digest, method="GET", **headers):
        """One request to the cache: (status, headers, body)."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPSConnection("localhost", self.nginx.port, context=context, timeout=TIMEOUT_SECONDS)
        return exchange(connection, method, f"/artifacts/{digest}", headers=named)

    def new_device(self):
        """Enrol a device, which finds the coordinator behind its link."""
        self._devices += 1
        folder = self.folder / f"device{self._devices}"
        folder.mkdir()
        addresses = self.live.addresses
        invitation = self.authority.invite(addresses["server"], addresses["enrollment"], 600)
        (folder / "invitation.json").write_text(json.dumps(invitation))
        return Device(
            folder, device.Device.enroll(folder / "invitation.json", folder), f"https://localhost:{self.own_link.port}"
        )

    @property
    def manifest(self):
        return self.live.coordinator.version.manifest


def slices(size_bytes):
    """The ranges that a cache without the file asks the coordinator for."""
    return [f"bytes={start}-{start + SLICE_BYTES - 1}" for start in range(0, size_bytes, SLICE_BYTES)]
