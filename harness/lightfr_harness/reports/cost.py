"""The cost audit as one page: the verdict first, then devices, claims, and the curves behind them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from lightfr_harness.reports import devices
from lightfr_harness.reports.figures import bytes_tick, figure, in_bytes, interval_of, limit_of, ratio_of
from lightfr_harness.reports.page import document, notes, row, table
from lightfr_harness.reports.svg import Series, draw, log_axis

HEADINGS = ("of what", "predicted", "measured", "ratio", "95 % interval", "limit", "verdict")
VARIED = {"bits": "bits of a code", "ratings": "ratings", "items": "items"}
Finding = Mapping[str, Any]


def page(record: dict[str, Any]) -> str:
    """One self-contained HTML page of a cost audit's record."""
    findings = record["findings"]
    run = record.get("devices", {})
    body = (
        f"<h1>Cost audit</h1>{verdict(findings)}{_about(record, run)}"
        f"{devices.section(run.get('devices', []))}<h2>Claims</h2>{claims(findings)}{_curves(record)}"
    )
    return document("Cost audit", body)


def verdict(findings: Sequence[Finding]) -> str:
    """Our limits in one line, the paper's claims in another."""
    return _ours(findings) + of_the_paper(findings)


def _ours(findings: Sequence[Finding]) -> str:
    limits = [finding for finding in findings if finding["verdict"] in ("holds", "broken")]
    broken = [finding for finding in limits if finding["verdict"] == "broken"]
    if not limits:
        return '<p class="verdict">No limit was tried.</p>'
    if not broken:
        return f'<p class="verdict"><strong class="holds">All {len(limits)} of our limits hold.</strong></p>'
    lines = ""
    for finding in broken:
        measured = figure(finding["measured"], finding["unit"])
        moment = f" ({finding['note']})" if finding["note"] else ""
        sentence = f"{finding['mode']}: {finding['claim']}: {measured}, {limit_of(finding)}{moment}"
        lines += f"<li>{escape(sentence)}</li>"
    text = f"{len(broken)} of our {len(limits)} limits {'is' if len(broken) == 1 else 'are'} broken."
    return f'<p class="verdict"><strong class="broken">{text}</strong></p><ul>{lines}</ul>'


def of_the_paper(findings: Sequence[Finding]) -> str:
    """How many of the paper's claims are confirmed, and which are refuted."""
    confirmed, refuted = ([f for f in findings if f["verdict"] == name] for name in ("confirmed", "refuted"))
    lines = "".join(
        f"<li>{escape(f['claim'])}, {escape(f['mode'])}: the paper says {figure(f['predicted'], f['unit'])}, "
        f"we find {figure(f['measured'], f['unit'])}</li>"
        for f in refuted
    )
    return (
        f'<p>Of the paper\'s claims, <span class="confirmed">{len(confirmed)} are confirmed</span> and '
        f'<span class="refuted">{len(refuted)} refuted</span>. A refuted claim is a result about the paper, not a '
        f"failure of this software.</p>" + (f"<ul>{lines}</ul>" if lines else "")
    )


def _about(record: dict[str, Any], run: dict[str, Any]) -> str:
    scenario, enforcement = record["scenario"], run.get("enforcement")
    sizes = f"{scenario['items']:,} items, {scenario['ratings']:,} ratings, {scenario['bits']} bits"
    data = f", the shape of {scenario['dataset']}" if scenario["dataset"] else ""
    how = f" Memory was enforced by {enforcement['memory']}, CPU by {enforcement['cpu']}." if enforcement else ""
    partial = (
        '<p class="broken">This audit was interrupted: what follows is what was measured until then.</p>'
        if record["interrupted"]
        else ""
    )
    if scenario["privacy"] == "clear":
        mode = "Uploads are in the clear, which is not private."
    else:
        noise = ", with noise" if scenario["privacy"] == "secagg+dp" else ""
        mode = (
            f"Each device took part in a round of secure aggregation{noise}, among {scenario['cohort']:,} devices and "
            f"with {scenario['open_rows']:,} open rows."
        )
    return (
        f"<p>{escape(sizes + data)}, seed {record['seed']}.{escape(how)} {escape(mode)} Bytes are counted in powers of "
        f"1000, memory in MiB. Times were taken on a machine that may be shared: ratios mean more than they do.</p>"
        f"{partial}"
    )


def claims(findings: Sequence[Finding]) -> str:
    """A table for each claim."""
    names = list(dict.fromkeys(finding["claim"] for finding in findings))
    return "".join(_claim(name, [f for f in findings if f["claim"] == name]) for name in names)


def _claim(name: str, findings: Sequence[Finding]) -> str:
    sources = ", ".join(dict.fromkeys(finding["source"] for finding in findings))
    said = [f"{f['mode']}: {f['note']}" for f in findings if f["note"]]
    caption = f"{name[0].upper() + name[1:]} (source: {sources})"
    return table(caption, HEADINGS, [_row(finding) for finding in findings], name) + notes(said)


def _row(finding: Finding) -> str:
    values = (figure(finding[name], finding["unit"]) for name in ("predicted", "measured"))
    return row(
        finding["mode"], (*values, ratio_of(finding), interval_of(finding), limit_of(finding)), finding["verdict"]
    )


def _curves(record: dict[str, Any]) -> str:
    figure_1, training = record.get("figure_1", []), record.get("training", {})
    drawn = ""
    if figure_1:
        drawn += f"<h2>Figure 1: codes against real values</h2>{figure_1_panels(figure_1)}"
    if training:
        drawn += "<h2>Training cost</h2>" + "".join(_training(name, training[name]) for name in training)
    return drawn


def figure_1_panels(figure_1: list[dict[str, Any]]) -> str:
    """The three panels, and all their points in a table."""
    return (
        _bytes("Storage on the device", "storage_bytes", figure_1)
        + _bytes("Communication of one round", "communication_bytes", figure_1)
        + _inference(figure_1)
        + _figure_1_table(figure_1)
    )


def _against_items(title: str, unit: str, series: list[Series]) -> str:
    points = [(items, value) for one in series for items, value, _ in one.points]
    counts, values = [items for items, _ in points], [value for _, value in points]
    text = bytes_tick if unit == "bytes" else None
    return draw(title, log_axis("items", counts), log_axis(unit, values, text), series)


def _bytes(title: str, key: str, figure_1: list[dict[str, Any]]) -> str:
    series = [
        Series(
            name, [(at["items"], at[key][name], f"{at['items']:,} items: {in_bytes(at[key][name])}") for at in figure_1]
        )
        for name in figure_1[0][key]
    ]
    return _against_items(title, "bytes", series)


def _inference(figure_1: list[dict[str, Any]]) -> str:
    series = []
    for name, key in (("codes, our kernel", "codes_ns"), ("real values, float64", "real_ns")):
        points = [(at["items"], at[key] / 1e6, f"{at['items']:,} items: {at[key] / 1e6:.3g} ms") for at in figure_1]
        series.append(Series(name, points))
    return _against_items("Inference, one top 10, CPU time", "ms", series)


def _figure_1_table(figure_1: list[dict[str, Any]]) -> str:
    """The points of all three plots."""
    panels = (("storage_bytes", "storage"), ("communication_bytes", "a round"))
    heads = [f"{panel}: {name}" for key, panel in panels for name in figure_1[0][key]]
    rows = [
        row(
            f"{at['items']:,}",
            [in_bytes(n) for key, _ in panels for n in at[key].values()]
            + [f"{at[key] / 1e6:.3g} ms" for key in ("codes_ns", "real_ns")],
        )
        for at in figure_1
    ]
    return table("Figure 1 in numbers", ("items", *heads, "inference: codes", "inference: real values"), rows)


def _training(name: str, sweep: dict[str, Any]) -> str:
    points = [(float(size), 1000 * statistics.median(times)) for size, times in sweep["points"]]
    series = [Series("median", [(size, ms, f"{size:,.0f}: {ms:.2f} ms") for size, ms in points])]
    across, up = log_axis(VARIED[name], [x for x, _ in points]), log_axis("CPU ms", [y for _, y in points])
    title = f"A fit against the {VARIED[name]} ({sweep['note']})"
    rows = [row(f"{size:,.0f}", [f"{ms:.3g} ms"]) for size, ms in points]
    return draw(title, across, up, series) + table(title, (VARIED[name], "CPU time, median"), rows)
