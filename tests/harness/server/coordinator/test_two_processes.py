"""The coordinator and the authority as processes of their own: together, apart, and when one of them ends."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lightfr import Device, FileKey
from lightfr.errors import ServerUnavailableError
from lightfr.v1 import error_pb2
from lightfr.v1.enrollment_pb2 import RenewCertificateRequest
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import AuthorityProcess, CoordinatorProcess
from tests.certificates import client_context, client_pem, common_name_of, member_key, signing_request
from tests.harness.server.coordinator.helpers import CHECK_IN
from tests.harness.server.coordinator.live import COORDINATOR, ENROLLMENT, exchange, reason_of

PATIENCE_SECONDS = 30
CLEAR = {"privacy": "clear", "goal": 2, "over_selection": 1, "rounds": 1}


@pytest.fixture
def authority(tmp_path):
    made = Authority.init(tmp_path / "ca", ["localhost", "127.0.0.1"])
    yield made
    made.close()


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "items.tsv"
    path.write_text("".join(f"item-{i}\t{100 - i}\n" for i in range(50)))
    return path


def until(happened):
    """Wait for something that comes soon; says whether it came."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while not happened() and time.monotonic() < ends:
        time.sleep(0.05)
    return happened()


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_gone(pid):
    """Ended; perhaps nobody has asked for its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def enrolled(authority, addresses, folder):
    folder.mkdir()
    invited = authority.invite(addresses["server"], addresses["enrollment"], 600)
    (folder / "invitation.json").write_text(json.dumps(invited))
    return Device.enroll(folder / "invitation.json", folder / "device")


def train(devices):
    """Take part with each device; all uploads together make a version."""
    with ExitStack() as stack:
        clients = []
        for number, device in enumerate(devices):
            place = device.folder.parent
            how = {"key": FileKey(place / "key"), "allow_clear_uploads": True}
            clients.append(stack.enter_context(device.client(place / "data", **how)))
            clients[-1].rate_many([(f"item-{item}", 5) for item in range(number, number + 10)])
            assert clients[-1].sync()
        assert all(client.participate().took_part for client in clients)
        assert until(lambda: clients[0].sync() or clients[0].status().model_version == 2)


def connection_to(address, context):
    parts = urlsplit(address)
    return http.client.HTTPSConnection(parts.hostname, parts.port, context=context, timeout=PATIENCE_SECONDS)


def is_refused(address, context):
    try:
        return exchange(connection_to(address, context), "POST", COORDINATOR + "CheckIn", CHECK_IN)[0] != 200
    except OSError:
        return True


def test_one_command_starts_both_and_devices_enrol_and_train(authority, items, tmp_path):
    with CoordinatorProcess(tmp_path / "data", authority.folder, items, **CLEAR) as both:
        assert set(both.addresses) == {"server", "enrollment", "operations"}
        (child,) = children_of(both.process.pid)
        assert b"ca\0serve" in Path(f"/proc/{child}/cmdline").read_bytes()
        train([enrolled(authority, both.addresses, tmp_path / f"{n}") for n in range(2)])
        assert both.stop() == 0
    assert is_gone(child)
    assert [json.loads(line)["event"] for line in both.log.splitlines()][-2:] == ["authority_stopped", "stopped"]


def test_a_coordinator_trains_without_the_authoritys_folder(authority, items, tmp_path):
    """The folder that it works with is a copy, and there is no CA key on the machine while it runs."""
    with AuthorityProcess(authority.folder) as alone:
        addresses = {"server": "https://127.0.0.1:1", **alone.addresses}
        devices = [enrolled(authority, addresses, tmp_path / f"{n}") for n in range(2)]
        assert alone.stop() == 0
    copied = shutil.copytree(authority.coordinator, tmp_path / "copied")
    authority.close()
    authority.folder.rename(tmp_path / "on another machine")
    with CoordinatorProcess(tmp_path / "data", None, items, credentials=copied, **CLEAR) as coordinator:
        assert set(coordinator.addresses) == {"server", "operations"}
        assert children_of(coordinator.process.pid) == []
        train([device._replace(server=coordinator.addresses["server"]) for device in devices])


def test_a_revocation_reaches_a_coordinator_that_runs(authority, items, tmp_path):
    pem = client_pem(authority, tmp_path)
    context = client_context(authority, pem)
    with CoordinatorProcess(tmp_path / "data", None, items, credentials=authority.coordinator, **CLEAR) as coordinator:
        server = coordinator.addresses["server"]
        assert not is_refused(server, context)
        command = [sys.executable, "-m", "lightfr_harness", "ca", "revoke", authority.folder, common_name_of(pem)]
        subprocess.run(command, check=True, capture_output=True)
        assert until(lambda: is_refused(server, context))


def test_a_revocation_reaches_an_authority_that_runs(authority, tmp_path):
    pem = client_pem(authority, tmp_path)
    context = client_context(authority, pem)
    request = RenewCertificateRequest(signing_request=signing_request(), member_key=member_key()).SerializeToString()
    with AuthorityProcess(authority.folder) as alone:

        def renewal(connection):
            return exchange(connection, "POST", ENROLLMENT + "RenewCertificate", request)[::2]

        assert renewal(connection_to(alone.addresses["enrollment"], context))[0] == 200
        kept = connection_to(alone.addresses["enrollment"], context)
        kept.connect()
        authority.revoke(common_name_of(pem))
        status, body = renewal(kept)
        assert (status, reason_of(body).reason) == (403, error_pb2.ERROR_REASON_IDENTITY), "at once"

        def is_refused_in_the_handshake():
            try:
                renewal(connection_to(alone.addresses["enrollment"], context))
            except OSError:
                return True
            return False

        assert until(is_refused_in_the_handshake)


def test_when_the_authority_ends_the_coordinator_stops_and_says_why(authority, items, tmp_path):
    with CoordinatorProcess(tmp_path / "data", authority.folder, items, **CLEAR) as both:
        (child,) = children_of(both.process.pid)
        os.kill(child, signal.SIGKILL)
        assert both.process.wait(PATIENCE_SECONDS) == 2
    *_, said = both.log.splitlines()
    assert said.startswith(
        "Error: the authority's process ended with exit code -9, so the coordinator was stopped too."
    )


def test_when_the_coordinator_is_killed_the_authority_ends_too(authority, items, tmp_path):
    with CoordinatorProcess(tmp_path / "data", authority.folder, items, **CLEAR) as both:
        (child,) = children_of(both.process.pid)
        both.stop(signal.SIGKILL)
        assert until(lambda: is_gone(child))


def test_an_authority_that_cannot_start_stops_the_coordinator(authority, items, tmp_path):
    (authority.folder / "membership.key").unlink()
    how = {"catalogue": items, "authority": authority.folder, "privacy": "clear"}
    flags = [part for name, value in how.items() for part in (f"--{name}", str(value))]
    ports = ["--port", "0", "--enrollment-port", "0", "--operations-port", "0"]
    command = [sys.executable, "-m", "lightfr_harness", "serve", str(tmp_path / "data"), *flags, *ports]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert ended.returncode == 2
    assert "lacks membership.key" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_authority_serves_while_the_coordinator_is_down(authority, tmp_path):
    with AuthorityProcess(authority.folder) as alone:
        addresses = {"server": "https://127.0.0.1:1", **alone.addresses}
        device = enrolled(authority, addresses, tmp_path / "device")
        with (
            device.client(tmp_path / "user", key=FileKey(tmp_path / "key")) as client,
            pytest.raises(ServerUnavailableError),
        ):
            client.sync()
