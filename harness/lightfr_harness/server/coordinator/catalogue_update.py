"""Another list of items for a folder: what it changes, and the way from the operator to the coordinator.

`offer` checks a list and puts it into the folder, or into the database of replicas, where the coordinator finds it
between two rounds. A coordinator that is stopped finds it at its next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np

from lightfr.model.catalogue import Catalogue
from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator.catalogue_plan import Change, Numbers, plan_change
from lightfr_harness.server.coordinator.folder import FolderError, put_next_catalogue
from lightfr_harness.server.coordinator.options import ItemList, Settings, SettingsError, make_rule
from lightfr_harness.server.coordinator.publishing import Publisher
from lightfr_harness.server.coordinator.shelf import Shelf
from lightfr_harness.server.coordinator.storage import Storage
from lightfr_harness.server.coordinator.stored import reading
from lightfr_harness.server.rules import AggregationRule, CatalogueRule


def offer(folder: Path, content: bytes) -> Change:
    """Check a list of items and put it into the folder of a coordinator, running or not; what it will change.

    Raises SettingsError, which names lines and never items, FolderError or StorageError.
    """
    if not (folder / "coordinator.sqlite").exists():
        raise FolderError(f"{folder} is not the folder of a coordinator: it has no coordinator.sqlite")
    with reading(folder / "coordinator.sqlite") as stored:
        kept, manifests, changes = stored.settings(), stored.manifests(), stored.catalogue_changes()
    if kept is None:
        raise FolderError("the folder has not begun: start the coordinator with this list as its --catalogue")
    change = check_list(Publisher(folder), Settings(**kept), manifests[0], content, has_counts=changes[0].has_counts)
    put_next_catalogue(folder, content)
    return change


def offer_to_replicas(database: str, content: bytes) -> Change:
    """As above, for the replicas of a database, which has their files too."""
    return asyncio.run(_offer_to_replicas(database, content))


async def _offer_to_replicas(database: str, content: bytes) -> Change:
    storage = Storage.in_postgres(database, lambda: None)
    try:
        kept, manifests, changes = await storage.read(
            lambda stored: (stored.settings(), stored.manifests(), stored.catalogue_changes())
        )
        if kept is None:
            raise FolderError("the database has not begun: start a replica with this list as its --catalogue")
        with TemporaryDirectory() as folder:
            publisher = Publisher(Path(folder))
            state = await Shelf(publisher, storage).fetch_newest(manifests)
            change = check_list(
                publisher, Settings(**kept), manifests[0], content, has_counts=changes[0].has_counts, state=state
            )
        await storage.offer_catalogue(content)
        return change
    finally:
        await storage.close()


def check_list(
    publisher: Publisher, settings: Settings, newest: bytes, content: bytes, *, has_counts: bool,
    state: Path | None = None,
) -> Change:  # fmt: skip
    """What a list of items changes, with these settings and this newest manifest; its state may lie elsewhere."""
    items = parse(content, settings, has_counts=has_counts)
    manifest = manifest_pb2.Manifest.FromString(newest)
    rule = make_rule(settings, ItemList.unnamed(manifest.model.item_count, has_counts=has_counts))
    publisher.restore(rule, manifest, state)
    with OldItems(publisher.artifacts, manifest) as old:
        return old.change_to(items, rule, settings)


def parse(content: bytes, settings: Settings, *, has_counts: bool) -> ItemList:
    """Read a list for a folder with these settings, whose first list had counts or had none."""
    items = ItemList.parse(content, integer_ids=settings.integer_ids)
    if has_counts and items.device_counts is None:
        raise SettingsError("the folder was begun with counts: write `item_id<TAB>count` in each line")
    if not has_counts and items.device_counts is not None:
        raise SettingsError("the folder was begun without counts: write an item id in each line, and nothing else")
    return items


def counts_after(change: Change, items: ItemList, rule: AggregationRule, settings: Settings) -> Numbers:
    """How many devices rate each item, by new index."""
    given = given_counts(items, rule, settings)
    return change.kept(rule.device_counts) if given is None else change.listed(given)


def given_counts(items: ItemList, rule: AggregationRule, settings: Settings) -> Numbers | None:
    """How many devices rate each item, as the list says. None: it does not, or the devices have counted since."""
    is_counted = isinstance(rule, CatalogueRule) and rule.counted_devices > 0
    if items.device_counts is None or settings.public_counts or is_counted:
        return None
    return np.array(items.device_counts, np.int64)


class OldItems:
    """The items of a version: where each is found, until this is left."""

    def __init__(self, artifacts: Path, manifest: manifest_pb2.Manifest) -> None:
        self._paths = [artifacts / part.sha256.hex() for part in manifest.catalogue_parts]
        self._opened = ExitStack()

    def __enter__(self) -> OldItems:
        with ExitStack() as opened:
            self._parts = [opened.enter_context(Catalogue.open([path])) for path in self._paths]
            self._all = opened.enter_context(Catalogue.open(self._paths))
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def change_to(self, items: ItemList, rule: AggregationRule, settings: Settings) -> Change:
        """What a list changes, for a rule that stands at the version."""
        places = (self._all.index_of(item_id) for item_id in items.ids)
        found = np.fromiter((-1 if index is None else index for index in places), np.int64, len(items.ids))
        return plan_change(found, rule.removed, [part.n_items for part in self._parts], _popularity(
            items, found, rule, settings
        ))  # fmt: skip

    def new_part(self, change: Change, items: ItemList) -> Sequence[str] | Sequence[int]:
        """The ids of the new part, by index. Items that left keep theirs."""
        behind = slice(change.n_items - change.new_part, None)
        places, olds = change.place_of_new[behind].tolist(), change.old_index_of_new[behind].tolist()
        ids = [
            items.ids[place] if place >= 0 else self._all.id_of(old) for place, old in zip(places, olds, strict=True)
        ]
        return cast("list[str] | list[int]", ids)


def _popularity(items: ItemList, found: Numbers, rule: AggregationRule, settings: Settings) -> Numbers:
    """What items are numbered by, in the order of the list: its counts, or those of devices as far as they are told."""
    if settings.public_counts:
        return np.array(items.device_counts, np.int64)
    given = given_counts(items, rule, settings)
    if given is not None:
        return given
    told = np.where(rule.device_counts >= max(rule.gate, 1), rule.device_counts, 0)
    return np.where(found >= 0, told[found], 0)
