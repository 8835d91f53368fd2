"""A whole cost record in, every finding out. What a partial record lacks is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lightfr_harness.audits.cost import budgets, cost_table, energy, measured_bytes, secure_round, speed, training_cost
from lightfr_harness.audits.cost.formulas import FCF, LIGHTFR, OURS, Shape
from lightfr_harness.audits.finding import BROKEN, Finding


def audit(record: dict[str, Any]) -> list[Finding]:
    """Our limits first, then the paper's claims."""
    scenario = record["scenario"]
    shape = Shape(scenario["items"], scenario["ratings"], scenario["bits"], scenario["open_rows"])
    devices = record.get("devices", {}).get("devices", [])
    ours: list[Finding] = budgets.audit(devices)
    ours_by_name = [method.name for method in (LIGHTFR, *OURS)]
    stored, sent, disk = {}, {}, None
    if finished := [device for device in devices if device["finished"]]:
        disk = finished[0]["disk_bytes"]
        ours += _bytes_of(shape, scenario, finished[0])
        # All devices do the same: of the others only what is broken is told.
        for device in finished[1:]:
            wrong = [found for found in _bytes_of(shape, scenario, device) if found.verdict == BROKEN]
            ours += [replace(found, mode=f"{found.mode}, {device['profile']['name']}") for found in wrong]
        stored = dict.fromkeys(ours_by_name, measured_bytes.codes_bytes(shape, disk))
        sent = dict.fromkeys(ours_by_name, measured_bytes.first_round_bytes(finished[0]))
    if fcf := record.get("baselines", {}).get("fcf"):
        stored[FCF.name] = fcf["storage_bytes"]
        sent |= {FCF.name: fcf["round_bytes"], cost_table.ALL_GRADIENTS: fcf["published_round_bytes"]}
    return [
        *ours,
        *energy.audit(record.get("energy", {})),
        *cost_table.storage(shape, stored),
        *cost_table.communication(shape, sent),
        *cost_table.text_percentages(),
        *cost_table.ten_million_items(shape, disk),
        *speed.inference(record.get("inference")),
        *speed.search(record.get("search")),
        *training_cost.audit(record.get("training", {})),
        *speed.figure_1(record.get("figure_1", [])),
    ]


def _bytes_of(shape: Shape, scenario: dict[str, Any], device: dict[str, Any]) -> list[Finding]:
    """What one device stores and sends."""
    found = measured_bytes.storage(shape, device["disk_bytes"])
    found += measured_bytes.traffic(shape, scenario, device)
    return found + (secure_round.audit(scenario, device) if scenario["privacy"] != "clear" else [])
