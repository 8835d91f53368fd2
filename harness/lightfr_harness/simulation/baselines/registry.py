"""All methods by name, in the order of the paper's table: centralised ones, federated ones, LightFR, and the rest."""

from __future__ import annotations

from lightfr_harness.simulation.baselines import (
    colr,
    ddl,
    fcf,
    fedmf,
    fedrec,
    metamf,
    ncf,
    pfedrec,
    pmf,
    privrec,
    references,
    svdpp,
    variants,
)
from lightfr_harness.simulation.baselines.method import Entry

ENTRIES: tuple[Entry, ...] = (
    *pmf.ENTRIES,
    svdpp.ENTRY,
    ddl.ENTRY,
    ncf.ENTRY,
    *fcf.ENTRIES,
    fedmf.ENTRY,
    fedrec.ENTRY,
    metamf.ENTRY,
    privrec.ENTRY,
    *variants.ENTRIES,
    pfedrec.ENTRY,
    colr.ENTRY,
    *references.ENTRIES,
)
METHODS: dict[str, Entry] = {entry.name: entry for entry in ENTRIES}
