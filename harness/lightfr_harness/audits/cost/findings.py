"""A whole cost record in, every finding out. What a partial record lacks is left out."""

from __future__ import annotations

from typing import Any

from lightfr_harness.audits.cost import (
    budgets,
    figure_1,
    inference,
    measured_storage,
    measured_traffic,
    methods_by_formula,
    ten_million_items,
    text_percentages,
    training_cost,
)
from lightfr_harness.audits.cost.formulas import Shape
from lightfr_harness.audits.finding import Finding


def audit(record: dict[str, Any]) -> list[Finding]:
    """Ours first, then the paper's."""
    scenario = record["scenario"]
    shape = Shape(scenario["items"], scenario["ratings"], scenario["bits"])
    devices = record.get("devices", {}).get("devices", [])
    finished = next((device for device in devices if device["finished"]), None)
    measured: list[Finding] = []
    if finished is not None:
        measured += measured_storage.audit(shape, finished["disk_bytes"])
        measured += measured_traffic.audit(shape, finished)
    return [
        *budgets.audit(devices),
        *measured,
        *methods_by_formula.audit(shape, record.get("baselines", {})),
        *text_percentages.audit(),
        *ten_million_items.audit(shape, finished and finished["disk_bytes"]),
        *inference.audit(record.get("inference")),
        *training_cost.audit(record.get("training", {})),
        *figure_1.audit(record.get("figure_1", [])),
    ]
