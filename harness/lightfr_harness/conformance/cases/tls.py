"""Who may speak to the server at all."""

from __future__ import annotations

import ssl
from pathlib import Path

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance.client import SERVICE, NoAnswer, RawClient, tls_context
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_equal
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import World

PLACE = "docs/protocol.md#tls"
TICKET_SECONDS = 2.0

# Identities of the kit's folder tester/, and why each must be turned away.
BAD_IDENTITIES = {
    "expired": "A certificate that has run out no longer says who its holder is.",
    "not-yet-valid": "A certificate says nothing before its time.",
    "other-authority": "Only the kit's authority names devices.",
    "false-authority": "A name is no signature: another key under the authority's name must not name devices.",
    "self-signed": "Whoever names himself is nobody.",
    "named-by-a-device": "A device's certificate is no authority's: who has one must not name others.",
    "server": "The server's own certificate is not made for clients, and is no device.",
    "revoked": "A device whose name was taken back is out.",
    "revoked-renewed": "A device whose name was taken back is out with every certificate that it ever had.",
}


def _require_refused(world: World, identity: Path | None) -> None:
    """In TLS 1.3 the client's side of the handshake ends before the server has judged: so it asks, and gets nothing."""
    request = pb.GetManifestRequest(capabilities=world.capabilities)
    try:
        answer = world.client(identity).post(SERVICE + "GetManifest", request.SerializeToString())
    except NoAnswer:
        return
    raise Unexpected("the handshake to fail before a request is read", f"an answer: {answer}")


@case("tls.good-device", "Devices speak TLS 1.3 and check the server's name against its certificate.", PLACE)
def good_device(world: World) -> None:
    client = world.client(world.kit.tester("good"))
    expect_equal("version of TLS", client.handshake().version(), "TLSv1.3")


@case("tls.version-1-2", "Only TLS 1.3 hides the certificate of a device from who listens.", PLACE)
def tls_1_2(world: World) -> None:
    context = tls_context(world.kit.trust, world.kit.tester("good"))
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    for address in (world.server, world.enrollment):
        client = RawClient(address, context)
        try:
            client.handshake()
        except NoAnswer:
            continue
        finally:
            client.close()
        raise Unexpected(f"TLS 1.2 to be refused at {address}", "a handshake that went well")


@case("tls.no-certificate", "Without a certificate nobody knows whose upload it is.", PLACE)
def no_certificate(world: World) -> None:
    _require_refused(world, None)


def _declare(name: str, why: str) -> None:
    @case(f"tls.{name}", why, PLACE)
    def refused(world: World) -> None:
        _require_refused(world, world.kit.tester(name))


for _name, _why in BAD_IDENTITIES.items():
    _declare(_name, _why)


@case("tls.unnamed", "Every request belongs to a device: a name that is no device's id must not count as one.", PLACE)
def unnamed(world: World) -> None:
    request = pb.GetManifestRequest(capabilities=world.capabilities)
    try:
        answer = world.client(world.kit.tester("unnamed")).post(SERVICE + "GetManifest", request.SerializeToString())
    except NoAnswer:
        return
    answer.refusal("IDENTITY")


@case("tls.ticket", "A device stays silent until a session ticket says that its certificate was accepted.", PLACE)
def ticket(world: World) -> None:
    for client in (world.client(world.kit.tester("good")), world.client(None, enrollment=True)):
        sent = client.has_ticket(TICKET_SECONDS)
        expect(sent, f"a session ticket within {TICKET_SECONDS:.0f} s of the handshake", "none")
