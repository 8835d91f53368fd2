"""Findings of audits as parts of pages: our limits in the verdict, the paper's claims, and a table for each claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lightfr_harness.reports.figures import figure, interval_of, limit_of, ratio_of
from lightfr_harness.reports.page import Lines, Part, Row, Table, Text, Verdict, notes

HEADINGS = ("of what", "predicted", "measured", "ratio", "95 % interval", "limit", "verdict")
GUESSED = ("mode", "guessing", "measured", "95 % interval", "limit", "verdict")
Finding = Mapping[str, Any]


def of_limits(findings: Sequence[Finding], rest: str = "") -> Verdict:
    """Whether our limits hold, and every one that is broken."""
    limits = [finding for finding in findings if finding["verdict"] in ("holds", "broken")]
    broken = [finding for finding in limits if finding["verdict"] == "broken"]
    if not limits:
        return Verdict("No limit was tried.", rest=rest)
    if not broken:
        said = "Our one limit holds." if len(limits) == 1 else f"All {len(limits)} of our limits hold."
        return Verdict(said, "holds", rest)
    lines = []
    for finding in broken:
        measured = figure(finding["measured"], finding["unit"])
        moment = f" ({finding['note']})" if finding["note"] else ""
        lines.append(f"{finding['mode']}: {finding['claim']}: {measured}, {limit_of(finding)}{moment}")
    said = f"{len(broken)} of our {len(limits)} limits {'is' if len(broken) == 1 else 'are'} broken."
    return Verdict(said, "broken", rest, lines)


def paper_sentence(findings: Sequence[Finding]) -> str:
    confirmed, refuted = (sum(f["verdict"] == name for f in findings) for name in ("confirmed", "refuted"))
    return f"Of the paper's claims, {confirmed} are confirmed and {refuted} refuted."


def of_the_paper(findings: Sequence[Finding]) -> list[Part]:
    """How many of the paper's claims are confirmed, and which are refuted."""
    lines = [
        f"{f['claim']}, {f['mode']}: the paper says {figure(f['predicted'], f['unit'])}, "
        f"we find {figure(f['measured'], f['unit'])}"
        for f in findings
        if f["verdict"] == "refuted"
    ]
    said = "A refuted claim is a result about the paper, not a failure of this software."
    return [Text(said, paper_sentence(findings)), *([Lines(lines)] if lines else [])]


def claims(findings: Sequence[Finding], heads: Sequence[str] = HEADINGS) -> list[Part]:
    """A table for each claim; those against guessing have a unit where the others have a source."""
    parts: list[Part] = []
    for name in dict.fromkeys(finding["claim"] for finding in findings):
        same = [finding for finding in findings if finding["claim"] == name]
        sources = ", ".join(dict.fromkeys(finding["source"] for finding in same))
        beside = same[0]["unit"] if heads is GUESSED else f"source: {sources}"
        said = [f"{finding['mode']}: {finding['note']}" for finding in same if finding["note"]]
        rows = [_row(finding, heads) for finding in same]
        parts += [Table(f"{name[0].upper() + name[1:]} ({beside})", heads, rows), *notes(said)]
    return parts


def _row(finding: Finding, heads: Sequence[str]) -> Row:
    values = [figure(finding[name], finding["unit"]) for name in ("predicted", "measured")]
    ratio = [] if heads is GUESSED else [ratio_of(finding)]
    return Row(finding["mode"], [*values, *ratio, interval_of(finding), limit_of(finding)], finding["verdict"])
