"""Claim: a round of LightFR takes (|I| + m) f bytes. Ours: an eighth, as bits, and the overhead of a real protocol."""

from __future__ import annotations

from typing import Any

from lightfr_harness.audits.cost.formulas import FCF, LIGHTFR, PACKED, Shape
from lightfr_harness.audits.finding import Finding, at_most, counted, for_information
from lightfr_harness.server.rules import TERNARY_ROWS

CLAIM, SOURCE = "bytes of the first round, measured", "the paper's cost table, bits packed"
UPLOAD, BESIDE = "bytes of an upload, measured", "bytes beside the round, measured"
SHARE_OF_LIGHTFR = 0.13
# Handshakes, headers, certificates and the manifest: what a small catalogue cannot make small.
OVERHEAD_BYTES = 32_768
# Field tags, digests and ids of an upload's message.
MESSAGE_BYTES = 160
INDEX_BYTES = 4
UPLOAD_MESSAGE = "Upload"


def audit(shape: Shape, device: dict[str, Any]) -> list[Finding]:
    """The first sync and round of one device at its socket, without the catalogue of item ids, which stands beside."""
    catalogue, total = device["disk_bytes"]["catalogue"], first_round_bytes(device)
    packed, lightfr, fcf = (method.communication(shape) for method in (PACKED, LIGHTFR, FCF))
    limit = max(SHARE_OF_LIGHTFR * lightfr, packed + OVERHEAD_BYTES)
    return [
        at_most(CLAIM, SOURCE, counted(lightfr, total), "bytes", limit, "the paper's LightFR, (|I|+m) f"),
        for_information(CLAIM, SOURCE, counted(packed, total), "bytes", "packed codes, (|I|+m) f/8"),
        for_information(CLAIM, SOURCE, counted(fcf, total), "bytes", "the paper's FCF, (|I|+m) 32 x 8"),
        *_upload(shape, device["message_bytes"]),
        for_information(BESIDE, "not in the paper", counted(0, catalogue), "bytes", "catalogue of item ids"),
    ]


def first_round_bytes(device: dict[str, Any]) -> float:
    """Both ways, at the socket: handshakes, headers and all, but without the catalogue of item ids."""
    phases = [device["phases"][name] for name in ("sync", "round")]
    return sum(phase["up_bytes"] + phase["down_bytes"] for phase in phases) - device["disk_bytes"]["catalogue"]


def _upload(shape: Shape, messages: dict[str, Any]) -> list[Finding]:
    """A ternary row is two bits an element and its index; the user code travels with them."""
    if UPLOAD_MESSAGE not in messages:
        return []
    rows = min(shape.ratings, TERNARY_ROWS) * (INDEX_BYTES + 2 * shape.bits / 8) + shape.bits / 8
    what = counted(rows, messages[UPLOAD_MESSAGE][0], "predicted: ternary rows, their indices and the user code")
    return [at_most(UPLOAD, "docs/protocol.md", what, "bytes", rows + MESSAGE_BYTES, "clear, ternary rows")]
