"""What docs/operating.md tells an operator to do: its commands as printed, its units, and its dashboard."""

import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operating.md").read_text()
EXAMPLES = ROOT / "examples/operator"
COMMANDS = "".join(re.findall(r"^```shell\n(.*?)^```", PAGE, re.M | re.S))
QUERIES = [
    target["expr"]
    for panel in json.loads((EXAMPLES / "grafana.json").read_text())["panels"]
    for target in panel["targets"]
]
BIN = Path(sys.executable).parent
# The page's ports are given: two workers that both ran its commands would be in each other's way.
LOCK = Path(tempfile.gettempdir()) / "lightfr-ports-of-docs-operating"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """The folder in which the page's commands were run, and what they printed; the coordinator is still there."""
    with LOCK.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield from _served(tmp_path_factory.mktemp("service"))


def _served(folder):
    environment = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    shell = subprocess.Popen(
        ["bash", "-e", "-o", "pipefail", "-c", f"exec >printed\n{COMMANDS}\ntouch done; wait"],
        cwd=folder, env=environment, process_group=0,
    )  # fmt: skip
    try:
        ends = time.monotonic() + 120
        while not (folder / "done").exists():
            went_well = shell.poll() is None and time.monotonic() < ends
            assert went_well, f"a command failed after: {(folder / 'printed').read_text()[-500:]}"
            time.sleep(0.1)
        yield folder, (folder / "printed").read_text().splitlines()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGTERM)
            shell.wait(60)
            # Until the last of them has given its port back.
            for _ in range(600):
                os.killpg(shell.pid, 0)
                time.sleep(0.1)


def test_the_commands_of_the_page_end_in_recommendations_and_metrics(service):
    folder, printed = service
    assert [line.split()[0] for line in printed if re.fullmatch(r".* \d+%  item-\d+", line)] == [
        str(n) for n in range(1, 11)
    ]
    assert printed[-1] == "lightfr_model_version 1.0"
    events = [json.loads(line)["event"] for line in (folder / "coordinator.log").read_text().splitlines()]
    assert "started" in events


def answered(url):
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own loopback addresses
        return json.load(answer)


def test_a_real_prometheus_answers_every_query_of_the_dashboard(service, tmp_path):
    """With the printed configuration, but for how often it scrapes."""
    config = (EXAMPLES / "prometheus.yml").read_text()
    assert "scrape_interval: 15s" in config
    (tmp_path / "prometheus.yml").write_text(config.replace("15s", "1s"))
    prometheus = subprocess.Popen(
        ["prometheus", "--config.file", tmp_path / "prometheus.yml", "--storage.tsdb.path", tmp_path / "data",
         "--web.listen-address", "127.0.0.1:9099", "--log.level", "error"],
    )  # fmt: skip
    try:
        known = known_metrics("http://127.0.0.1:9099/api/v1")
        for query in QUERIES:
            found = answered(f"http://127.0.0.1:9099/api/v1/query?{urllib.parse.urlencode({'query': query})}")
            assert found["status"] == "success", query
            named = set(re.findall(r"\blightfr_\w+", query))
            # Evaluations come after ten rounds of 256 devices: these names are held against the coordinator's own.
            assert named <= known, f"{query} asks for what the coordinator does not have"
    finally:
        prometheus.kill()
        prometheus.wait()


def known_metrics(api):
    """Names of all series that were scraped, and those that the coordinator describes but has no value for yet."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            names = set(answered(f"{api}/label/__name__/values")["data"])
        except OSError:
            names = set()
        if "lightfr_model_version" in names:
            described = {one["metric"]: one["type"] for one in answered(f"{api}/targets/metadata")["data"]}
            parts = {"histogram": ("_bucket", "_sum", "_count")}
            return names | {name + part for name, kind in described.items() for part in parts.get(kind, ("",))}
        time.sleep(0.2)
    raise AssertionError("Prometheus scraped nothing")


@pytest.mark.parametrize("unit", sorted(EXAMPLES.glob("*.service")), ids=lambda unit: unit.stem)
def test_systemd_accepts_the_units(unit, tmp_path):
    """With the program of this environment in the place of the one that the page installs."""
    (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/lightfr/bin", str(BIN)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / unit.name], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if unit.name in line or "lightfr" in line]
    assert (done.returncode, ours) == (0, [])


@pytest.mark.parametrize("unit", sorted(EXAMPLES.glob("*.service")), ids=lambda unit: unit.stem)
def test_the_program_has_every_option_that_a_unit_starts_it_with(unit):
    (command,) = re.findall(r"^ExecStart=\S+/lightfr-harness (.*)$", unit.read_text(), re.M)
    words = command.split()
    subcommand = itertools.takewhile(lambda word: not word.startswith("/"), words)
    shown = subprocess.run(
        [BIN / "lightfr-harness", *subcommand, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "200"},
    ).stdout
    options = [word for word in words if word.startswith("--")]
    assert options
    assert [option for option in options if option not in shown] == []


def test_the_page_describes_every_event_of_the_log():
    described = set(re.findall(r"`(\w+)`", PAGE.split("### The log")[1].split("## 4.")[0]))
    source = ROOT / "harness/lightfr_harness/server"
    logged = {
        name
        for path in source.rglob("*.py")
        for name in re.findall(r'(?:log|_log)\.(?:event|fault)\(\s*"(\w+)"', path.read_text())
    }
    assert len(logged) > 10
    assert logged - described == set()


def test_the_tools_that_these_tests_need_are_there():
    assert [tool for tool in ("prometheus", "systemd-analyze", "curl") if shutil.which(tool) is None] == []
