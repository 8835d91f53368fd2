"""Makes the versions of a folder: of what rounds added up, and of other lists of items. Remembers those it made."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator.accuracy import Evaluation, Evaluations, about_ranking
from lightfr_harness.server.coordinator.catalogue_plan import Numbers
from lightfr_harness.server.coordinator.catalogue_update import OldItems, counts_after, parse
from lightfr_harness.server.coordinator.folder import CrashPoint, NextCatalogue
from lightfr_harness.server.coordinator.options import ItemList, MakeRule, Settings, SettingsError
from lightfr_harness.server.coordinator.plan import EVALUATION, GATE_REFRESH, Plan, Schedule
from lightfr_harness.server.coordinator.publishing import Publisher, Signer, Version, artifact_kinds
from lightfr_harness.server.coordinator.rounds import Round
from lightfr_harness.server.coordinator.storage import REMEMBERED_VERSIONS
from lightfr_harness.server.coordinator.stored import CatalogueChange, Memory
from lightfr_harness.server.coordinator.stored_catalogue import StoredCatalogue
from lightfr_harness.server.coordinator.telemetry import Metrics
from lightfr_harness.server.rules import CatalogueRule
from lightfr_harness.server.rules.cohorts import CohortSum, Combined

T = TypeVar("T")


class Changed(NamedTuple):
    """What came of another list of items."""

    version: Version
    change: CatalogueChange


class Added(NamedTuple):
    """What came of a round's sum."""

    version: Version
    evaluation: Evaluation | None = None
    # What became of each cohort of a training round.
    combined: Combined | None = None


class VersionKeeper:
    """One folder and one model. Rounds are run by RoundKeeper."""

    version: Version

    def __init__(
        self, folder: Path, settings: Settings, plan: Plan, signer: Signer, metrics: Metrics, crash_point: CrashPoint,
        make_rule: MakeRule,
    ) -> None:  # fmt: skip
        """Hold a folder, in which artifacts and states lie."""
        self.folder, self.settings, self.plan, self.metrics = folder, settings, plan, metrics
        self.largest_upload_bytes = 0
        self._signer, self._make_rule = signer, make_rule
        self._publisher = Publisher(folder, plan.artifacts_address, crash_point)
        self.artifacts = self._publisher.artifacts
        self.next_catalogue: NextCatalogue | StoredCatalogue = NextCatalogue(self._publisher.folder)
        # Counts of plays or sales by index, if there are such counts.
        self._public_counts: Numbers | None = None
        # One thread for what takes long: it is waited for before the folder is let go.
        self._worker = ThreadPoolExecutor(1, "aggregation")

    def _remember(self, memory: Memory) -> None:
        self._manifests = deque(memory.manifests, maxlen=REMEMBERED_VERSIONS)
        self.evaluations, self.catalogue_changes = memory.evaluations, memory.catalogue_changes
        self._schedule = Schedule(self.plan, *memory.finished)

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

    def _newest_version(self, items: ItemList | None, places: int, state: Path | None) -> Version:
        """Go on with the newest version, for a round of so many places. Its state may lie outside of the folder."""
        known = [change.sha256 for change in self.catalogue_changes]
        if items is not None and items.sha256 not in known and not self.next_catalogue.is_same(items.sha256):
            raise SettingsError(
                "the folder has another catalogue: start without --catalogue, and change the items with"
                " `lightfr-harness catalogue update`"
            )
        newest = self._manifests[0]
        manifest = manifest_pb2.Manifest.FromString(newest)
        stand_in = ItemList.unnamed(manifest.model.item_count, has_counts=self.catalogue_changes[0].has_counts)
        self._rule = self._make_rule(self.settings, stand_in)
        self._public_counts = self._publisher.restore(self._rule, manifest, state)
        return self._made_version(newest, places)

    def _made_version(self, manifest: bytes, places: int = 0) -> Version:
        """For rounds of the plan, or of an older one with so many places."""
        return Version.of(manifest, self._rule, self._signer.sign, max(self.plan.places, places))

    def _adopt(self, version: Version) -> None:
        """Make a durable version the one that devices get."""
        if not self._manifests or self._manifests[0] != version.serialised:
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
        with self._publisher.lock:
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

    def _add_up(self, current: Round, bodies: list[bytes]) -> Added:
        """Uploads in the clear. Sums do not depend on their order."""
        for body in bodies:
            self._rule.add(pb.UploadRequest.FromString(body).row_update.SerializeToString())
        self._rule.finish_round()
        return Added(self._published(True))

    def _add_up_cohorts(self, first: Round, cohorts: list[CohortSum]) -> Added:
        """The sums of a round's cohorts, of which one is the first; counts and evaluations are of one."""
        rule = self._rule
        if not isinstance(rule, CatalogueRule):
            raise TypeError("only the catalogue objective has masked rounds: Settings refuse the others")
        sums, devices = cohorts[0].sums, cohorts[0].survivors
        if first.kind == EVALUATION:
            evaluation = Evaluation.of(first.number, self.version.manifest, sums["hits"], devices)
            return Added(self._published(True, evaluation), evaluation=evaluation)
        if first.kind == GATE_REFRESH:
            # The same codes if this is done again after a crash.
            rule.set_gate(**sums, seed=int.from_bytes(first.round_id, "little"), devices=devices)
            return Added(self._published(self._schedule.finished > 0))
        combined = rule.add_cohorts(cohorts)
        rule.finish_round()
        return Added(self._published(True), combined=combined)

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
