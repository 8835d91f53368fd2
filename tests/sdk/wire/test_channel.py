"""Calls and downloads: what is retried, what is refused, and what an error says."""

import base64
import hashlib
import json
import socket

import pytest

from lightfr._wire import channel as channels
from lightfr._wire import coordinator, tls
from lightfr._wire.channel import Channel
from lightfr._wire.downloads import download
from lightfr.errors import (
    ArtifactError,
    IdentityRefusedError,
    ProtocolError,
    RefusedError,
    ServerUnavailableError,
    StoreWriteError,
    UpdateRequiredError,
)
from lightfr.v1 import coordinator_pb2, error_pb2, manifest_pb2
from tests.certificates import client_pem, credentials_of
from tests.sdk.wire.servers import ScriptedServer

CALL = "CoordinatorService/GetManifest"


@pytest.fixture(scope="module")
def identity(authority, tmp_path_factory):
    return client_pem(authority, tmp_path_factory.mktemp("identity"))


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(channels, "_FIRST_PAUSE", 0.001)


@pytest.fixture
def serve(authority, identity):
    """Start a server with this script and open a channel to it."""
    started = []

    def start(answer):
        server = ScriptedServer(credentials_of(authority).context(), answer)
        started.append((server.__enter__(), Channel(server.url, tls.context(authority.folder / "trust.pem", identity))))
        return started[-1]

    yield start
    for server, channel in started:
        channel.close()
        server.__exit__()


def error(code, status, *, reason=0, **fields):
    value = base64.b64encode(error_pb2.ErrorDetail(reason=reason, **fields).SerializeToString()).decode().rstrip("=")
    body = {"code": code, "message": "told", "details": [{"type": "lightfr.v1.ErrorDetail", "value": value}]}
    return status, {"Content-Type": "application/json"}, json.dumps(body).encode()


def test_a_call_is_a_connect_unary_request(serve):
    server, channel = serve(lambda *_: (200, {}, b"out"))
    assert channel.call(CALL, b"in", 3) == b"out"
    ((verb, path, headers, body),) = server.requests
    assert (verb, path, body) == ("POST", "/lightfr.v1.CoordinatorService/GetManifest", b"in")
    assert headers["Content-Type"] == "application/proto"
    assert headers["Connect-Protocol-Version"] == "1"
    assert float(headers["Connect-Timeout-Ms"]) / 1000 < channels._SOCKET_TIMEOUT_SECONDS


def test_one_connection_serves_many_calls(serve):
    server, channel = serve(lambda *_: (200, {}, b""))
    for _ in range(5):
        channel.call(CALL, b"", 0)
    assert (len(server.requests), server.connections) == (5, 1)


def test_a_connection_that_the_server_closed_meanwhile_is_opened_anew(serve, monkeypatch):
    """At once: it is no failed try."""
    monkeypatch.setattr(channels, "_TRIES", 1)
    server, channel = serve(lambda *_: (200, {}, b"x"))
    assert channel.call(CALL, b"", 1) == b"x"
    channel._connection.sock.shutdown(socket.SHUT_RDWR)
    assert channel.call(CALL, b"", 1) == b"x"
    assert (len(server.requests), server.connections) == (2, 2)


def test_an_answer_above_its_limit_is_refused_and_the_connection_given_up(serve):
    server, channel = serve(lambda *_: (200, {}, bytes(200)))
    with pytest.raises(ProtocolError, match="longer than 100 bytes"):
        channel.call(CALL, b"", 100)
    with pytest.raises(ProtocolError):
        channel.call(CALL, b"", 100)
    assert server.connections == 2


def test_an_answer_that_breaks_off_is_asked_for_again(serve):
    """Its beginning may well parse: nothing at all is a whole message."""
    whole, cut = (200, {}, b"whole"), {"Content-Length": "5", "Connection": "close"}
    answers = iter([(200, cut, b""), (200, cut, b"whol"), whole, *[(200, cut, b"w")] * 3])
    server, channel = serve(lambda *_: next(answers))
    assert channel.call(CALL, b"", 5) == b"whole"
    with pytest.raises(ServerUnavailableError, match="broke off after 1 bytes"):
        channel.call(CALL, b"", 5)
    assert len(server.requests) == 6


@pytest.mark.parametrize("status", [200, 409])
def test_an_answer_that_breaks_off_within_its_headers_is_asked_for_again(serve, status):
    """http.client takes the end of the connection for the end of the headers, and there was no body yet."""
    answers = [(status, {"Content-Length": None, "Connection": "close"}, b""), (200, {}, b"whole")]
    _, channel = serve(lambda *_: answers.pop(0))
    assert channel.call(CALL, b"", 5) == b"whole"


def test_a_refusal_that_breaks_off_is_asked_for_again(serve):
    """A device leaves its round when it is refused, so half a refusal must not count as one."""
    answers = [(409, {"Content-Length": "200", "Connection": "close"}, b'{"code":"abor'), (200, {}, b"whole")]
    _, channel = serve(lambda *_: answers.pop(0))
    assert channel.call(CALL, b"", 5) == b"whole"


def test_a_refusal_without_end_is_a_refusal(serve, monkeypatch):
    """Only its beginning is read, whatever comes behind."""
    monkeypatch.setattr(channels, "_TRIES", 1)
    _, channel = serve(lambda *_: (409, {}, b"x" * (channels._ERROR_LIMIT_BYTES + 1)))
    with pytest.raises(ProtocolError, match="409"):
        channel.call(CALL, b"", 5)


def test_an_answer_whose_end_cannot_be_told_is_refused(serve):
    _, channel = serve(lambda *_: (200, {"Content-Length": None, "Connection": "close"}, b"all?"))
    with pytest.raises(ProtocolError, match="how long"):
        channel.call(CALL, b"", 5)


def test_an_answer_in_chunks_is_taken(serve):
    chunks = {"Content-Length": None, "Transfer-Encoding": "chunked"}
    _, channel = serve(lambda *_: (200, chunks, b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"))
    assert channel.call(CALL, b"", 5) == b"abcde"


def test_a_server_that_is_busy_is_asked_again_and_then_named_unavailable(serve):
    server, channel = serve(lambda *_: error("unavailable", 503, reason=error_pb2.ERROR_REASON_OVERLOADED))
    with pytest.raises(ServerUnavailableError, match="503"):
        channel.call(CALL, b"", 0)
    assert len(server.requests) == 3


def test_a_server_that_recovers_is_not_given_up(serve):
    answers = iter([error("unavailable", 503), error("unavailable", 503), (200, {}, b"at last")])
    _, channel = serve(lambda *_: next(answers))
    assert channel.call(CALL, b"", 9) == b"at last"


def test_nobody_there_is_unavailable(authority, identity):
    channel = Channel("https://localhost:1", tls.context(authority.folder / "trust.pem", identity))
    with pytest.raises(ServerUnavailableError, match="ConnectionRefusedError"):
        channel.call(CALL, b"", 0)


def test_who_has_no_connection_has_nothing_to_interrupt(serve):
    server, channel = serve(lambda *_: (200, {"Content-Type": "application/proto"}, b""))
    channel.interrupt()
    assert server.requests == []


def test_a_refusal_carries_connects_code_and_the_finer_reason(serve):
    server, channel = serve(lambda *_: error("failed_precondition", 400, reason=error_pb2.ERROR_REASON_ROUND_CLOSED))
    with pytest.raises(RefusedError, match="told") as refused:
        channel.call(CALL, b"", 0)
    assert (refused.value.code, refused.value.reason) == ("failed_precondition", "ROUND_CLOSED")
    assert (len(server.requests), server.connections) == (1, 1)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (error_pb2.ERROR_REASON_IDENTITY, IdentityRefusedError),
        (error_pb2.ERROR_REASON_WIRE_VERSION, UpdateRequiredError),
    ],
)
def test_some_reasons_have_errors_of_their_own(serve, reason, kind):
    _, channel = serve(lambda *_: error("permission_denied", 403, reason=reason, wire_versions=[7]))
    with pytest.raises(kind):
        channel.call(CALL, b"", 0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"code": 5}',
        b"\xff\xfe",
        b'{"code": "x", "details": 3}',
        b'{"code": "x", "details": [{"type": "lightfr.v1.ErrorDetail", "value": "!!"}]}',
        b'{"code": "x", "details": [{"type": "lightfr.v1.ErrorDetail", "value": "/w"}]}',
        b"[" * 50_000,
    ],
)
def test_an_answer_that_is_no_connect_error_is_still_a_refusal(serve, body):
    _, channel = serve(lambda *_: (400, {}, body))
    with pytest.raises(RefusedError):
        channel.call(CALL, b"", 0)


def test_what_a_server_says_is_printed_short_and_without_control_characters(serve):
    loud = "\x1b[31m" + "x" * 5000
    body = json.dumps({"code": loud, "message": loud}).encode()
    _, channel = serve(lambda *_: (500, {}, body))
    with pytest.raises(RefusedError) as refused:
        channel.call(CALL, b"", 0)
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 500


def test_a_receipt_for_other_bytes_is_no_receipt(serve):
    answer = coordinator_pb2.UploadResponse(upload_id=bytes(16), request_sha256=bytes(32)).SerializeToString()
    _, channel = serve(lambda *_: (200, {}, answer))
    with pytest.raises(ProtocolError, match="another upload"):
        coordinator.upload(channel, b"request")


@pytest.mark.parametrize(
    "answer",
    [
        coordinator_pb2.CheckInResponse(),
        coordinator_pb2.CheckInResponse(assignment=coordinator_pb2.Assignment(round_id=bytes(15))),
        coordinator_pb2.CheckInResponse(
            assignment=coordinator_pb2.Assignment(round_id=bytes(16), manifest_sha256=bytes(31), deadline_ms=5)
        ),
        coordinator_pb2.CheckInResponse(
            assignment=coordinator_pb2.Assignment(round_id=bytes(16), manifest_sha256=bytes(32))
        ),
        coordinator_pb2.CheckInResponse(retry_window=coordinator_pb2.RetryWindow(earliest_ms=2, latest_ms=1)),
        coordinator_pb2.CheckInResponse(retry_window=coordinator_pb2.RetryWindow(latest_ms=86_400_001)),
    ],
)
def test_a_check_in_answer_outside_its_domain_is_refused(serve, answer):
    _, channel = serve(lambda *_: (200, {}, answer.SerializeToString()))
    with pytest.raises(ProtocolError):
        coordinator.check_in(channel, 0, [])


def test_an_unknown_reason_to_wait_still_means_wait(serve):
    window = coordinator_pb2.RetryWindow(earliest_ms=1000, latest_ms=2000, reason=99)
    _, channel = serve(lambda *_: (200, {}, coordinator_pb2.CheckInResponse(retry_window=window).SerializeToString()))
    assert coordinator.check_in(channel, 0, []) == coordinator.RetryWindow(1.0, 2.0, "round_full")


CONTENT = bytes(range(256)) * 1000
NAME = hashlib.sha256(CONTENT).hexdigest()
ARTIFACT = manifest_pb2.Artifact(sha256=bytes.fromhex(NAME), size_bytes=len(CONTENT))


def ranged(_verb, path, headers, _body):
    """A server that does ranges."""
    assert path == f"/artifacts/{NAME}"
    if "Range" not in headers:
        return 200, {}, CONTENT
    assert headers["If-Range"] == f'"{NAME}"'
    start = int(headers["Range"].removeprefix("bytes=").removesuffix("-"))
    return 206, {"Content-Range": f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"}, CONTENT[start:]


def test_a_download_is_checked_and_named_by_its_digest(serve, tmp_path):
    server, channel = serve(ranged)
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT
    assert [file.name for file in tmp_path.iterdir()] == [NAME]
    download(channel, ARTIFACT, tmp_path)
    assert len(server.requests) == 1


@pytest.mark.parametrize("have", [1, 65_536, len(CONTENT) - 1, len(CONTENT)])
def test_a_download_goes_on_at_the_byte_where_it_broke(serve, tmp_path, have):
    server, channel = serve(ranged)
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT[:have])
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT
    asked = [headers["Range"] for _, _, headers, _ in server.requests]
    assert asked == ([f"bytes={have}-"] if have < len(CONTENT) else [])


def test_a_server_without_ranges_sends_the_whole_again(serve, tmp_path):
    _, channel = serve(lambda *_: (200, {}, CONTENT))
    (tmp_path / f"{NAME}.part").write_bytes(b"something else")
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_longer_than_the_whole_is_begun_anew(serve, tmp_path):
    _, channel = serve(ranged)
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT + b"!")
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT


def test_a_download_that_breaks_off_again_and_again_still_ends(serve, tmp_path):
    """Each answer promises all and stops after 40,000 bytes."""

    def stingy(*request):
        status, headers, content = ranged(*request)
        if len(content) <= 40_000:
            return status, headers, content
        return status, {**headers, "Content-Length": str(len(content)), "Connection": "close"}, content[:40_000]

    server, channel = serve(stingy)
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT
    assert len(server.requests) == 7


def test_a_download_without_progress_is_given_up_and_its_beginning_kept(serve, tmp_path):
    broken = {"Content-Length": str(len(CONTENT)), "Connection": "close"}
    answers = iter([(200, broken, CONTENT[:9])])
    nothing = (503, {"Connection": "close"}, b"")
    server, channel = serve(lambda *_: next(answers, nothing))
    with pytest.raises(ServerUnavailableError):
        download(channel, ARTIFACT, tmp_path)
    assert (tmp_path / f"{NAME}.part").read_bytes() == CONTENT[:9]
    assert len(server.requests) == 4


@pytest.mark.parametrize("wrong", [CONTENT[:-1] + b"?", CONTENT + b"?"])
def test_other_content_than_the_manifest_names_is_thrown_away(serve, tmp_path, wrong):
    _, channel = serve(lambda *_: (200, {}, wrong))
    with pytest.raises(ArtifactError):
        download(channel, ARTIFACT, tmp_path)
    assert not (tmp_path / NAME).exists()


def test_a_download_without_end_is_stopped_at_the_size_of_the_manifest(serve, tmp_path):
    """The server says nothing about the length and goes on: the disk must not fill up."""
    endless = {"Content-Length": None, "Connection": "close"}
    _, channel = serve(lambda *_: (200, endless, CONTENT * 20))
    with pytest.raises(ArtifactError, match=f"longer than the {len(CONTENT)} bytes"):
        download(channel, ARTIFACT, tmp_path)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= len(CONTENT)


def test_a_part_that_went_bad_on_disk_is_not_kept_and_the_next_try_succeeds(serve, tmp_path):
    _, channel = serve(ranged)
    (tmp_path / f"{NAME}.part").write_bytes(b"?" * 100)
    with pytest.raises(ArtifactError):
        download(channel, ARTIFACT, tmp_path)
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT


def test_a_full_disk_is_not_blamed_on_the_server(serve, tmp_path, monkeypatch):
    from lightfr import _files

    def full(*_):
        raise OSError(28, "No space left on device")

    _, channel = serve(ranged)
    monkeypatch.setattr(_files, "write", full)
    with pytest.raises(StoreWriteError, match="No space left"):
        download(channel, ARTIFACT, tmp_path)
