"""Two records of one kind side by side as one page: what got worse first, then every figure of both."""

from __future__ import annotations

from lightfr_harness.compare import Change, worse
from lightfr_harness.records import CostRecord, Record
from lightfr_harness.reports import devices
from lightfr_harness.reports.figures import figure
from lightfr_harness.reports.page import Table, Verdict, document, table

HEADINGS = ("claim and setting", "before", "after", "ratio", "change")


def page(before: Record, after: Record, changes: list[Change]) -> str:
    """One self-contained HTML page."""
    moved = [change for change in changes if change.what != "same"]
    return document(
        f"Two records compared: {after.kind}",
        _verdict(worse(changes)),
        [
            table("What changed", HEADINGS, [_row(change) for change in moved]),
            _devices("Devices before", before),
            _devices("Devices after", after),
            table("Every figure", HEADINGS, [_row(change) for change in changes]),
        ],
    )


def _verdict(changes: list[Change]) -> Verdict:
    if not changes:
        return Verdict("Nothing got worse, beyond noise.", "holds")
    lines = [f"{change.claim}, {change.mode}" for change in changes]
    return Verdict(f"{len(changes)} got worse.", "broken", lines=lines)


def _row(change: Change) -> tuple[str, list[str]]:
    before, after = (side["measured"] if side else None for side in (change.before, change.after))
    ratio = f"{after / before:.3g}" if before and after is not None else "-"
    cells = [figure(before, change.unit), figure(after, change.unit), ratio, change.what]
    return f"{change.claim}, {change.mode}", cells


def _devices(caption: str, record: Record) -> Table | None:
    if not isinstance(record, CostRecord) or not record.devices or not record.devices["devices"]:
        return None
    return devices.side_by_side(record.devices["devices"], caption)
