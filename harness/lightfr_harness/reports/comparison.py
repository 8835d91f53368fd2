"""Two records of one kind side by side as one page: what got worse first, then every figure of both."""

from __future__ import annotations

from html import escape

from lightfr_harness.compare import Change, worse
from lightfr_harness.records import CostRecord, Record
from lightfr_harness.reports import devices
from lightfr_harness.reports.figures import figure
from lightfr_harness.reports.page import document, row, table

HEADINGS = ("claim and setting", "before", "after", "ratio", "change")


def page(before: Record, after: Record, changes: list[Change]) -> str:
    """One self-contained HTML page."""
    moved = [change for change in changes if change.what != "same"]
    body = (
        f"<h1>Two records compared: {after.kind}</h1>{_verdict(worse(changes))}"
        f"{table('What changed', HEADINGS, [_row(change) for change in moved])}"
        f"{_devices('Devices before', before)}{_devices('Devices after', after)}"
        f"{table('Every figure', HEADINGS, [_row(change) for change in changes])}"
    )
    return document("Two records compared", body)


def _verdict(changes: list[Change]) -> str:
    if not changes:
        return '<p class="verdict"><strong class="holds">Nothing got worse, beyond noise.</strong></p>'
    lines = "".join(f"<li>{escape(change.claim)}, {escape(change.mode)}</li>" for change in changes)
    return f'<p class="verdict"><strong class="broken">{len(changes)} got worse.</strong></p><ul>{lines}</ul>'


def _row(change: Change) -> str:
    before, after = (side["measured"] if side else None for side in (change.before, change.after))
    ratio = f"{after / before:.3g}" if before and after is not None else "-"
    cells = (figure(before, change.unit), figure(after, change.unit), ratio, change.what)
    return row(f"{change.claim}, {change.mode}", cells)


def _devices(caption: str, record: Record) -> str:
    if not isinstance(record, CostRecord) or not record.devices or not record.devices["devices"]:
        return ""
    return devices.side_by_side(record.devices["devices"], caption)
