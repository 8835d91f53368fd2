"""What the server learns, method by method: one table for the terminal and the page."""

from __future__ import annotations

from typing import Any

from lightfr_harness.records import FindingFields, MethodsPrivacyRecord
from lightfr_harness.reports.page import Row, Table, Text, Verdict, document, notes, table

TITLE = "What the server learns"
# Heads of the columns, and the claims that stand under each: LightFR has codes where the others have vectors.
COLUMNS = {
    "rated items": ("rated items named",),
    "over rounds": ("rated items named by what comes up in every round",),
    "ratings": ("ratings recovered exactly",),
    "vectors, codes": ("user vectors read", "user codes read from uploads"),
    "list of ten": ("recommended items named",),
}
EPSILON, TABLE_1 = "epsilon", "privacy, by Table 1"
HEADS = ("method (run)", *COLUMNS, "ε")


def page(record: MethodsPrivacyRecord) -> str:
    """One self-contained HTML page of `audit privacy --method`."""
    said = [
        f"{each['mode']}: {each['note']}" for each in (*record.findings, *record.beside) if each["claim"] == EPSILON
    ]
    rows = [(name, cells) for name, cells, _ in learned(record)]
    caption = "Percent that the server reads, and in brackets what it guesses without any upload"
    parts = [*map(Text, runs(record)), table(caption, HEADS, rows), Text(ATTACKER), *notes(said), _table_1(record)]
    return document(TITLE, _verdict(record), parts)


ATTACKER = (
    "The server is honest but curious, and 5 % of the devices help it to guess. It names as many items as the user "
    "rated: from the last upload alone, or by what comes up in every round. A vector is read when its cosine with the "
    "true one is at least 0.99, a code when 90 % of its bits are right. The list is the ten items that the device "
    "recommends. An epsilon limits what everybody learns from what is published; in PrivRec the server itself sees "
    "more. Nothing here is a limit of ours."
)


def learned(record: MethodsPrivacyRecord) -> list[tuple[str, list[str], str]]:
    """Name, cells and verdict of each row: the methods of this run, then LightFR's modes of the other."""
    rows = []
    for run, findings, prefix in (("1", record.findings, ""), ("2", record.beside, "LightFR, ")):
        for mode in dict.fromkeys(each["mode"] for each in findings):
            by_claim = {each["claim"]: each for each in findings if each["mode"] == mode}
            cells = [_cell([by_claim[claim] for claim in claims if claim in by_claim]) for claims in COLUMNS.values()]
            stated = by_claim.get(EPSILON)
            limit = f"{stated['measured']:.1f}" if stated else "none"
            verdict = by_claim[TABLE_1]["verdict"] if TABLE_1 in by_claim else "-"
            rows.append((f"{prefix}{mode} ({run})", [*cells, limit], verdict))
    return rows


def runs(record: MethodsPrivacyRecord) -> list[str]:
    """Which run is which, in words."""
    said = [f"Run 1 is this audit: {_in_words(record.options)}, constants of the methods' authors."]
    if record.beside_options is not None:
        modes = ", ".join(record.beside_options["modes"])
        per_device = record.beside_options.get("rounds_per_device", record.beside_options["rounds"])
        said.append(
            f"Run 2 is an audit of LightFR's modes {modes}: {_in_words(record.beside_options)}, at most {per_device} "
            "for a device; in the clear at most 10."
        )
    return said


def _in_words(options: dict[str, Any]) -> str:
    data = "the data set given" if options["data"] else f"synthetic data ({options['synthetic']})"
    return f"{data}, seed {options['seed']}, at most {options['rounds']} rounds"


def _cell(findings: list[FindingFields]) -> str:
    if not findings or findings[0]["measured"] is None:
        return "-"
    return f"{100 * findings[0]['measured']:.1f} ({100 * findings[0]['predicted']:.1f})"


def _table_1(record: MethodsPrivacyRecord) -> Table | None:
    """The paper's tick or cross for each setting, and whether it holds."""
    verdicts = [Row(name, (), verdict) for name, _, verdict in learned(record) if verdict != "-"]
    said = "Is the paper's Table 1 right about privacy? A tick holds within 2 points of guessing"
    return Table(said, ("method (run)", "verdict"), verdicts) if verdicts else None


def _verdict(record: MethodsPrivacyRecord) -> Verdict:
    """How much of the paper's column on privacy holds; there are no limits here."""
    told = [each for each in (*record.findings, *record.beside) if each["claim"] == TABLE_1]
    refuted = [name for name, _, verdict in learned(record) if verdict == "refuted"]
    if not told:
        return Verdict("None of these methods is in the paper's Table 1.")
    said = f"The paper's Table 1 on privacy is refuted in {len(refuted)} of {len(told)} settings"
    return Verdict(f"{said}{':' if refuted else '.'}", lines=refuted)
