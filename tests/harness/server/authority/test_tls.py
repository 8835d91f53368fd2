"""Real handshakes over loopback: who gets through, and that not a byte passes for anybody else."""

import asyncio
import contextlib
import ssl

import pytest
from cryptography import x509

from lightfr_harness.server.authority import Authority
from lightfr_harness.server.authority.certificates import new_key
from tests.certificates import (
    CLIENT_FAULTS,
    SERVER_FAULTS,
    OneLineServer,
    ask,
    client_context,
    client_pem,
    common_name_of,
    connect,
    credentials_of,
    member_key,
    plain_server_context,
    server_pem,
    signing_request,
    write_pem,
)

# What OpenSSL says, so that a certificate is refused for its fault and not for another.
REASONS = {
    "expired": "certificate has expired",
    "not_yet_valid": "certificate is not yet valid",
    "other_authority": "unable to get local issuer certificate",
    "wrong_host": "Hostname mismatch",
    "self_signed": "self-signed certificate",
    "server_certificate": "unsuitable certificate purpose",
    "revoked": "certificate revoked",
}


def require_refused(authority, context):
    """The server ends the handshake: its application sees nothing, and the client reads nothing."""
    with OneLineServer(credentials_of(authority).context()) as server:
        answer = b""
        # The client may learn of it as an alert, a reset or an early end.
        with contextlib.suppress(OSError):
            answer = ask(context, server.port)
    assert (answer, server.received, server.peers) == (b"", [], [])
    (refusal,) = server.refusals
    assert isinstance(refusal, ssl.SSLError)
    return refusal


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_device_of_this_authority_gets_through_and_is_named(authority, tmp_path, host):
    pem = client_pem(authority, tmp_path)
    credentials = credentials_of(authority)
    with OneLineServer(credentials.context()) as server:
        assert ask(client_context(authority, pem), server.port, host) == b"hello"
    assert server.received == [b"upload"]
    assert credentials.device_of(server.peers[0]) == common_name_of(pem)


@pytest.mark.parametrize("fault", CLIENT_FAULTS)
def test_the_server_refuses_a_client_certificate_with_a_fault(authority, tmp_path, fault):
    refusal = require_refused(authority, client_context(authority, client_pem(authority, tmp_path, fault)))
    assert isinstance(refusal, ssl.SSLCertVerificationError)
    assert REASONS[fault] in refusal.verify_message


def test_the_server_refuses_a_client_without_a_certificate(authority):
    assert "peer did not return a certificate" in str(require_refused(authority, client_context(authority))).lower()


def test_the_server_refuses_tls_1_2(authority, tmp_path):
    context = client_context(authority, client_pem(authority, tmp_path))
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert "UNSUPPORTED_PROTOCOL" in str(require_refused(authority, context))


def test_a_revocation_by_another_process_reaches_the_running_server_after_refresh(authority, tmp_path):
    (tmp_path / "other").mkdir()
    revoked, kept = client_pem(authority, tmp_path), client_pem(authority, tmp_path / "other")
    credentials = credentials_of(authority)
    with OneLineServer(credentials.context()) as server:
        assert ask(client_context(authority, revoked), server.port) == b"hello"
        another = Authority.open(authority.folder)
        another.revoke(common_name_of(revoked))
        another.close()
        credentials.refresh()
        with pytest.raises(OSError, match=r"(?i)revoked|reset|EOF"):
            ask(client_context(authority, revoked), server.port)
        assert ask(client_context(authority, kept), server.port) == b"hello"
    assert server.received == [b"upload", b"upload"]
    assert [refusal.verify_message for refusal in server.refusals] == ["certificate revoked"]
    # The connection of before would still be open: its next request is refused by name.
    assert credentials.device_of(server.peers[0]) is None
    assert credentials.device_of(server.peers[1]) == common_name_of(kept)


def test_a_device_that_renewed_and_is_revoked_gets_through_with_neither_certificate(authority, tmp_path):
    old, new = client_pem(authority, tmp_path), tmp_path / "renewed.pem"
    key = new_key()
    (der,) = authority.renew(common_name_of(old), signing_request(key), member_key()).certificates
    write_pem(new, x509.load_der_x509_certificate(der), key)
    credentials = credentials_of(authority)
    with OneLineServer(credentials.context()) as server:
        for pem in (old, new):
            assert ask(client_context(authority, pem), server.port) == b"hello"
        authority.revoke(common_name_of(old))
        credentials.refresh()
        for pem in (old, new):
            with contextlib.suppress(OSError):
                ask(client_context(authority, pem), server.port)
    assert [refusal.verify_message for refusal in server.refusals] == ["certificate revoked"] * 2
    assert [credentials.device_of(peer) for peer in server.peers] == [None, None]


def test_each_of_many_revocations_within_a_second_counts_in_the_handshake(authority, tmp_path):
    credentials = credentials_of(authority)
    with OneLineServer(credentials.context()) as server:
        for _ in range(5):
            pem = client_pem(authority, tmp_path)
            assert ask(client_context(authority, pem), server.port) == b"hello"
            authority.revoke(common_name_of(pem))
            credentials.refresh()
            with contextlib.suppress(OSError):
                ask(client_context(authority, pem), server.port)
    assert [refusal.verify_message for refusal in server.refusals] == ["certificate revoked"] * 5


def test_a_session_cannot_be_resumed_past_the_revocation_list(authority, tmp_path):
    """There are tickets, since devices wait for one; but they open no session, so the list is looked at each time."""
    pem = client_pem(authority, tmp_path)
    context = client_context(authority, pem)
    credentials = credentials_of(authority)
    with OneLineServer(credentials.context()) as server:
        with connect(context, server.port) as first:
            first.sendall(b"upload")
            assert first.recv(100) == b"hello"
            assert first.session.has_ticket
        with connect(context, server.port, session=first.session) as second:
            second.sendall(b"upload")
            assert second.recv(100) == b"hello"
            assert not second.session_reused
        authority.revoke(common_name_of(pem))
        credentials.refresh()
        with (
            connect(context, server.port, session=first.session) as third,
            pytest.raises(OSError, match=r"(?i)revoked|reset|EOF"),
        ):
            _ = third.sendall(b"upload"), third.recv(100)
    assert server.received == [b"upload", b"upload"]


def test_an_event_loop_refuses_a_revoked_device_before_its_handler_runs(authority, tmp_path):
    """asyncio drives OpenSSL through memory buffers, unlike the threads above."""
    pem, handled, credentials = client_pem(authority, tmp_path), [], credentials_of(authority)

    async def handle(_reader, writer):
        handled.append(credentials.device_of(writer.get_extra_info("peercert")))
        writer.write(b"hello")
        writer.close()

    async def run():
        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=credentials.context())
        port = server.sockets[0].getsockname()[1]
        assert await asyncio.to_thread(ask, client_context(authority, pem), port) == b"hello"
        authority.revoke(common_name_of(pem))
        credentials.refresh()
        with contextlib.suppress(OSError):
            assert await asyncio.to_thread(ask, client_context(authority, pem), port) == b""
        server.close()
        await server.wait_closed()

    asyncio.run(run())
    assert handled == [common_name_of(pem)]


def test_enrolment_needs_no_certificate_but_tls_1_3(authority):
    with OneLineServer(authority.admission().context()) as server:
        assert ask(client_context(authority), server.port) == b"hello"
        old = client_context(authority)
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError):
            ask(old, server.port)
    assert server.received == [b"upload"]


def test_enrolment_knows_a_device_by_its_certificate_and_refuses_a_bad_one(authority, tmp_path):
    pem = client_pem(authority, tmp_path)
    bad = [client_pem(authority, tmp_path, fault) for fault in CLIENT_FAULTS]
    admission = authority.admission()
    with OneLineServer(admission.context()) as server:
        assert ask(client_context(authority, pem), server.port) == b"hello"
        for identity in bad:
            with contextlib.suppress(OSError):
                assert ask(client_context(authority, identity), server.port) == b""
    assert [admission.device_of(peer) for peer in server.peers] == [common_name_of(pem)]
    assert len(server.refusals) == len(CLIENT_FAULTS)
    for fault, refusal in zip(CLIENT_FAULTS, server.refusals, strict=True):
        assert REASONS[fault] in refusal.verify_message


def test_a_client_takes_a_good_server_certificate(authority, tmp_path):
    pem = server_pem(authority, tmp_path, "localhost")
    with OneLineServer(plain_server_context(pem)) as server:
        assert ask(client_context(authority), server.port) == b"hello"


@pytest.mark.parametrize("fault", SERVER_FAULTS)
def test_a_client_refuses_a_server_certificate_with_a_fault_before_it_sends(authority, tmp_path, fault):
    pem = server_pem(authority, tmp_path, "localhost", fault)
    with OneLineServer(plain_server_context(pem)) as server:
        with pytest.raises(ssl.SSLCertVerificationError) as refusal:
            ask(client_context(authority), server.port)
        assert REASONS[fault] in refusal.value.verify_message
    assert (server.received, server.peers) == ([], [])


def test_a_client_refuses_a_device_that_plays_the_server(authority, tmp_path):
    pem = client_pem(authority, tmp_path)
    context = client_context(authority)
    context.check_hostname = False  # The purpose alone must be enough.
    with (
        OneLineServer(plain_server_context(pem)) as server,
        pytest.raises(ssl.SSLCertVerificationError, match="purpose"),
    ):
        ask(context, server.port)
    assert server.received == []


def test_trust_serves_as_text_too(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=(authority.folder / "trust.pem").read_text())
    assert context.cert_store_stats()["x509_ca"] == 1
