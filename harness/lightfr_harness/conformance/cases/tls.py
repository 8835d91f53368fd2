"""Who may speak to the server at all."""

from __future__ import annotations

import ssl
from pathlib import Path

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance.client import SERVICE, NoAnswer, RawClient, tls_context
from lightfr_harness.conformance.expectations import Unexpected, expect
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import World

PLACE = "docs/protocol.md#transport"


def _require_refused(world: World, identity: Path | None) -> None:
    """In the handshake, or, where something else ends TLS, with IDENTITY."""
    request = pb.GetManifestRequest(capabilities=world.capabilities)
    try:
        answer = world.client(identity).post(SERVICE + "GetManifest", request.SerializeToString())
    except NoAnswer:
        return
    answer.refusal("IDENTITY")


@case("tls.version-1-2", "Only TLS 1.3 hides the certificate of a device from who listens.", PLACE)
def tls_1_2(world: World) -> None:
    context = tls_context(world.kit.trust, world.identity(0))
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    for address in (world.server, world.enrollment):
        try:
            RawClient(address, context).handshake()
        except NoAnswer:
            continue
        raise Unexpected(f"TLS 1.2 to be refused at {address}", "a handshake that went well")


@case("tls.no-certificate", "Without a certificate nobody knows whose upload it is.", PLACE)
def no_certificate(world: World) -> None:
    _require_refused(world, None)


@case("tls.ticket", "A device stays silent until a session ticket says that its certificate was accepted.", PLACE)
def ticket(world: World) -> None:
    sent = world.client(world.identity(0)).has_ticket(2.0)
    expect(sent, "a session ticket within 2 s of the handshake", "none")
