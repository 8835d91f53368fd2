"""A catalogue that changes between two rounds, and devices that are one catalogue behind.

These need a --catalogue-command. They come last: the kit's items are others afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2
from lightfr_harness.conformance.client import Answer
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_equal
from lightfr_harness.conformance.files import apply_delta
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.rounds import PATIENCE_SECONDS, POLL_SECONDS, ClearRound
from lightfr_harness.conformance.versions import Published, artifacts_of, mean_user, require_twin
from lightfr_harness.conformance.world import World

PLACE = "docs/protocol.md#the-server"
MANIFEST, DELTA = "docs/protocol.md#manifest", "docs/artifacts.md#delta"
KITS = ("clear",)


@dataclass
class Change:
    """One change: what was published before and after, and what became of the first round on it."""

    listed: dict[str, int]
    before: Published
    after: Published
    assignment: pb.Assignment = field(default_factory=pb.Assignment)
    answers: dict[str, Answer] = field(default_factory=dict)
    difference: Unexpected | None = None

    @property
    def stayed(self) -> list[str]:
        """Ids of items that are in both catalogues."""
        return [item for item in self.after.ids if item in self.listed and item in self.before.present]


def _changes(world: World) -> list[Change]:
    """Both lists of the kit, one after the other, taken up once. As far as that went."""
    if world.changes is None:
        world.changes = []
        for path, listed in world.kit.next_items.items():
            world.changes.append(_played(world, path, listed))
    expect_equal("changes of the catalogue that the server made", len(world.changes), len(world.kit.next_items))
    return world.changes


def _played(world: World, path: Path, listed: dict[str, int]) -> Change:
    """A round, so that there is something to keep; the change; and a round with a device that is behind."""
    world.fresh_round().finish()
    before = Published.of(world, world.manifest())
    world.change_catalogue(path)
    change = Change(listed, before, Published.of(world, _next_manifest(world, before)))
    _follow(world, change)
    current = world.fresh_round()
    change.assignment = current.assignment
    change.answers = _tried(world, change, current)
    try:
        require_twin(world, current.finish())
    except Unexpected as difference:
        change.difference = difference
    return change


def _next_manifest(world: World, before: Published) -> manifest_pb2.Manifest:
    """That of the new catalogue. A server may wait for the end of a round, also of one that nobody is in yet."""
    for _ in range(2):
        ends = time.monotonic() + PATIENCE_SECONDS / 2
        while time.monotonic() < ends:
            manifest = world.manifest()
            if any(
                getattr(manifest, name) != getattr(before.manifest, name)
                for name in ("catalogue_parts", "removed_items")
            ):
                return manifest
            time.sleep(POLL_SECONDS)
        world.fresh_round().finish()
    raise Unexpected("another catalogue after the command and a round", "the same")


def _follow(world: World, change: Change) -> None:
    """Let the twin and the kit have the new catalogue. The rows of items that are closed are the shared one."""
    before, after, kit = change.before, change.after, world.kit
    shared = before.is_open.index(False)
    index_of = {item: index for index, item in enumerate(before.ids)}
    world.twin.change_items(
        [
            index_of[item] if item in index_of and item in change.listed and before.is_open[index_of[item]] else shared
            for item in after.ids
        ]
    )
    kit.item_ids, kit.open_rows = after.ids, after.is_open
    kit.counts = [change.listed.get(item, 0) for item in after.ids]
    kit.settings = replace(kit.settings, item_count=len(after.ids))


def _tried(world: World, change: Change, current: ClearRound) -> dict[str, Answer]:
    """What a device that is behind does, and one that uploads what is closed."""
    behind = current.request(manifest_sha256=world.digest_of(change.before.manifest))
    tried = {"a device that is behind": current.send(current.first, behind)}
    closed = [item for item, is_open in enumerate(change.after.is_open) if not is_open]
    for what, item in {"the first closed item": closed[0], "the last item": len(change.after.ids) - 1}.items():
        if not change.after.is_open[item]:
            update = current.random_update(1)
            update.item_indices = item.to_bytes(4, "little")
            tried[what] = current.send(current.first, current.request(update))
    return tried


def catalogue_case(id: str, why: str, place: str = PLACE) -> Callable[..., object]:
    return case(f"catalogue.{id}", why, place, kits=KITS)


@catalogue_case("version", "Another catalogue is a version of its own, which a device learns of as of every other.")
def version(world: World) -> None:
    for change in _changes(world):
        known = change.before.manifest.model_version
        expect(change.after.manifest.model_version > known, "a higher model_version", change.after.manifest)
        expect_equal("model_version of a place", change.assignment.model_version, change.after.manifest.model_version)
    expect(world.signed_manifest(known=known), "the manifest for a device that is one catalogue behind", "none")


@catalogue_case("ids", "Who knows an id must find the item, unless it left, and no other under its index.")
def ids(world: World) -> None:
    for change in _changes(world):
        expect_equal("items that have not left", change.after.present, set(change.listed))


@catalogue_case("joined-closed", "Nobody has rated an item that joins: it has no row that devices could have made.")
def joined_closed(world: World) -> None:
    for change in _changes(world):
        stayed = set(change.stayed)
        for item, is_open in zip(change.after.ids, change.after.is_open, strict=True):
            expect(item in stayed or not is_open, "items that join or left to be closed", f"an open {item}")


@catalogue_case("rows-stay", "What devices have taught is by item: a row goes where its item goes, with every bit.")
def rows_stay(world: World) -> None:
    for change in _changes(world):
        expect_equal("mean_user", mean_user(change.after.manifest), mean_user(change.before.manifest))
        codes = [_codes_by_id(published, world.kit.settings.code_bits // 8) for published in _both(change)]
        for item in change.stayed:
            expect_equal(f"code of {item}", codes[1][item], codes[0][item])


def _both(change: Change) -> tuple[Published, Published]:
    return change.before, change.after


def _codes_by_id(published: Published, row_bytes: int) -> dict[str, bytes]:
    matrix = published.matrix
    return {item: matrix[at * row_bytes : (at + 1) * row_bytes] for at, item in enumerate(published.ids)}


@catalogue_case("memory-stays", "The memory of a row moves with it, so the next round goes on as if nothing had moved.")
def memory_stays(world: World) -> None:
    for change in _changes(world):
        if change.difference is not None:
            raise change.difference


@catalogue_case("behind", "An upload by indices of the old catalogue would teach other items.")
def behind(world: World) -> None:
    for change in _changes(world):
        change.answers["a device that is behind"].refusal("MODEL_MISMATCH")


@catalogue_case("closed-items", "An item that joined or left is closed, and a server refuses an upload for it.")
def closed_items(world: World) -> None:
    for change in _changes(world):
        for what, answer in change.answers.items():
            if what != "a device that is behind":
                answer.refusal("UPLOAD_INVALID")


@catalogue_case("old-artifacts", "A device in the middle of a download of the old version can end it.", MANIFEST)
def old_artifacts(world: World) -> None:
    for change in _changes(world):
        for artifact in artifacts_of(change.before.manifest):
            world.device(0).artifact(artifact)


@catalogue_case("delta", "A delta moves rows where their items went, and must lead to exactly the new codes.", DELTA)
def delta(world: World) -> None:
    for change in _changes(world):
        manifest = change.after.manifest
        for one in manifest.codes_deltas:
            if one.from_sha256 == change.before.manifest.codes.sha256:
                content = world.device(0).artifact(one.artifact)
                new = apply_delta(content, change.before.codes, manifest.model.code_bits)
                expect_equal("codes after a delta between catalogues", new, change.after.codes)
