"""Claim: a round of secure aggregation costs a device (open rows x f x bits) / 8 bytes of rows, and bounded overhead.

`bits` is what a sum over the cohort needs: docs/secagg.md, Vector. The arithmetic here is that of the document and not
the SDK's, so that one can find the other wrong. Memory and CPU time of each stage are told for information; the
profile's budgets, which the kernel enforces, judge them (budgets.py).
"""

from __future__ import annotations

from math import isqrt
from typing import Any

from lightfr_harness.audits.finding import Finding, at_most, counted, for_information
from lightfr_harness.devices.scenario import noise_of

SOURCE = "docs/secagg.md"
UPLOAD, MESSAGES = "bytes of a secure upload, measured", "bytes of a secure round's messages, measured"
SOCKET = "bytes of a secure round at the socket, measured"
STAGE_BYTES = "secure round, bytes of each stage"
STAGE_MEMORY, STAGE_CPU = "secure round, peak memory of each stage", "secure round, CPU time of each stage"
# The most that a device weighs in the sums: as many rows as it uploads.
LARGEST_WEIGHT = 64
# Field tags, digests and ids of an upload's message.
MESSAGE_BYTES = 160
# A device in the roster, and what vouches for it; a sealed share and a revealed one, each with an index.
ENTRY_BYTES, VOUCHER_BYTES, SEALED_BYTES, REVEALED_BYTES = 112, 136, 98, 37
# What a device advertises: two keys, its membership, its signature.
KEYS_BYTES = 2 * 32 + 104 + 64
SIGNATURE_BYTES = 64
# Holders of each device's shares, in cohorts of more than 129; in smaller ones all others hold them.
USUAL_HOLDERS, COMPLETE = 80, 129
# HTTP and TLS around the calls of a round, and its receipts; a handshake, should the connection have been closed.
CALLS_BYTES, HANDSHAKE_BYTES = 8_192, 8_192


def audit(scenario: dict[str, Any], device: dict[str, Any]) -> list[Finding]:
    """The findings of one device that took part in a secure round."""
    messages, taken_part = device["message_bytes"], device["phases"]["round"]
    rows, sums = _upload_bytes(scenario)
    holders, most_held = _holders(scenario["cohort"])
    # A bit for each device whose share cannot be opened.
    complaints = -(-scenario["cohort"] // 8)
    uploaded = counted(rows, messages["Upload"][0], "predicted: open rows x f x bits / 8; the limit adds the sums")
    # Name to predicted bytes, largest bytes and measured bytes: a device may hold the shares of more than the average.
    bounds = {
        "keys up": (KEYS_BYTES, KEYS_BYTES, messages["AdvertiseKeys"][0]),
        "shares up": (holders * SEALED_BYTES, holders * SEALED_BYTES, messages["ShareKeys"][0]),
        "acknowledgement up": (complaints, complaints, messages["AcknowledgeShares"][0]),
        "signatures up": (
            2 * SIGNATURE_BYTES, 2 * SIGNATURE_BYTES, messages["SignIncluded"][0] + messages["SignSurvivors"][0],
        ),
        "revealed shares up": (
            (holders + 1) * REVEALED_BYTES, (most_held + 1) * REVEALED_BYTES, messages["RevealShares"][0],
        ),
        "roster, shares and signatures down": (
            _told_bytes(scenario["cohort"], holders),
            _told_bytes(scenario["cohort"], most_held),
            messages["GetStep"][1],
        ),
    }  # fmt: skip
    whole = counted(rows, taken_part["up_bytes"] + taken_part["down_bytes"], "both ways, all of the round's stages")
    stages = taken_part["stages"].items()
    both = {name: counted(0, stage["up_bytes"] + stage["down_bytes"]) for name, stage in stages}
    peaks = {name: counted(0, stage["peak_rss_bytes"]) for name, stage in stages}
    times = {name: counted(0, 1000 * stage["cpu_seconds"]) for name, stage in stages}
    return [
        at_most(UPLOAD, SOURCE, uploaded, "bytes", rows + sums + MESSAGE_BYTES, scenario["privacy"]),
        *(
            at_most(MESSAGES, SOURCE, counted(predicted, measured), "bytes", most + MESSAGE_BYTES, mode)
            for mode, (predicted, most, measured) in bounds.items()
        ),
        at_most(SOCKET, SOURCE, whole, "bytes", limit_bytes(scenario), scenario["privacy"]),
        *(for_information(STAGE_BYTES, SOURCE, what, "bytes", stage) for stage, what in both.items()),
        *(for_information(STAGE_MEMORY, SOURCE, what, "bytes of memory", stage) for stage, what in peaks.items()),
        *(for_information(STAGE_CPU, SOURCE, what, "ms", stage) for stage, what in times.items()),
    ]


def limit_bytes(scenario: dict[str, Any]) -> float:
    """The most that a whole round may take at the socket, both ways: the upload, and what its privacy needs."""
    cohort = scenario["cohort"]
    holders, most_held = _holders(cohort)
    up = KEYS_BYTES + holders * SEALED_BYTES + 2 * SIGNATURE_BYTES + (most_held + 1) * REVEALED_BYTES
    told = _told_bytes(cohort, most_held)
    return float(sum(_upload_bytes(scenario)) + up + told + CALLS_BYTES + HANDSHAKE_BYTES)


def _holders(cohort: int) -> tuple[int, int]:
    """Holders of a device's shares, which is also how many it holds shares of on average; and the most of these.

    Devices choose their holders at random, so a device is chosen by a binomial number of others; six deviations.
    """
    if cohort <= COMPLETE:
        return cohort - 1, cohort - 1
    return USUAL_HOLDERS, USUAL_HOLDERS + 6 * isqrt(USUAL_HOLDERS)


def _told_bytes(cohort: int, held: int) -> int:
    """The roster, the shares of others, three signatures of the server, two quorums, and four sets of devices."""
    quorum = max(cohort // 2 + 1, 7 * cohort // 10)
    roster = cohort * (ENTRY_BYTES + VOUCHER_BYTES)
    return roster + held * SEALED_BYTES + (3 + 2 * quorum) * SIGNATURE_BYTES + 4 * -(-cohort // 8)


def _upload_bytes(scenario: dict[str, Any]) -> tuple[float, float]:
    """The rows of a masked vector, and the sums beside them."""
    cohort, f = scenario["cohort"], scenario["bits"]
    if scenario["privacy"] == "secagg+dp":
        # A gradient is at most 1.6 f, and a bit.
        noise = noise_of(f, cohort)
        row_bits = _bits(cohort * (16 * f // 10 + 1), noise["noise_rows"], cohort)
        sum_bits = _bits(cohort, noise["noise_sums"], cohort)
    else:
        # The ternary noise of all: as the rows get longer, its variance grows from 12 on.
        row_bits = (2 * (cohort + min(cohort, isqrt(128 * max(12, f // 8))))).bit_length()
        sum_bits = _bits(LARGEST_WEIGHT * cohort, 4 * cohort**0.5, cohort)
    # Each of the up to three blocks ends with a whole byte.
    return scenario["open_rows"] * f * row_bits / 8, (f + 1) * sum_bits / 8 + 3


def _bits(largest_sum: int, deviation: float, cohort: int) -> int:
    """Bits of a sum with its sign, and of ten deviations of the cohort's noise on top."""
    thousandths = isqrt(cohort * (10 * round(1000 * deviation)) ** 2)
    return (2 * (largest_sum + -(-thousandths // 1000))).bit_length()
