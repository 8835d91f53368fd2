"""A whole cost record in, every finding out. What a partial record lacks is left out."""

from __future__ import annotations

from typing import Any

from lightfr_harness.audits.cost import (
    budgets,
    communication_by_formula,
    figure_1,
    inference,
    measured_storage,
    measured_traffic,
    storage_by_formula,
    ten_million_items,
    text_percentages,
    training_cost,
)
from lightfr_harness.audits.cost.formulas import FCF, LIGHTFR, PACKED, Shape
from lightfr_harness.audits.finding import Finding


def audit(record: dict[str, Any]) -> list[Finding]:
    """Our limits first, then the paper's claims."""
    scenario = record["scenario"]
    shape = Shape(scenario["items"], scenario["ratings"], scenario["bits"])
    devices = record.get("devices", {}).get("devices", [])
    finished = next((device for device in devices if device["finished"]), None)
    fcf = record.get("baselines", {}).get("fcf")
    return [
        *budgets.audit(devices),
        *(measured_storage.audit(shape, finished["disk_bytes"]) if finished else ()),
        *(measured_traffic.audit(shape, finished) if finished else ()),
        *storage_by_formula.audit(shape, _stored(shape, finished, fcf)),
        *communication_by_formula.audit(shape, _sent(finished, fcf)),
        *text_percentages.audit(),
        *ten_million_items.audit(shape, finished and finished["disk_bytes"]),
        *inference.audit(record.get("inference")),
        *training_cost.audit(record.get("training", {})),
        *figure_1.audit(record.get("figure_1", [])),
    ]


def _stored(shape: Shape, device: dict[str, Any] | None, fcf: dict[str, Any] | None) -> dict[str, float]:
    ours = measured_storage.codes_bytes(shape, device["disk_bytes"]) if device else None
    measured = {LIGHTFR.name: ours, PACKED.name: ours, FCF.name: fcf and fcf["storage_bytes"]}
    return {name: n_bytes for name, n_bytes in measured.items() if n_bytes is not None}


def _sent(device: dict[str, Any] | None, fcf: dict[str, Any] | None) -> dict[str, float]:
    ours = measured_traffic.first_round_bytes(device) if device else None
    measured = {LIGHTFR.name: ours, PACKED.name: ours, FCF.name: fcf and fcf["round_bytes"]}
    measured[communication_by_formula.ALL_GRADIENTS] = fcf and fcf["published_round_bytes"]
    return {name: n_bytes for name, n_bytes in measured.items() if n_bytes is not None}
