import random
import socket
import struct
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightfr_harness.devices.link import Lane, Link, Loop
from lightfr_harness.devices.profiles import load_profile

FAST = replace(load_profile("flagship-phone"), delay_ms=1, loss=0.0)
# How late the proxy may be and still make good for it.
GRACE_SECONDS = 0.2


def lane(bits_per_second=8_000_000, delay=0.0, loss=0.0, seed=0):
    return Lane(bits_per_second, delay, loss, random.Random(seed))


@given(
    st.lists(st.tuples(st.integers(1, 65_536), st.floats(0, 0.5), st.booleans()), min_size=1, max_size=50),
    st.floats(8_000, 1e9),
    st.floats(0, 1),
)
def test_no_more_than_the_rate_ever_passes_and_nothing_arrives_before_its_delay(chunks, rate, delay):
    tested, now, passed = lane(rate, delay), 100.0, 0
    for size, pause, have_waited in chunks:
        now += pause
        free_at, arrival = tested.take(size, now, have_waited=have_waited)
        passed += size
        # A nanosecond for rounding.
        assert passed * 8 <= rate * (free_at - 100.0 + GRACE_SECONDS + 1e-9)
        assert arrival >= now + delay
        assert have_waited or arrival >= now + size * 8 / rate + delay - 1e-9
    assert tested.bytes == passed


def test_a_sender_that_never_pauses_gets_all_of_the_rate_although_the_proxy_is_late():
    tested, now, passed = lane(), 0.0, 0
    while now < 10:
        free_at, _ = tested.take(tested.chunk_bytes, now, have_waited=now > 0)
        passed += tested.chunk_bytes
        now = max(now, free_at) + 0.05 * (passed % 3 == 0)
    assert passed / now == pytest.approx(1_000_000, rel=0.01)


def test_an_idle_link_saves_nothing_up():
    tested = lane()
    tested.take(1000, 1.0, have_waited=False)
    assert tested.take(500_000, 5.0, have_waited=False) == (5.5, 5.5)


def test_connections_share_the_rate():
    tested = lane()
    first, second = (tested.take(500_000, 1.0, have_waited=False)[0] for _ in range(2))
    assert (first, second) == (1.5, 2.0)


def test_a_share_of_segments_stalls_what_is_behind_them():
    tested = lane(8e9, delay=0.05, loss=0.1)
    stalled = sum(
        arrival - free_at > 0.1
        for free_at, arrival in (tested.take(1448, 1.0, have_waited=False) for _ in range(10_000))
    )
    assert 900 < stalled < 1100


def test_the_same_seed_loses_the_same_segments():
    lanes = [lane(loss=0.2, seed=seed) for seed in (3, 3, 4)]
    first, same, other = ([tested.take(1448, number, have_waited=False)[1] for number in range(50)] for tested in lanes)
    assert first == same != other


@pytest.fixture(scope="module")
def loop():
    with Loop() as running:
        yield running


@pytest.fixture
def ends(loop, request):
    """A device's socket, a server's socket, and the link between them; a parameter is its delay in milliseconds."""
    profile = replace(FAST, delay_ms=getattr(request, "param", FAST.delay_ms))
    with socket.create_server(("127.0.0.1", 0)) as server, Link(loop, server.getsockname(), profile) as link:
        device = socket.create_connection(("127.0.0.1", link.port))
        far, _ = server.accept()
        with device, far:
            yield device, far, link


def received(end):
    parts = []
    while part := end.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def send_all(end, content):
    end.sendall(content)
    end.shutdown(socket.SHUT_WR)


def test_every_byte_passes_in_order_and_is_counted_in_its_direction(ends):
    device, far, link = ends
    up, down = random.Random(1).randbytes(300_000), random.Random(2).randbytes(2_000_000)
    senders = [threading.Thread(target=send_all, args=pair) for pair in ((device, up), (far, down))]
    for sender in senders:
        sender.start()
    assert received(far) == up
    assert received(device) == down
    for sender in senders:
        sender.join()
    assert link.counts() == (len(up), len(down))


@pytest.mark.parametrize("ends", [40], indirect=True)
def test_a_question_and_its_answer_take_the_delay_both_ways(ends):
    device, far, _ = ends
    for _ in range(3):
        begin = time.monotonic()
        device.sendall(b"question")
        far.sendall(far.recv(100))
        assert device.recv(100) == b"question"
        assert time.monotonic() - begin >= 0.08


def test_who_closes_ends_the_connection_at_the_other_end(ends):
    device, far, _ = ends
    device.close()
    assert far.recv(1) == b""


def test_a_device_that_dies_during_a_download_frees_the_server(ends):
    device, far, _ = ends
    device.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    far.settimeout(10)
    far.sendall(bytes(100_000))
    device.recv(1)
    device.close()
    # Far more than fits the buffers on the way: a proxy that went on would make it wait until it times out.
    with pytest.raises(ConnectionError):
        far.sendall(bytes(100_000_000))


def test_without_a_profile_a_link_only_counts(loop):
    with socket.create_server(("127.0.0.1", 0)) as server, Link(loop, server.getsockname()) as link:
        device = socket.create_connection(("127.0.0.1", link.port))
        far, _ = server.accept()
        with device, far:
            down = random.Random(3).randbytes(3_000_000)
            sender = threading.Thread(target=send_all, args=(far, down))
            sender.start()
            send_all(device, b"question")
            assert received(device) == down
            assert received(far) == b"question"
            sender.join()
        assert (link.counts(), link.connections) == ((8, len(down)), 1)


@pytest.mark.parametrize("n_bytes", [0, 1, 1000, 100_000])
def test_a_link_that_is_to_break_lets_just_so_many_bytes_down(ends, n_bytes):
    device, far, link = ends
    link.break_after = n_bytes
    sent = bytes(200_000)
    far.sendall(sent)
    assert received(device) == sent[:n_bytes]
    assert link.counts() == (0, n_bytes)


def test_a_server_that_is_not_there_is_a_closed_connection(loop):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = closed.getsockname()
    with Link(loop, address, FAST) as link, socket.create_connection(("127.0.0.1", link.port)) as device:
        assert device.recv(1) == b""
