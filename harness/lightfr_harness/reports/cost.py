"""The cost audit as one page: the verdict first, then devices, energy, claims, and the curves behind them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from lightfr_harness.reports import devices
from lightfr_harness.reports.bench import against_items, bytes_panel
from lightfr_harness.reports.figures import figure, in_bytes, interval_of, limit_of, ratio_of
from lightfr_harness.reports.page import Lines, Panels, Part, Row, Section, Table, Text, Verdict, document, notes, table
from lightfr_harness.reports.svg import Plot, Series, draw, log_axis

HEADINGS = ("of what", "predicted", "measured", "ratio", "95 % interval", "limit", "verdict")
VARIED = {"bits": "bits of a code", "ratings": "ratings", "items": "items"}
Finding = Mapping[str, Any]


def page(record: dict[str, Any]) -> str:
    """One self-contained HTML page of a cost audit's record."""
    findings, run = record["findings"], record.get("devices") or {}
    tried = run.get("devices", [])
    parts = [
        *_about(record, run),
        *devices.sections(tried, findings),
        devices.energy(tried, record.get("energy") or {}),
        Section("Claims", [*of_the_paper(findings), *claims(findings)]),
        *_curves(record),
    ]
    return document("Cost audit", verdict(findings), parts)


def verdict(findings: Sequence[Finding]) -> Verdict:
    """Our limits, and how many of the paper's claims hold."""
    limits = [finding for finding in findings if finding["verdict"] in ("holds", "broken")]
    broken = [finding for finding in limits if finding["verdict"] == "broken"]
    if not limits:
        return Verdict("No limit was tried.", rest=_of_the_paper(findings))
    if not broken:
        return Verdict(f"All {len(limits)} of our limits hold.", "holds", _of_the_paper(findings))
    lines = []
    for finding in broken:
        measured = figure(finding["measured"], finding["unit"])
        moment = f" ({finding['note']})" if finding["note"] else ""
        lines.append(f"{finding['mode']}: {finding['claim']}: {measured}, {limit_of(finding)}{moment}")
    text = f"{len(broken)} of our {len(limits)} limits {'is' if len(broken) == 1 else 'are'} broken."
    return Verdict(text, "broken", _of_the_paper(findings), lines)


def _of_the_paper(findings: Sequence[Finding]) -> str:
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
    return [Text(said, _of_the_paper(findings)), *([Lines(lines)] if lines else [])]


def _about(record: dict[str, Any], run: dict[str, Any]) -> list[Part]:
    scenario, enforcement = record["scenario"], run.get("enforcement")
    sizes = f"{scenario['items']:,} items, {scenario['ratings']:,} ratings, {scenario['bits']} bits"
    data = f", the shape of {scenario['dataset']}" if scenario["dataset"] else ""
    how = f" Memory was enforced by {enforcement['memory']}, CPU by {enforcement['cpu']}." if enforcement else ""
    if scenario["privacy"] == "clear":
        mode = "Uploads are in the clear, which is not private."
    else:
        noise = ", with noise" if scenario["privacy"] == "secagg+dp" else ""
        mode = (
            f"Each device took part in a round of secure aggregation{noise}, among {scenario['cohort']:,} devices and "
            f"with {scenario['open_rows']:,} open rows."
        )
    units = (
        "Memory is in MiB, files and traffic are in powers of 1000 bytes. Times were taken on a machine that may be "
        "shared: ratios mean more than they do."
    )
    partial = "This audit was interrupted: what follows is what was measured until then."
    return [
        *([Text(partial, kind="broken")] if record["interrupted"] else []),
        Text(f"{sizes}{data}, seed {record['seed']}.{how} {mode} {units}"),
    ]


def claims(findings: Sequence[Finding]) -> list[Part]:
    """A table for each claim."""
    names = list(dict.fromkeys(finding["claim"] for finding in findings))
    return [part for name in names for part in _claim(name, [f for f in findings if f["claim"] == name])]


def _claim(name: str, findings: Sequence[Finding]) -> list[Part]:
    sources = ", ".join(dict.fromkeys(finding["source"] for finding in findings))
    said = [f"{f['mode']}: {f['note']}" for f in findings if f["note"]]
    caption = f"{name[0].upper() + name[1:]} (source: {sources})"
    return [Table(caption, HEADINGS, [_row(finding) for finding in findings]), *notes(said)]


def _row(finding: Finding) -> Row:
    values = (figure(finding[name], finding["unit"]) for name in ("predicted", "measured"))
    cells = (*values, ratio_of(finding), interval_of(finding), limit_of(finding))
    return Row(finding["mode"], cells, finding["verdict"])


def _curves(record: dict[str, Any]) -> list[Part]:
    figure_1, training = record.get("figure_1") or [], record.get("training") or {}
    parts: list[Part] = []
    if figure_1:
        parts.append(Section("Figure 1: codes against real values", figure_1_panels(figure_1)))
    if training:
        drawn = [_training(name, sweep) for name, sweep in training.items()]
        told = [table for _, table in drawn]
        parts.append(Section("Training cost", [Panels([plot for plot, _ in drawn]), *told]))
    return parts


def figure_1_panels(figure_1: list[dict[str, Any]]) -> list[Part]:
    """The three panels, and all their points in a table."""
    bytes_of = {
        key: [{"items": at["items"], **at[key]} for at in figure_1] for key in ("storage_bytes", "communication_bytes")
    }
    inference = []
    for name, key in (("codes, our kernel", "codes_ns"), ("real values, float64", "real_ns")):
        points = [(at["items"], at[key] / 1e6, f"{at['items']:,} items: {at[key] / 1e6:.3g} ms") for at in figure_1]
        inference.append(Series(name, points))
    panels = [
        bytes_panel("Storage on the device", bytes_of["storage_bytes"]),
        bytes_panel("Communication of one round", bytes_of["communication_bytes"]),
        against_items("Inference, one top 10, CPU time", "ms", inference),
    ]
    return [Panels(panels), _figure_1_table(figure_1)]


def _figure_1_table(figure_1: list[dict[str, Any]]) -> Table:
    """The points of all three plots."""
    panels = (("storage_bytes", "storage"), ("communication_bytes", "a round"))
    heads = [f"{panel}: {name}" for key, panel in panels for name in figure_1[0][key]]
    rows = [
        (
            f"{at['items']:,}",
            [in_bytes(n) for key, _ in panels for n in at[key].values()]
            + [f"{at[key] / 1e6:.3g} ms" for key in ("codes_ns", "real_ns")],
        )
        for at in figure_1
    ]
    return table("Figure 1 in numbers", ("items", *heads, "inference: codes", "inference: real values"), rows)


def _training(name: str, sweep: dict[str, Any]) -> tuple[Plot, Table]:
    points = [(float(size), 1000 * statistics.median(times)) for size, times in sweep["points"]]
    series = [Series("median", [(size, ms, f"{size:,.0f}: {ms:.2f} ms") for size, ms in points])]
    across, up = log_axis(VARIED[name], [x for x, _ in points]), log_axis("CPU ms", [y for _, y in points])
    title = f"A fit against the {VARIED[name]} ({sweep['note']})"
    rows = [(f"{size:,.0f}", [f"{ms:.3g} ms"]) for size, ms in points]
    return draw(title, across, up, series), table(title, (VARIED[name], "CPU time, median"), rows)
