"""All methods by name, in the order of the paper's table: centralised ones, federated ones, LightFR, and the rest."""

from __future__ import annotations

from lightfr_harness.simulation.baselines import ddl, pmf, references, svdpp, variants
from lightfr_harness.simulation.baselines.method import Entry

ENTRIES: tuple[Entry, ...] = (
    *pmf.ENTRIES,
    svdpp.ENTRY,
    ddl.ENTRY,
    *variants.ENTRIES,
    *references.ENTRIES,
)
METHODS: dict[str, Entry] = {entry.name: entry for entry in ENTRIES}
