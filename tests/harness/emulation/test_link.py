import random
import socket
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightfr_harness.emulation.link import Lane, Link, Loop
from lightfr_harness.emulation.profiles import load_profile

FAST = replace(load_profile("flagship-phone"), delay_ms=1, loss=0.0)
# What a lane makes good after a late wake-up.
GRACE_SECONDS = 0.02


def lane(bits_per_second=8_000_000, delay=0.0, loss=0.0, seed=0):
    return Lane(bits_per_second, delay, loss, random.Random(seed))


@given(
    st.lists(st.tuples(st.integers(1, 65_536), st.floats(0, 0.5)), min_size=1, max_size=50),
    st.floats(8_000, 1e9),
    st.floats(0, 1),
)
def test_no_more_than_the_rate_ever_passes_and_nothing_arrives_before_its_delay(chunks, rate, delay):
    tested, now, passed = lane(rate, delay), 100.0, 0
    for size, pause in chunks:
        now += pause
        free_at, arrival = tested.take(size, now)
        passed += size
        assert passed * 8 <= rate * (free_at - 100.0 + GRACE_SECONDS) * (1 + 1e-9)
        assert arrival == pytest.approx(free_at + delay)
    assert tested.bytes == passed


def test_a_sender_that_never_pauses_gets_all_of_the_rate_although_it_wakes_late():
    tested, now, passed = lane(), 0.0, 0
    while now < 10:
        free_at, _ = tested.take(tested.chunk_bytes, now)
        passed += tested.chunk_bytes
        now = max(now, free_at) + 0.005
    assert passed / now == pytest.approx(1_000_000, rel=0.01)


def test_connections_share_the_rate():
    tested = lane()
    first, second = tested.take(500_000, 1.0)[0], tested.take(500_000, 1.0)[0]
    assert (first, second) == (pytest.approx(1.5 - GRACE_SECONDS), pytest.approx(2.0 - GRACE_SECONDS))


def test_a_share_of_segments_stalls_what_is_behind_them():
    tested = lane(8e9, delay=0.05, loss=0.1)
    stalled = sum(arrival - free_at > 0.1 for free_at, arrival in (tested.take(1448, 1.0) for _ in range(10_000)))
    assert 900 < stalled < 1100


def test_the_same_seed_loses_the_same_segments():
    lanes = [lane(loss=0.2, seed=seed) for seed in (3, 3, 4)]
    first, same, other = ([tested.take(1448, number)[1] for number in range(50)] for tested in lanes)
    assert first == same != other


@pytest.fixture(scope="module")
def loop():
    with Loop() as running:
        yield running


@pytest.fixture
def ends(loop):
    """A device's socket, a server's socket, and the link between them."""
    with socket.create_server(("127.0.0.1", 0)) as server, Link(loop, server.getsockname(), FAST) as link:
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


def test_who_closes_ends_the_connection_at_the_other_end(ends):
    device, far, _ = ends
    device.close()
    assert far.recv(1) == b""


def test_a_server_that_is_not_there_is_a_closed_connection(loop):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = closed.getsockname()
    with Link(loop, address, FAST) as link, socket.create_connection(("127.0.0.1", link.port)) as device:
        assert device.recv(1) == b""
