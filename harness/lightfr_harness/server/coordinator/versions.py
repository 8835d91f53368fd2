"""Makes the versions of a folder: publishes what the rule has, remembers what was published, changes the items."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator.accuracy import Evaluation, Evaluations, about_ranking
from lightfr_harness.server.coordinator.catalogue_plan import Numbers
from lightfr_harness.server.coordinator.catalogue_update import OldItems, counts_after, parse
from lightfr_harness.server.coordinator.folder import CrashPoint, NextCatalogue
from lightfr_harness.server.coordinator.options import ItemList, MakeRule, Settings, SettingsError
from lightfr_harness.server.coordinator.publishing import Publisher, Signer, Version, artifact_kinds
from lightfr_harness.server.coordinator.rounds import Plan
from lightfr_harness.server.coordinator.storage import REMEMBERED_VERSIONS
from lightfr_harness.server.coordinator.stored import CatalogueChange, Memory
from lightfr_harness.server.coordinator.telemetry import Metrics

T = TypeVar("T")


class Changed(NamedTuple):
    """What came of another list of items."""

    version: Version
    change: CatalogueChange


class VersionKeeper:
    """One folder and one model. Rounds are run by RoundKeeper."""

    version: Version

    def __init__(
        self, folder: Path, settings: Settings, plan: Plan, signer: Signer, metrics: Metrics, crash_point: CrashPoint,
        make_rule: MakeRule, shared: Path | None = None,
    ) -> None:  # fmt: skip
        """Hold a folder; artifacts and states lie in the shared one, if there is one."""
        self.folder, self.settings, self.plan, self.metrics = folder, settings, plan, metrics
        self.largest_upload_bytes = 0
        self._signer, self._make_rule = signer, make_rule
        self._publisher = Publisher(folder if shared is None else shared, plan.artifacts_address, crash_point)
        self.artifacts = self._publisher.artifacts
        self.next_catalogue = NextCatalogue(self._publisher.folder)
        # Counts of plays or sales by index, if there are such counts.
        self._public_counts: Numbers | None = None
        # One thread for what takes long: it is waited for before the folder is let go.
        self._worker = ThreadPoolExecutor(1, "aggregation")

    def _remember(self, memory: Memory) -> None:
        self._manifests = deque(memory.manifests, maxlen=REMEMBERED_VERSIONS)
        self.evaluations, self.catalogue_changes = memory.evaluations, memory.catalogue_changes

    def _first_version(self, items: ItemList | None) -> Version:
        """Begin with the first list of items."""
        if items is None:
            raise SettingsError("a new folder needs --catalogue, the list of its items")
        self._rule = self._make_rule(self.settings, items)
        if self.settings.public_counts and items.device_counts is not None:
            self._public_counts = np.array(items.device_counts, np.int64)
        parts = [self._publisher.put_catalogue(items.ids)]
        self.catalogue_changes = [
            CatalogueChange(
                1, items.sha256, items.device_counts is not None, len(items.ids), 0, 0, is_renumbered=False,
                at=time.time(),
            )
        ]  # fmt: skip
        return self._publish(1, parts, (), self.evaluations, is_trained=False)

    def _newest_version(self, items: ItemList | None, places: int) -> Version:
        """Go on with the newest version, for a round of so many places."""
        known = [change.sha256 for change in self.catalogue_changes]
        if items is not None and items.sha256 not in known and not self.next_catalogue.is_same(items.sha256):
            raise SettingsError(
                "the folder has another catalogue: start without --catalogue, and change the items with"
                " `lightfr-harness catalogue update`"
            )
        newest = self._manifests.popleft()
        manifest = manifest_pb2.Manifest.FromString(newest)
        stand_in = ItemList.unnamed(manifest.model.item_count, has_counts=self.catalogue_changes[0].has_counts)
        self._rule = self._make_rule(self.settings, stand_in)
        self._public_counts = self._publisher.restore(self._rule, manifest)
        return self._made_version(newest, places)

    def _made_version(self, manifest: bytes, places: int = 0) -> Version:
        """For rounds of the plan, or of an older one with so many places."""
        return Version.of(manifest, self._rule, self._signer.sign, max(self.plan.places, places))

    def _adopt(self, version: Version) -> None:
        """Make a durable version the one that devices get."""
        self._manifests.appendleft(version.serialised)
        self.version = version
        # Never less than before: who has lost a receipt sends an upload of an older version again.
        self.largest_upload_bytes = max(self.largest_upload_bytes, version.upload_limit_bytes)
        self.metrics.model_version.set(version.manifest.model_version)

    def artifact_kind(self, digest: str) -> str:
        """What the artifact of a digest is: "codes", "catalogue", "delta" and so on; else "unknown"."""
        for manifest in self._manifests:
            kinds = artifact_kinds(manifest_pb2.Manifest.FromString(manifest))
            if digest in kinds:
                return kinds[digest]
        return "unknown"

    @property
    def removed_items(self) -> int:
        """How many items have left and keep their indices."""
        return int(self._rule.removed.sum())

    def _clean(self) -> None:
        self._publisher.clean(list(self._manifests), [one.model_version for one in self.evaluations.kept])

    async def _in_worker(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, function, *arguments)

    def _published(
        self,
        is_trained: bool,
        evaluation: Evaluation | None = None,
        parts: Sequence[manifest_pb2.Artifact] | None = None,
    ) -> Version:
        """What the rule has now as the next version, written but not yet the one that counts."""
        older = [manifest_pb2.Manifest.FromString(manifest) for manifest in self._manifests]
        evaluations = self.evaluations.plus(evaluation) if evaluation else self.evaluations
        number = self.version.manifest.model_version + 1
        same = older[0].catalogue_parts if parts is None else parts
        return self._publish(number, same, older, evaluations, is_trained=is_trained)

    def _publish(
        self,
        number: int,
        catalogue_parts: Sequence[manifest_pb2.Artifact],
        older: Sequence[manifest_pb2.Manifest],
        evaluations: Evaluations,
        *,
        is_trained: bool,
    ) -> Version:
        # Where devices evaluate, the codes are used when that has found them good.
        evaluates = self.settings.is_secure and self.plan.evaluate_every > 0
        ranking = about_ranking(
            self._rule,
            evaluations.rankings(),
            is_day_zero=evaluates or not is_trained,
            public_counts=self._public_counts,
        )
        made = self._publisher.publish(
            self._rule, number, time.time(), catalogue_parts, older, ranking, self._public_counts
        )
        return self._made_version(made)

    def _with_items(self, content: bytes, is_trained: bool) -> Changed:
        """Go over to another list of items, as the next version; raises SettingsError if it is no such list."""
        manifest, rule = self.version.manifest, self._rule
        items = parse(content, self.settings, has_counts=self.catalogue_changes[0].has_counts)
        with OldItems(self.artifacts, manifest) as old:
            change = old.change_to(items, rule, self.settings)
            parts = list(manifest.catalogue_parts[: change.n_kept_parts])
            if change.new_part:
                parts.append(self._publisher.put_catalogue(old.new_part(change, items)))
        counts = counts_after(change, items, rule, self.settings)
        number = manifest.model_version + 1
        # The same codes if this is done again after a crash, and others for the same list later.
        rule.change_items(change.old_index_of_new, change.removed, counts, seed=int(items.sha256, 16) + number)
        if self._public_counts is not None:
            self._public_counts = change.listed(np.array(items.device_counts, np.int64))
        version = self._published(is_trained, parts=parts)
        facts = (change.joined, change.left, change.returned, change.is_renumbered)
        return Changed(
            version, CatalogueChange(number, items.sha256, items.device_counts is not None, *facts, at=time.time())
        )
