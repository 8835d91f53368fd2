"""Whether the model has become worse, by what was reported of devices that were held out."""

from __future__ import annotations

from collections.abc import Mapping

from lightfr_harness.server.coordinator.storage import REMEMBERED_VERSIONS, AccuracyReport


def has_fallen(reports: Mapping[int, AccuracyReport], tolerance: float | None) -> bool:
    """Whether the newest hit rate is below the best of the last versions by more than the tolerance. None: never."""
    if tolerance is None or not reports:
        return False
    newest = max(reports)
    recent = (report.hit_rate for version, report in reports.items() if newest - version < REMEMBERED_VERSIONS)
    return reports[newest].hit_rate < max(recent) - tolerance
