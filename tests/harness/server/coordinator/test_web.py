"""Over real mutual TLS, with the standard library's client, as a device would."""

import json
import socket
import ssl
import time
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from lightfr._wire import tls
from lightfr._wire.channel import Channel
from lightfr.errors import IdentityRefusedError
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import enrollment_pb2, error_pb2, manifest_pb2
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.database import SqliteDatabase
from tests.certificates import (
    CLIENT_FAULTS,
    client_context,
    client_pem,
    common_name_of,
    connect,
    member_key,
    signing_request,
)
from tests.harness.server.coordinator.helpers import CAPABILITIES, CHECK_IN, upload_request
from tests.harness.server.coordinator.live import COORDINATOR, ENROLLMENT, PROTO, Live, call, exchange, place, reason_of

# Header, tag and content type of one record of TLS 1.3.
TLS_RECORD_BYTES = 22
MANIFEST = pb.GetManifestRequest(capabilities=CAPABILITIES)


def manifest_of(live, device):
    signed = call(live, device, "GetManifest", MANIFEST, pb.GetManifestResponse).signed_manifest
    return manifest_pb2.Manifest.FromString(signed.manifest)


def test_a_device_takes_part_and_the_next_version_comes_of_it(live, authority, tmp_path):
    devices = [client_context(authority, client_pem(authority, tmp_path)) for _ in range(3)]
    for n, device in enumerate(devices):
        assignment = place(live, device, CHECK_IN)
        body = upload_request(assignment, n)
        receipt = call(live, device, "Upload", body, pb.UploadResponse)
        assert receipt == call(live, device, "Upload", body, pb.UploadResponse)
    request = pb.GetRoundStatusRequest(round_id=assignment.round_id)
    for _ in range(200):
        status = call(live, devices[0], "GetRoundStatus", request, pb.GetRoundStatusResponse)
        if status.state == pb.ROUND_STATE_FINISHED:
            break
        time.sleep(0.02)
    assert (status.next_model_version, status.upload_count, status.has_your_upload) == (2, 3, True)
    assert manifest_of(live, devices[0]).model_version == 2


def test_the_answer_has_few_headers_and_does_not_name_its_software(live, device):
    status, headers, _ = exchange(live.connection(device), "POST", COORDINATOR + "CheckIn", CHECK_IN)
    assert status == 200
    assert sorted(headers.keys()) == ["Content-Length", "Content-Type", "Date"]
    assert headers["Content-Type"] == "application/proto"


def test_an_upload_costs_little_more_than_its_rows(live, device):
    """All bytes at the TLS socket but the RowUpdate and the client's own headers: a device needs about 200 of those."""
    assignment = place(live, device, CHECK_IN)
    body = upload_request(assignment, 1)
    head = f"POST {COORDINATOR}Upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/proto\r\n"
    with connect(device, urlsplit(live.addresses["server"]).port) as secured:
        secured.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = secured.recv(4096)
    rows = pb.UploadRequest.FromString(body).row_update.ByteSize()
    assert answer.startswith(b"HTTP/1.1 200")
    assert len(answer) + len(body) - rows + 2 * TLS_RECORD_BYTES <= 400


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", COORDINATOR + "CheckIn", PROTO, 405),
        ("POST", COORDINATOR + "Nothing", PROTO, 404),
        ("POST", "/", PROTO, 404),
        ("POST", COORDINATOR + "CheckIn", {"Content-Type": "application/json"}, 415),
        ("POST", COORDINATOR + "CheckIn", {}, 415),
        ("POST", COORDINATOR + "CheckIn", PROTO | {"Content-Encoding": "gzip"}, 501),
        ("POST", COORDINATOR + "CheckIn", PROTO | {"Connect-Timeout-Ms": "soon"}, 400),
        ("POST", COORDINATOR + "CheckIn", PROTO | {"Connect-Timeout-Ms": "12345678901"}, 400),
        ("POST", COORDINATOR + "CheckIn", PROTO | {"Connect-Protocol-Version": "2"}, 400),
        ("POST", COORDINATOR + "CheckIn", PROTO | {"Connect-Timeout-Ms": "5000", "Connect-Protocol-Version": "1"}, 200),
        ("POST", ENROLLMENT + "Enroll", PROTO, 404),
    ],
)
def test_what_is_no_connect_unary_request_is_refused(live, device, method, path, headers, status):
    assert exchange(live.connection(device), method, path, CHECK_IN, headers)[0] == status


def test_a_timeout_that_is_over_is_said_so(live, device):
    headers = PROTO | {"Connect-Timeout-Ms": "0"}
    status, _, body = exchange(live.connection(device), "POST", COORDINATOR + "CheckIn", CHECK_IN, headers)
    assert (status, json.loads(body)["code"]) == (504, "deadline_exceeded")


def test_a_device_that_gives_up_while_its_upload_is_stored_has_uploaded(tmp_path, authority, device, monkeypatch):
    """What is stored must come into memory too, else the round that waits for it never ends."""
    write = SqliteDatabase._write_batch

    def slowly(self, batch):
        time.sleep(0.2)  # As a busy disk does.
        return write(self, batch)

    with Live(tmp_path / "folder", authority) as live:
        mine = place(live, device, CHECK_IN)
        monkeypatch.setattr(SqliteDatabase, "_write_batch", slowly)
        headers, body = PROTO | {"Connect-Timeout-Ms": "100"}, upload_request(mine, 2)
        assert exchange(live.connection(device), "POST", COORDINATOR + "Upload", body, headers)[0] == 200
        request = pb.GetRoundStatusRequest(round_id=mine.round_id)
        status = call(live, device, "GetRoundStatus", request, pb.GetRoundStatusResponse)
        assert (status.has_your_upload, status.upload_count) == (True, 1)


def test_errors_are_connect_json_with_the_reason(live, device):
    status, headers, body = exchange(live.connection(device), "POST", COORDINATOR + "CheckIn", b"\xff")
    assert (status, headers["Content-Type"]) == (400, "application/json")
    assert json.loads(body)["code"] == "invalid_argument"
    assert reason_of(body).reason == error_pb2.ERROR_REASON_MALFORMED


def test_a_fault_of_ours_tells_nothing_and_is_logged_without_text(live, device, monkeypatch):
    def fail(*_):
        raise ValueError("secret-of-a-user")

    monkeypatch.setattr(live.coordinator, "retry", fail)
    monkeypatch.setattr(live.coordinator.book, "check_in", fail)
    status, _, body = exchange(live.connection(device), "POST", COORDINATOR + "CheckIn", CHECK_IN)
    assert (status, json.loads(body)) == (500, {"code": "internal", "message": "internal error"})
    assert "secret" not in live.log.getvalue()
    assert '"error":"ValueError","place":"fail:' in live.log.getvalue()


@pytest.mark.parametrize("method", ["CheckIn", "Upload"])
def test_a_body_above_the_limit_is_refused_by_its_announced_size(live, device, method):
    """Nothing but the headers is sent: the answer comes all the same."""
    with connect(device, urlsplit(live.addresses["server"]).port) as secured:
        secured.sendall(
            f"POST {COORDINATOR}{method} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/proto\r\n"
            "Content-Length: 99999999\r\n\r\n".encode()
        )
        answer = secured.recv(4096)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 429")
    detail = reason_of(body)
    assert detail.reason == error_pb2.ERROR_REASON_TOO_LARGE
    assert detail.limit_bytes == (live.coordinator.version.upload_limit_bytes if method == "Upload" else 1024)


def test_a_body_without_a_size_is_refused_while_it_comes(live, device):
    chunks = (bytes(600) for _ in range(1000))
    try:
        status, _, body = exchange(live.connection(device), "POST", COORDINATOR + "CheckIn", chunks)
    except OSError:
        return  # The server may close before the client has written all of it.
    assert (status, reason_of(body).limit_bytes) == (429, 1024)


def test_a_chunked_body_within_the_limit_is_read(live, device):
    halves = iter([CHECK_IN[:3], CHECK_IN[3:]])
    assert exchange(live.connection(device), "POST", COORDINATOR + "CheckIn", halves)[0] == 200


@pytest.mark.parametrize("fault", [*CLIENT_FAULTS, "none"])
def test_a_device_whose_certificate_is_refused_is_told_so(live, authority, tmp_path, fault):
    """By an alert: without one it takes the end for a restart of the server, and tries again later, for ever."""
    pem = None if fault == "none" else client_pem(authority, tmp_path, fault)
    live.refresh()
    channel = Channel(live.addresses["server"], tls.context(authority.folder / "trust.pem", pem))
    with pytest.raises(IdentityRefusedError, match="refused this device's certificate"):
        channel.call("CoordinatorService/CheckIn", b"", 100)


@pytest.mark.parametrize("fault", [*CLIENT_FAULTS, "none"])
def test_a_bad_client_certificate_gets_no_application_byte(live, authority, tmp_path, fault):
    pem = None if fault == "none" else client_pem(authority, tmp_path, fault)
    live.refresh()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        exchange(live.connection(client_context(authority, pem)), "POST", COORDINATOR + "CheckIn", CHECK_IN)
    assert "lightfr_received_bytes_total 0.0" in live.operations("GET", "/metrics")[2].decode()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # An old TLS is the point.
@pytest.mark.parametrize("name", ["server", "enrollment"])
def test_tls_1_2_is_refused(live, authority, tmp_path, name):
    context = client_context(authority, client_pem(authority, tmp_path))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        exchange(live.connection(context, name), "POST", COORDINATOR + "CheckIn", CHECK_IN)


def test_a_device_that_is_revoked_on_an_open_connection_is_refused_by_the_next_request(live, authority, tmp_path):
    pem = client_pem(authority, tmp_path)
    connection = live.connection(client_context(authority, pem))
    paths = [("POST", COORDINATOR + "CheckIn"), ("GET", "/artifacts/" + "0" * 64)]
    connection.request("POST", paths[0][1], CHECK_IN, PROTO)
    assert connection.getresponse().read()
    authority.revoke(common_name_of(pem))
    live.refresh()
    for method, path in paths:
        connection.request(method, path, CHECK_IN if method == "POST" else None, PROTO)
        response = connection.getresponse()
        assert response.status == 403
        assert reason_of(response.read()).reason == error_pb2.ERROR_REASON_IDENTITY
    connection.close()


def test_a_certificate_that_ends_on_an_open_connection_is_refused_by_the_next_request(tmp_path, authority):
    """OpenSSL has looked at it in the handshake, and never looks again."""
    shift = timedelta()
    aging = Authority(authority.folder, now=lambda: datetime.now(UTC) + shift)
    with Live(tmp_path / "folder", aging) as live:
        connection = live.connection(client_context(aging, client_pem(aging, tmp_path)))
        for shift, status in ((timedelta(days=364), 200), (timedelta(days=366), 403)):  # noqa: B007
            for method, path in (("POST", COORDINATOR + "CheckIn"), ("GET", "/artifacts/" + "0" * 64)):
                connection.request(method, path, CHECK_IN if method == "POST" else None, PROTO)
                response = connection.getresponse()
                body = response.read()
                assert response.status == (404 if status == 200 and method == "GET" else status)
                assert status == 200 or reason_of(body).reason == error_pb2.ERROR_REASON_IDENTITY
        connection.close()
    aging.close()


def test_a_device_enrols_on_its_own_port_without_a_certificate(live, authority):
    invitation = authority.invite(live.addresses["server"], live.addresses["enrollment"], 60)
    request = enrollment_pb2.EnrollRequest(
        token=invitation["token"], signing_request=signing_request(), member_key=member_key()
    )
    connection = live.connection(client_context(authority), "enrollment")
    status, _, body = exchange(connection, "POST", ENROLLMENT + "Enroll", request.SerializeToString())
    assert status == 200
    assert len(enrollment_pb2.EnrollResponse.FromString(body).certificates) == 1
    request.signing_request = signing_request()
    status, _, body = exchange(connection, "POST", ENROLLMENT + "Enroll", request.SerializeToString())
    assert (status, reason_of(body).reason) == (403, error_pb2.ERROR_REASON_TOKEN)
    assert invitation["token"] not in live.log.getvalue()


def test_forty_connections_stay_open_and_are_counted(live, device):
    port = urlsplit(live.addresses["server"]).port
    held = [connect(device, port) for _ in range(40)]
    try:
        assert b"lightfr_connections 40.0" in live.operations("GET", "/metrics")[2]
        assert place(live, device, CHECK_IN).model_version == 1
    finally:
        for secured in held:
            secured.close()


def test_rubbish_instead_of_http_does_not_stop_the_others(live, device):
    port = urlsplit(live.addresses["server"]).port
    for rubbish in (
        b"\0" * 100,
        b"GET / HTTP/9\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"A" * 20000,
    ):
        with connect(device, port) as secured:
            secured.sendall(rubbish)
            assert b" 400 " in secured.recv(4096)[:20]
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert place(live, device, CHECK_IN).model_version == 1
