"""Claim: LightFR keeps (1 + m) f bytes on the device. Ours: an eighth of that, as codes really are bits."""

from __future__ import annotations

from typing import Any

from lightfr_harness.audits.cost.formulas import CODE_BITS, FCF, LIGHTFR, PACKED, Shape
from lightfr_harness.audits.finding import Finding, at_most, counted, for_information

CLAIM, BESIDE = "storage of the codes, measured", "storage beside the codes, measured"
SLACK, SLACK_BYTES = 1.02, 65_536
# Of the paper's formula for codes of any length, and of that for FCF at the paper's 64 bits.
SHARE_OF_LIGHTFR, SHARE_OF_FCF = 0.126, 0.032


def audit(shape: Shape, disk: dict[str, Any]) -> list[Finding]:
    """What lies on a device's disk: codes of the items and the user against three bounds; the rest beside."""
    codes = codes_bytes(shape, disk)
    packed, lightfr, fcf = (method.storage(shape) for method in (PACKED, LIGHTFR, FCF))
    fcf_share = SHARE_OF_FCF * shape.bits / CODE_BITS
    return [
        _bound("packed codes, (1+m) f/8", codes, packed, SLACK * packed + SLACK_BYTES),
        _bound("the paper's LightFR, (1+m) f", codes, lightfr, SHARE_OF_LIGHTFR * lightfr),
        _bound("the paper's FCF, (1+m) 32 x 8", codes, fcf, fcf_share * fcf),
        *(_beside(name, disk[name]) for name in ("catalogue", "store", "other") if name in disk),
    ]


def codes_bytes(shape: Shape, disk: dict[str, Any]) -> float:
    """The codes of the items as they lie on disk, and the user's, which lies encrypted in the store."""
    return disk["codes"] + shape.bits / 8


def _bound(mode: str, measured: float, predicted: float, limit: float) -> Finding:
    return at_most(CLAIM, "the paper's cost table, bits packed", counted(predicted, measured), "bytes", limit, mode)


def _beside(name: str, measured: float) -> Finding:
    return for_information(BESIDE, "not in the paper", counted(0, measured), "bytes", name)
