"""Nobody uses up the share of the others. Over real TLS, with small limits."""

import asyncio
import http.client
import json
import select
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from lightfr.v1 import enrollment_pb2, error_pb2
from lightfr_harness.server.coordinator.limits import (
    FOR_DEVICES,
    FOR_NEWCOMERS,
    Connection,
    Connections,
    Limits,
    Rate,
    Requests,
    address_of,
)
from lightfr_harness.server.coordinator.refusals import Refusal
from tests.campaigns import abuse_coordinator
from tests.certificates import client_context, client_pem, connect, member_key, signing_request
from tests.harness.server.coordinator.helpers import CHECK_IN, Clock
from tests.harness.server.coordinator.live import COORDINATOR, ENROLLMENT, PROTO, Live, exchange, place, reason_of

HEAD = f"POST {COORDINATOR}CheckIn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/proto\r\n"
SLOW = f"{HEAD}Content-Length: {len(CHECK_IN)}\r\n\r\n".encode() + CHECK_IN[:1]
OVERLOADED = error_pb2.ERROR_REASON_OVERLOADED


def other_device(authority, tmp_path):
    return client_context(authority, client_pem(authority, tmp_path))


def port_of(live, name="server"):
    return urlsplit(live.addresses[name]).port


def metric(live, name):
    lines = live.operations("GET", "/metrics")[2].decode().splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith(f"{name} ")]
    return float(value)


def overloaded(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.startswith(b"HTTP/1.1 503") and reason_of(body).reason == OVERLOADED


def first_answer(connections):
    """The first connection on which the server says something or hangs up, and what it says."""
    poll, by_descriptor = select.poll(), {one.fileno(): one for one in connections}
    for one in connections:
        one.setblocking(False)
        poll.register(one, select.POLLIN)
    while events := poll.poll(20_000):
        for descriptor, _ in events:
            # A session ticket is no answer.
            with suppress(ssl.SSLWantReadError):
                heard = by_descriptor[descriptor].recv(4096)
                for one in connections:
                    one.settimeout(20)
                return by_descriptor[descriptor], heard
    raise AssertionError("nothing came")


def close_all(connections):
    for connection in connections:
        connection.close()


def test_a_caller_has_its_burst_and_then_its_rate():
    clock = Clock()
    rate = Rate(per_second=2, burst=3, clock=clock)

    def taken(caller):
        if not rate.has_room(caller):
            return False
        rate.take(caller)
        return True

    assert [taken("a") for _ in range(5)] == [True, True, True, False, False]
    assert taken("b")
    clock.now += 0.5
    assert [taken("a") for _ in range(2)] == [True, False]
    clock.now += 100
    assert [taken("a") for _ in range(4)] == [True, True, True, False]


def test_callers_who_have_paid_off_are_forgotten():
    clock = Clock()
    rate = Rate(per_second=1, burst=5, clock=clock)
    for caller in range(20_000):
        rate.take(str(caller))
        clock.now += 0.01
    assert len(rate._paid_at) < 2000


def test_a_request_that_ends_gives_its_place_back_however_it_ends():
    requests = Requests(replace(FOR_DEVICES, requests_at_once=1))
    for _ in range(3):
        with suppress(KeyError), requests.one_of("a", "x"), requests.one_of("b", "x"):
            with pytest.raises(Refusal, match="wait for their answers"), requests.one_of("a", "x"):
                pass
            raise KeyError
    assert not requests._active


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_an_address_of_ipv6_is_its_network(host, address):
    assert address_of((host, 1)) == address


def test_slow_bodies_take_the_share_of_their_device_alone(tmp_path, authority, device):
    with Live(tmp_path / "f", authority, for_devices=replace(FOR_DEVICES, requests_at_once=3)) as live:
        slow = [connect(device, port_of(live)) for _ in range(4)]
        for secured in slow:
            secured.sendall(SLOW)
        refused, answer = first_answer(slow)
        assert overloaded(answer)
        assert place(live, other_device(authority, tmp_path), CHECK_IN).model_version == 1
        for secured in set(slow) - {refused}:
            secured.sendall(CHECK_IN[1:])
            assert first_answer([secured])[1].startswith(b"HTTP/1.1 200")
        close_all(slow)


def test_a_body_that_comes_too_slowly_is_not_waited_for(tmp_path, authority, device):
    hasty = replace(FOR_DEVICES, body_seconds=0.05)
    with Live(tmp_path / "f", authority, for_devices=hasty) as live, connect(device, port_of(live)) as secured:
        secured.sendall(SLOW)
        answer = first_answer([secured])[1]
        assert overloaded(answer)
        assert b"too slowly" in answer


def test_each_byte_of_a_body_buys_time_at_the_least_rate(tmp_path, authority, device):
    patient = replace(FOR_DEVICES, body_seconds=0.2, body_bytes_per_second=1)
    with Live(tmp_path / "f", authority, for_devices=patient) as live, connect(device, port_of(live)) as secured:
        secured.sendall(SLOW)
        time.sleep(0.4)  # Longer than a body may take of which nothing has come.
        secured.sendall(CHECK_IN[1:])
        assert first_answer([secured])[1].startswith(b"HTTP/1.1 200")


def test_requests_beyond_the_burst_are_refused_whatever_they_ask_for(tmp_path, authority, device):
    few = replace(FOR_DEVICES, request_burst=4, requests_per_second=0.001)
    with Live(tmp_path / "f", authority, for_devices=few) as live:
        other = other_device(authority, tmp_path)
        asked = [("POST", "CheckIn"), ("GET", "CheckIn"), ("POST", "Nothing")]
        answers = [exchange(live.connection(device), how, COORDINATOR + what, CHECK_IN)[0] for how, what in asked]
        answers.append(exchange(live.connection(device), "GET", "/artifacts/" + "0" * 64)[0])
        assert answers == [200, 405, 404, 404]
        for how, what in asked:
            status, _, body = exchange(live.connection(device), how, COORDINATOR + what, CHECK_IN)
            assert (status, reason_of(body).reason) == (503, OVERLOADED)
        assert exchange(live.connection(device), "GET", "/artifacts/" + "0" * 64)[0] == 503
        assert place(live, other, CHECK_IN).model_version == 1


def test_a_device_has_so_many_connections_and_others_have_theirs(tmp_path, authority, device):
    with Live(tmp_path / "f", authority, for_devices=replace(FOR_DEVICES, connections_per_device=2)) as live:
        held = [live.connection(device) for _ in range(3)]
        assert [ask(connection) for connection in held] == [200, 200, 503]
        assert ask(held[0]) == 200
        assert place(live, other_device(authority, tmp_path), CHECK_IN).model_version == 1
        # A connection that is closed makes room for another.
        held[1].close()
        while ask(held[2]) != 200:
            pass
        close_all(held)


def ask(connection):
    connection.request("POST", COORDINATOR + "CheckIn", CHECK_IN, PROTO)
    response = connection.getresponse()
    response.read()
    return response.status


@pytest.mark.parametrize("name", ["server", "enrollment"])
def test_silent_connections_take_the_share_of_their_address_alone(tmp_path, authority, device, name):
    """Those that prove nothing: no handshake, or one and then no request."""
    few = Limits(unproven_per_address=3)
    with Live(tmp_path / "f", authority, for_devices=few, for_newcomers=few) as live:
        silent = [silent_connection(live, name) for _ in range(3)]
        silent[-1] = context_of(name, authority, device).wrap_socket(silent[-1], server_hostname="localhost")
        # The reset may come before connect() has returned.
        with pytest.raises(ConnectionResetError), silent_connection(live, name) as one_more:
            one_more.recv(1)
        # The authority keeps its own count.
        assert metric(live, "lightfr_connections_refused_total") == (name == "server")
        assert serves(live, authority, tmp_path)
        close_all(silent)


def silent_connection(live, name):
    """Of another address than the other tests'."""
    return socket.create_connection(("127.0.0.1", port_of(live, name)), 20, ("127.0.0.2", 0))


def context_of(name, authority, device):
    return device if name == "server" else client_context(authority)


def serves(live, authority, tmp_path):
    """Whether an honest newcomer and an honest device get what they want."""
    status, _, _ = enrol(live, authority, authority.invite("https://localhost:1", "https://localhost:1", 60)["token"])
    return status == 200 and place(live, other_device(authority, tmp_path), CHECK_IN).model_version == 1


def enrol(live, authority, token):
    request = enrollment_pb2.EnrollRequest(
        token=token, signing_request=signing_request(), member_key=member_key()
    ).SerializeToString()
    return exchange(live.connection(client_context(authority), "enrollment"), "POST", ENROLLMENT + "Enroll", request)


@pytest.mark.parametrize("device", ["", "a"])
def test_who_resets_a_connection_and_comes_again_from_the_same_port_counts_once(device):
    """The new connection may be there before the old one is closed here; both must leave the books."""

    async def story():
        books = Connections(Limits(unproven_per_address=2, connections_per_device=2))
        for _ in range(3):
            made = [Connection(end, books, ("192.0.2.7", 50_000)) for end in socket.socketpair()]
            for one in made:
                assert books.admit(one)
                if device:
                    books.prove(one.peer, device)
            for one in made:
                one.close()
            assert not any((books._open, books._unproven, books._of_address, books._of_device))

    asyncio.run(story())


def test_many_devices_behind_one_address_are_served_since_accepted_requests_do_not_count_for_it(tmp_path, authority):
    with Live(tmp_path / "f", authority, for_devices=replace(FOR_DEVICES, unproven_per_address=1), goal=8) as live:
        held = [live.connection(other_device(authority, tmp_path)) for _ in range(8)]
        assert [ask(connection) for connection in held] == [200] * 8
        assert [ask(connection) for connection in held] == [200] * 8
        close_all(held)


@pytest.mark.parametrize("name", ["server", "enrollment"])
def test_when_all_addresses_together_are_too_many_the_oldest_silent_connection_goes(tmp_path, authority, name):
    few = Limits(unproven=2)
    with Live(tmp_path / "f", authority, for_devices=few, for_newcomers=few) as live:
        silent = [silent_connection(live, name) for _ in range(3)]
        assert first_answer(silent) == (silent[0], b"")
        assert serves(live, authority, tmp_path)
        close_all(silent)


@pytest.mark.parametrize("begins", [b"", b"\x16\x03\x01", b"POST / HTTP/1.1\r\n"])
def test_a_connection_that_proves_nothing_in_time_is_ended(tmp_path, authority, device, begins):
    brief = replace(FOR_DEVICES, proof_seconds=1.0)
    with Live(tmp_path / "f", authority, for_devices=brief) as live:
        kept = live.connection(device)
        assert ask(kept) == 200
        silent = silent_connection(live, "server")
        if begins.startswith(b"POST"):
            silent = device.wrap_socket(silent, server_hostname="localhost")
        silent.sendall(begins)
        assert first_answer([silent])[1] == b""
        assert ask(kept) == 200  # By then it is older than what was ended.
        close_all([silent, kept])


def test_wrong_tokens_are_logged_and_after_a_few_the_address_must_wait(tmp_path, authority):
    few = replace(FOR_NEWCOMERS, wrong_token_burst=2, wrong_tokens_per_second=0.001)
    token = "a-token-that-nobody-ever-gave-out"  # noqa: S105 - it opens nothing
    good = authority.invite("https://localhost:1", "https://localhost:1", 60)["token"]
    with Live(tmp_path / "f", authority, for_newcomers=few) as live:
        for tried, reason in ((token, error_pb2.ERROR_REASON_TOKEN),) * 2 + ((token, OVERLOADED), (good, OVERLOADED)):
            assert reason_of(enrol(live, authority, tried)[2]).reason == reason
        elsewhere = http.client.HTTPSConnection(
            "localhost", port_of(live, "enrollment"), context=client_context(authority), source_address=("127.0.0.2", 0)
        )
        request = enrollment_pb2.EnrollRequest(
            token=good, signing_request=signing_request(), member_key=member_key()
        ).SerializeToString()
        assert exchange(elsewhere, "POST", ENROLLMENT + "Enroll", request)[0] == 200
        assert place(live, other_device(authority, tmp_path), CHECK_IN).model_version == 1
    events = [json.loads(line) for line in live.log.getvalue().splitlines()]
    wrong = [(event["event"], event["address"]) for event in events if event["event"] == "wrong_token"]
    assert wrong == [("wrong_token", "127.0.0.1")] * 2
    assert token not in live.log.getvalue()


def test_wrong_tokens_count_for_the_address_also_of_who_shows_a_certificate(tmp_path, authority, device):
    """And the log does not name the device."""
    few = replace(FOR_NEWCOMERS, wrong_token_burst=1, wrong_tokens_per_second=0.001)
    request = enrollment_pb2.EnrollRequest(
        token="x" * 32, signing_request=signing_request(), member_key=member_key()
    ).SerializeToString()
    with Live(tmp_path / "f", authority, for_newcomers=few) as live:
        for context, reason in (
            (device, error_pb2.ERROR_REASON_TOKEN),
            (other_device(authority, tmp_path), error_pb2.ERROR_REASON_OVERLOADED),
            (client_context(authority), error_pb2.ERROR_REASON_OVERLOADED),
        ):
            answer = exchange(live.connection(context, "enrollment"), "POST", ENROLLMENT + "Enroll", request)
            assert reason_of(answer[2]).reason == reason
    (wrong,) = [line for line in live.log.getvalue().splitlines() if "wrong_token" in line]
    assert json.loads(wrong)["address"] == "127.0.0.1"


def test_a_device_that_renews_has_a_share_of_its_own_at_the_authority(tmp_path, authority, device):
    few = replace(FOR_NEWCOMERS, request_burst=2, requests_per_second=0.001)

    def renew(live, context):
        request = enrollment_pb2.RenewCertificateRequest(signing_request=signing_request(), member_key=member_key())
        connection = live.connection(context, "enrollment")
        return exchange(connection, "POST", ENROLLMENT + "RenewCertificate", request.SerializeToString())[0]

    with Live(tmp_path / "f", authority, for_newcomers=few) as live:
        assert [renew(live, device) for _ in range(3)] == [200, 400, 503]
        assert renew(live, other_device(authority, tmp_path)) == 200
        assert serves(live, authority, tmp_path)


def test_a_real_coordinator_under_abuse_serves_the_honest(tmp_path):
    summary = abuse_coordinator.run(slow_bodies=40, silent=300, wrong_tokens=120, base=tmp_path)
    assert summary.is_good(), summary
    assert summary.held["slow bodies"] <= FOR_DEVICES.requests_at_once
    assert summary.held["silent connections"] <= FOR_NEWCOMERS.unproven_per_address
    assert summary.attacker["wrong tokens"][503] > 0
    assert summary.wrong_tokens_logged == summary.attacker["wrong tokens"][403]
