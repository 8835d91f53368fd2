"""The phases of a round of secure aggregation, and what they settle."""

from __future__ import annotations

from dataclasses import dataclass

PHASES = (1, 2, 3, 4, 5, 6, 7)
ADVERTISING, SHARING, ACKNOWLEDGING, INCLUDING, UPLOADING, CONFIRMING, REVEALING = PHASES
PHASE_NAMES = {
    ADVERTISING: "advertising",
    SHARING: "sharing",
    ACKNOWLEDGING: "acknowledging",
    INCLUDING: "including",
    UPLOADING: "uploading",
    CONFIRMING: "confirming",
    REVEALING: "revealing",
}


@dataclass(frozen=True)
class PhaseResult:
    """What the phases so far have fixed. Durable before anybody hears of it, and never anything else for this round."""

    phase: int = ADVERTISING
    entries: bytes = b""
    vouchers: bytes = b""
    degree: int = 0
    holders: int = 0
    threshold: int = 0
    roster_signature: bytes = b""
    included: bytes = b""
    included_signature: bytes = b""
    included_signers: bytes = b""
    survivors: bytes = b""
    survivors_signature: bytes = b""
    survivors_signers: bytes = b""
