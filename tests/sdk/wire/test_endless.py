"""Answers that never end take neither memory nor time without a limit."""

import socket
import ssl
import threading
import time
import tracemalloc
from contextlib import closing

import pytest

from lightfr._wire import tls
from lightfr._wire.channel import Channel
from lightfr.errors import LightFRError, ServerUnavailableError
from tests.certificates import credentials_of
from tests.sdk.wire.servers import RawServer

CALL = "CoordinatorService/CheckIn"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
# Long enough for the busiest machine; what is tried here would never end.
FOREVER_SECONDS = 60
pytestmark = pytest.mark.usefixtures("impatient")


@pytest.fixture
def asked(authority, identity):
    """Call a server that speaks like this, with half a second of patience; what was raised, None if it never ended."""

    def ask(speak, body=b"", patience_seconds=0.5):
        raised, context = [], tls.context(authority.folder / "trust.pem", identity)

        def call():
            try:
                with closing(Channel(server.url, context, timeout_seconds=0.5)) as channel:
                    channel.call(CALL, body, 4096)
            except Exception as error:
                raised.append(error)

        with RawServer(credentials_of(authority).context(), speak) as server:
            thread = threading.Thread(target=call, daemon=True)
            thread.start()
            thread.join(FOREVER_SECONDS)
        return raised[0] if raised else None

    return ask


def test_a_chunk_of_negative_size_is_not_read_to_the_end_of_the_connection(asked):
    def speak(connection):
        connection.sendall(CHUNKED + b"-1\r\n")
        for _ in range(32):
            connection.sendall(bytes(2**20))
        connection.close()

    tracemalloc.start()
    try:
        error = asked(speak)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(error, LightFRError)
    assert peak < 16 * 2**20


def test_a_chunk_of_minus_two_bytes_is_an_answer_that_broke_off(asked):
    assert isinstance(asked(lambda connection: connection.sendall(CHUNKED + b"-2\r\nxx")), ServerUnavailableError)


def drip(connection, first, then, pause=0.1):
    connection.sendall(first)
    while True:
        connection.sendall(then)
        time.sleep(pause)


@pytest.mark.parametrize(
    ("first", "then", "pause"),
    [
        (b"HTTP/1.1 200", b" ", 0.1),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.1),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n", b"x", 0.1),
        (CHUNKED, b"1\r\nx\r\n", 0.1),
        # Faster than the slowest network, but not part of any answer.
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000, 0.01),
    ],
    ids=["a status", "a header", "a body", "chunks", "go on"],
)
def test_a_server_that_says_something_now_and_then_is_given_up(asked, first, then, pause, monkeypatch):
    monkeypatch.setattr(tls, "_SLOWEST_BYTES_PER_SECOND", 100_000)
    assert isinstance(asked(lambda connection: drip(connection, first, then, pause)), ServerUnavailableError)


class Clock:
    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(tls, "time", made)
    return made


def test_a_large_body_may_take_longer_than_the_patience_with_silence(asked, clock, monkeypatch):
    monkeypatch.setattr(tls, "_SLOWEST_BYTES_PER_SECOND", 2**14)
    body, said = bytes(2**22), []

    def take(connection):
        left = len(body) - 2**16  # Some came with the headers.
        while left > 0 and (piece := connection.recv(2**14)):
            left -= len(piece)
            clock.now += 0.9  # A little less than the piece earns.
        said.append(clock.now)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n")

    assert asked(take, body, patience_seconds=30) is None
    assert said[0] > 1000 + 2 * 30


def test_bytes_earn_a_request_time_but_not_more_than_it_has(clock):
    pace = tls.Pace()
    pace.begin(40.0, 5_000, float("inf"))
    assert pace.seconds_left() == 40
    assert pace.count(3_000) == 3_000
    clock.now += 42
    assert pace.seconds_left() == 1
    pace.count(100_000)
    assert pace.seconds_left() == 3
    clock.now += 3
    with pytest.raises(TimeoutError):
        pace.seconds_left()


def test_each_piece_of_a_body_has_the_time_that_is_left(clock, monkeypatch):
    told = []
    monkeypatch.setattr(ssl.SSLSocket, "send", lambda _, data, flags: len(data))
    monkeypatch.setattr(tls.PacedSocket, "settimeout", lambda _, seconds: told.append(seconds))
    connection = tls.PacedSocket.__new__(tls.PacedSocket)
    connection.pace = tls.Pace()
    connection.pace.begin(40.0, 1_000_000, float("inf"))
    assert [connection.send(bytes(20_000)), connection.send(bytes(5))] == [16_384, 5]
    clock.now += 30
    connection.send(b"x")
    assert told == pytest.approx([40.0, 56.384, 26.389])


def test_no_bytes_earn_time_beyond_the_end_of_all(clock):
    pace = tls.Pace()
    pace.begin(40.0, 5_000, clock.now + 7)
    pace.count(5_000)
    assert pace.seconds_left() == 7


def test_each_request_has_its_own_time(clock):
    pace = tls.Pace()
    for _ in range(3):
        pace.begin(40.0, 5_000, float("inf"))
        pace.count(1_000)
        clock.now += 39
        assert pace.seconds_left() == 2


def test_what_is_no_request_may_take_for_ever():
    assert tls.Pace().seconds_left() is None


def test_a_socket_of_no_request_keeps_its_own_timeout(authority, identity):
    context = tls.context(authority.folder / "trust.pem", identity)
    with (
        RawServer(credentials_of(authority).context(), lambda connection: connection.sendall(b"hello")) as server,
        socket.create_connection(("localhost", int(server.url.rpartition(":")[2])), 17) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        secured.sendall(b"x")
        heard = bytearray(5)
        assert secured.recv_into(heard) == 5
        assert (bytes(heard), secured.gettimeout()) == (b"hello", 17)
