"""Who may speak with the coordinator in TypeScript: revoked devices may not, wherever they are in a conversation."""

import socket
import subprocess
import sys
import time

import pytest
from cryptography import x509

from lightfr._wire import coordinator, tls
from lightfr._wire.channel import Channel, address_of
from lightfr.device import Trust, save_identity
from lightfr.errors import IdentityRefusedError, RefusedError, ServerUnavailableError
from lightfr.identities import new_identity_keys
from lightfr.membership import require_membership


def identity_of(name, tmp_path):
    return tmp_path / "devices-0" / f"{name}.pem"


def is_closed_before_a_request(kit, server, identity):
    """Whether the server ends a connection of this device on its own, without a byte of HTTP."""
    context = tls.context(kit / "authority/trust.pem", identity)
    plain = socket.create_connection(address_of(server.addresses["server"]), timeout=5)
    with context.wrap_socket(plain, server_hostname="localhost") as connection:
        connection.settimeout(1)
        try:
            return connection.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True


def test_a_device_that_is_revoked_meanwhile_is_refused_on_its_open_connection_and_on_a_new_one(node, cohort, tmp_path):
    kit, server = node("clear")
    devices = cohort(2, kit, server)
    first, second = devices.channels
    certificate = x509.load_pem_x509_certificates(identity_of(0, tmp_path).read_bytes())[0]
    (name,) = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    coordinator.get_manifest(first, 0)
    command = [sys.executable, "-m", "lightfr_harness", "ca", "revoke", kit / "authority", name.value]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(IdentityRefusedError):
        coordinator.get_manifest(first, 0)
    assert is_closed_before_a_request(kit, server, identity_of(0, tmp_path))
    assert not is_closed_before_a_request(kit, server, identity_of(1, tmp_path))
    assert coordinator.get_manifest(second, 0), "others are not concerned"


def test_the_sdk_takes_a_refusal_without_an_alert_for_a_server_that_is_away(node):
    """Node closes the connection of a certificate that it does not take, and sends no alert; so does a server that is
    being restarted. The device cannot tell one from the other, and must not be told to enrol again."""
    kit, server = node("clear")
    for who in ("revoked", "expired", "other-authority", "self-signed", "server"):
        identity = kit / f"tester/{who}.pem"
        assert is_closed_before_a_request(kit, server, identity)
        with pytest.raises(ServerUnavailableError, match="after the handshake"):
            coordinator.get_manifest(
                Channel(server.addresses["server"], tls.context(kit / "authority/trust.pem", identity)), 0
            )


def test_a_device_that_renewed_and_is_revoked_is_refused_with_the_new_certificate_too(node, cohort, tmp_path):
    kit, server = node("clear")
    old, trust = cohort(1, kit, server).channels[0], Trust(kit / "authority/trust.pem")
    renewing = Channel(server.addresses["enrollment"], tls.context(trust.path, identity_of(0, tmp_path)))
    keys = new_identity_keys()
    asked = keys.signing_request, keys.member_key.public
    issued = coordinator.renew(renewing, *asked)
    renewed = tmp_path / "renewed.pem"
    save_identity(renewed, trust, keys, issued)
    assert require_membership(issued.membership, trust.membership_keys, time.time()) == keys.member_key.public
    # After a crash the answer is the same, and the new certificate is good.
    server.kill()
    server.start()
    assert coordinator.renew(renewing, *asked) == issued
    new = Channel(server.addresses["server"], tls.context(trust.path, renewed))
    assert all(coordinator.get_manifest(channel, 0) for channel in (old, new))
    (name,) = x509.load_der_x509_certificate(issued.certificates[0]).subject
    command = [sys.executable, "-m", "lightfr_harness", "ca", "revoke", kit / "authority", name.value]
    subprocess.run(command, check=True, capture_output=True)
    for channel in (old, new):
        with pytest.raises(IdentityRefusedError):
            coordinator.get_manifest(channel, 0)
    with pytest.raises(IdentityRefusedError):
        coordinator.renew(renewing, *asked)
    new.close()
    renewing.close()


def test_nobody_renews_without_a_certificate_or_takes_the_member_key_of_another_device(node, cohort, tmp_path):
    kit, server = node("clear")
    cohort(2, kit, server)
    trust, keys = kit / "authority/trust.pem", new_identity_keys()
    asked = keys.signing_request, keys.member_key.public
    stranger = Channel(server.addresses["enrollment"], tls.context(trust, None))
    first, second = (
        Channel(server.addresses["enrollment"], tls.context(trust, identity_of(i, tmp_path))) for i in range(2)
    )
    with pytest.raises(IdentityRefusedError):
        coordinator.renew(stranger, *asked)
    assert coordinator.renew(first, *asked).membership[:32] == keys.member_key.public
    with pytest.raises(RefusedError, match="MALFORMED"):
        coordinator.renew(second, *asked)
    for channel in (stranger, first, second):
        channel.close()
