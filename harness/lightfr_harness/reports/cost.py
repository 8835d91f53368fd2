"""The cost audit as one page: the verdict first, then devices, energy, claims, and the curves behind them."""

from __future__ import annotations

import statistics
from typing import Any

from lightfr_harness.reports import devices
from lightfr_harness.reports.bench import against_items, bytes_panel
from lightfr_harness.reports.figures import in_bytes
from lightfr_harness.reports.findings import claims, of_limits, of_the_paper, paper_sentence
from lightfr_harness.reports.page import Panels, Part, Section, Table, Text, document, table
from lightfr_harness.reports.svg import Plot, Series, log_axis

VARIED = {"bits": "bits of a code", "ratings": "ratings", "items": "items"}


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
    return document("Cost audit", of_limits(findings, paper_sentence(findings)), parts)


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
    return Plot(title, across, up, series), table(title, (VARIED[name], "CPU time, median"), rows)
