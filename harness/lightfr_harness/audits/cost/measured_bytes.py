"""Claims: LightFR keeps (1 + m) f bytes on the device, and a round takes (|I| + m) f.

Ours: bits are packed, and of the m items only the open ones have codes of their own: (1 + open rows) f / 8.

What a real protocol adds is bounded here too. A round of secure aggregation sends more, which is the price of privacy:
secure_round.py bounds it, and the traffic's limit has room for just that.
"""

from __future__ import annotations

from typing import Any

from lightfr_harness.audits.cost import secure_round
from lightfr_harness.audits.cost.formulas import CODE_BITS, FCF, LIGHTFR, OPEN, PACKED, Shape
from lightfr_harness.audits.finding import Finding, at_most, counted, for_information
from lightfr_harness.server.rules import TERNARY_ROWS

SOURCE = "the paper's cost table, bits packed, open rows only"
STORAGE, BESIDE_CODES = "storage of the codes, measured", "storage beside the codes, measured"
TRAFFIC, BESIDE_ROUND = "bytes of the first round, measured", "bytes beside the round, measured"
LATER = "bytes of a later round, measured"
UPLOAD = "bytes of an upload, measured"
# Of the paper's formula for codes of any length, and of that for FCF at the paper's 64 bits.
STORAGE_SHARE_OF_LIGHTFR, STORAGE_SHARE_OF_FCF = 0.126, 0.032
# Handshakes, headers, certificates and the manifest.
OVERHEAD_BYTES = 20_000
# Field tags, digests and ids of an upload's message.
MESSAGE_BYTES = 160
INDEX_BYTES = 4


def storage(shape: Shape, disk: dict[str, Any]) -> list[Finding]:
    """What lies on a device's disk: codes of the items and the user against three bounds; the rest beside."""
    codes = codes_bytes(shape, disk)
    opened, packed, lightfr, fcf = (method.storage(shape) for method in (OPEN, PACKED, LIGHTFR, FCF))
    # The closed items share one more row, which of a hundred items is more than the shares have room for.
    shared = shape.bits / 8
    bounds = (
        ("open rows, (1+open) f/8", opened, opened + shared),
        ("packed codes, (1+m) f/8", packed, packed + shared),
        ("the paper's LightFR, (1+m) f", lightfr, STORAGE_SHARE_OF_LIGHTFR * lightfr + shared),
        ("the paper's FCF, (1+m) 32 x 8", fcf, STORAGE_SHARE_OF_FCF * shape.bits / CODE_BITS * fcf + shared),
    )
    beside = [(name, counted(0, disk[name])) for name in ("open_rows", "catalogue", "store", "other")]
    return [
        *(at_most(STORAGE, SOURCE, counted(formula, codes), "bytes", limit, mode) for mode, formula, limit in bounds),
        *(for_information(BESIDE_CODES, "not in the paper", what, "bytes", name) for name, what in beside),
    ]


def codes_bytes(shape: Shape, disk: dict[str, Any]) -> float:
    """The codes of the items as they lie on disk, and the user's, which lies encrypted in the store."""
    return float(disk["codes"] + shape.bits / 8)


def traffic(shape: Shape, scenario: dict[str, Any], device: dict[str, Any]) -> list[Finding]:
    """The first sync and round of one device at its socket, without the catalogue of item ids, which stands beside."""
    total = first_round_bytes(device)
    opened, packed, lightfr, fcf = (method.communication(shape) for method in (OPEN, PACKED, LIGHTFR, FCF))
    # A ternary element has two bits, and its row an index.
    limit, room = opened + (shape.bits / 8 + INDEX_BYTES) * shape.ratings + OVERHEAD_BYTES, ""
    if scenario["privacy"] != "clear":
        limit += secure_round.limit_bytes(scenario)
        room = "the limit has room for a secure round"
    later, whole = _round_bytes(device) + device["disk_bytes"]["codes"], "as if no delta spared any of the codes"
    catalogue = counted(0, device["disk_bytes"]["catalogue"])
    return [
        at_most(TRAFFIC, SOURCE, counted(opened, total, room), "bytes", limit, "open rows, (|I|+open) f/8"),
        for_information(TRAFFIC, SOURCE, counted(lightfr, total), "bytes", "the paper's LightFR, (|I|+m) f"),
        for_information(TRAFFIC, SOURCE, counted(packed, total), "bytes", "packed codes, (|I|+m) f/8"),
        for_information(TRAFFIC, SOURCE, counted(fcf, total), "bytes", "the paper's FCF, (|I|+m) 32 x 8"),
        for_information(LATER, SOURCE, counted(opened, later, whole), "bytes", "open rows, (|I|+open) f/8"),
        *(_clear_upload(shape, device["message_bytes"]) if scenario["privacy"] == "clear" else ()),
        for_information(BESIDE_ROUND, "not in the paper", catalogue, "bytes", "catalogue of item ids"),
    ]


def first_round(device: dict[str, Any]) -> tuple[float, float]:
    """Down and up, at the socket: handshakes, headers and all, but without the catalogue of item ids."""
    down, up = (
        float(sum(device["phases"][name][way] for name in ("sync", "round"))) for way in ("down_bytes", "up_bytes")
    )
    return down - device["disk_bytes"]["catalogue"], up


def first_round_bytes(device: dict[str, Any]) -> float:
    return sum(first_round(device))


def _round_bytes(device: dict[str, Any]) -> float:
    return float(sum(device["phases"]["round"][way] for way in ("up_bytes", "down_bytes")))


def _clear_upload(shape: Shape, messages: dict[str, Any]) -> list[Finding]:
    """A ternary row is two bits an element and its index; the user code travels with them."""
    if "Upload" not in messages:
        return []
    rows = min(shape.ratings, TERNARY_ROWS) * (INDEX_BYTES + 2 * shape.bits / 8) + shape.bits / 8
    what = counted(rows, messages["Upload"][0], "predicted: ternary rows, their indices and the user code")
    return [at_most(UPLOAD, "docs/protocol.md", what, "bytes", rows + MESSAGE_BYTES, "clear, ternary rows")]
