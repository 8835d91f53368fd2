"""Calls: what is retried, what is refused, and what an error says."""

import base64
import json
import socket
import ssl
import threading
from contextlib import suppress
from types import SimpleNamespace

import pytest

from lightfr._wire import channel as channels
from lightfr._wire import tls
from lightfr._wire.channel import Channel
from lightfr.errors import (
    IdentityRefusedError,
    ProtocolError,
    RefusedError,
    ServerNotTrustedError,
    ServerUnavailableError,
    UpdateRequiredError,
)
from lightfr.v1 import error_pb2
from tests.campaigns.device_targets import WholeAnswer

CALL = "CoordinatorService/GetManifest"
pytestmark = pytest.mark.usefixtures("impatient")


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
    assert headers["Connect-Timeout-Ms"] == "30000", "as the protocol says of our device"
    assert channels._SOCKET_TIMEOUT_SECONDS > 30, "the server gives up first"
    assert "Accept-Encoding" not in headers, "answers are not compressed"


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


def test_another_identity_is_shown_from_the_next_request_on(serve, authority, identity):
    server, channel = serve(lambda *_: (200, {}, b"x"))
    channel.call(CALL, b"", 1)
    channel.use_identity(tls.context(authority.folder / "trust.pem", identity))
    channel.call(CALL, b"", 1)
    channel.call(CALL, b"", 1)
    assert (len(server.requests), server.connections) == (3, 2)


def test_an_answer_above_its_limit_is_refused_and_the_connection_given_up(serve):
    server, channel = serve(lambda *_: (200, {}, bytes(200)))
    with pytest.raises(ProtocolError, match="longer than 100 bytes"):
        channel.call(CALL, b"", 100)
    with pytest.raises(ProtocolError):
        channel.call(CALL, b"", 100)
    assert server.connections == 2


@pytest.mark.parametrize("size_bytes", [100, 101, 102, 1000])
def test_of_an_answer_that_is_too_long_one_byte_beyond_the_limit_is_read(size_bytes):
    answer = WholeAnswer(bytes(size_bytes))
    with suppress(ProtocolError):
        assert channels._read(answer, 100) == bytes(100)
    assert answer.tell() == min(size_bytes, 101)


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


@pytest.mark.parametrize(("size_bytes", "code"), [(65_536, "aborted"), (65_537, "HTTP 409")])
def test_a_refusal_is_read_up_to_the_size_that_the_protocol_states_and_no_further(serve, size_bytes, code):
    _, channel = serve(lambda *_: (409, {}, b'{"code": "aborted"' + b" " * (size_bytes - 19) + b"}"))
    with pytest.raises(RefusedError) as refused:
        channel.call(CALL, b"", 5)
    assert refused.value.code == code


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


def test_between_tries_a_device_waits_for_a_random_time_that_may_be_twice_as_long_each_time(serve, monkeypatch):
    """At first up to half a second."""
    pauses, slept = [], []
    monkeypatch.setattr(channels, "_FIRST_PAUSE", 0.5)
    monkeypatch.setattr("random.uniform", lambda low, high: pauses.append((low, high)) or len(pauses))
    monkeypatch.setattr(channels, "time", SimpleNamespace(sleep=slept.append, monotonic=lambda: 0.0))
    _, channel = serve(lambda *_: error("unavailable", 503))
    with pytest.raises(ServerUnavailableError):
        channel.call(CALL, b"", 0)
    assert pauses == [(0, 0.5), (0, 1.0)]
    assert slept == [1, 2]


def test_nobody_there_is_unavailable(authority, identity):
    channel = Channel("https://localhost:1", tls.context(authority.folder / "trust.pem", identity))
    with pytest.raises(ServerUnavailableError, match=r"no answer from localhost:1 \(ConnectionRefusedError\)"):
        channel.call(CALL, b"", 0)


def test_who_has_no_connection_has_nothing_to_interrupt(serve):
    server, channel = serve(lambda *_: (200, {"Content-Type": "application/proto"}, b""))
    channel.interrupt()
    assert server.requests == []


def test_a_channel_that_was_stopped_begins_no_call_nor_does_one_that_was_made_from_it(serve):
    server, channel = serve(lambda *_: (200, {}, b"x"))
    channel.stop = threading.Event()
    other = channel.to(server.url, 5.0)
    assert (channel.call(CALL, b"", 1), other.call(CALL, b"", 1)) == (b"x", b"x")
    channel.stop.set()
    for stopped in (channel, other):
        with pytest.raises(ServerUnavailableError, match="the call was interrupted"):
            stopped.call(CALL, b"", 1)
    other.close()
    assert len(server.requests) == 2


def test_a_call_that_fails_after_the_channel_was_stopped_is_not_tried_again(serve):
    stop = threading.Event()
    server, channel = serve(lambda *_: stop.set() or error("unavailable", 503))
    channel.stop = stop
    with pytest.raises(ServerUnavailableError, match="503"):
        channel.call(CALL, b"", 0)
    assert len(server.requests) == 1


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_call_that_waits_is_woken_up_and_tries_again_unless_the_channel_was_stopped(serve, is_stopped):
    asked, go_on, results = threading.Event(), threading.Event(), []

    def hold_the_first(*_):
        if not asked.is_set():
            asked.set()
            go_on.wait(20)
        return 200, {}, b"x"

    def call():
        try:
            results.append(channel.call(CALL, b"", 1))
        except ServerUnavailableError:
            results.append("interrupted")

    server, channel = serve(hold_the_first)
    channel.stop = threading.Event()
    waiting = threading.Thread(target=call)
    waiting.start()
    assert asked.wait(20)
    if is_stopped:
        channel.stop.set()
    channel.interrupt()
    waiting.join(20)
    go_on.set()
    assert results == (["interrupted"] if is_stopped else [b"x"])
    assert len(server.requests) == (1 if is_stopped else 2)


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


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", IdentityRefusedError),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", IdentityRefusedError),
        ("TLSV1_ALERT_UNKNOWN_CA", IdentityRefusedError),
        ("UNKNOWN_CA", IdentityRefusedError),
        ("TLSV1_ALERT_PROTOCOL_VERSION", ServerNotTrustedError),
        ("UNSUPPORTED_PROTOCOL", ServerNotTrustedError),
        ("WRONG_VERSION_NUMBER", ServerNotTrustedError),
        ("TLSV1_ALERT_INTERNAL_ERROR", ServerUnavailableError),
        ("NO_CERTIFICATE_SET", ServerUnavailableError),
        ("UNEXPECTED_EOF_WHILE_READING", ServerUnavailableError),
        (None, ServerUnavailableError),
    ],
)
def test_what_openssl_says_tells_whose_turn_it_is(reason, kind):
    """The device's, whose certificate was refused; nobody's, since the server is too old; or that of time."""
    told = ssl.SSLError(1, "text that may change")
    told.reason = reason
    explained = channels._explained(told, "localhost:8443")
    assert type(explained) is kind
    assert "localhost:8443" in str(explained)
