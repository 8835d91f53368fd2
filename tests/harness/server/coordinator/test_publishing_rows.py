"""What is published of items that open, close, join, leave and are numbered anew, and what older devices get of it."""

import numpy as np
import pytest

from lightfr.model.bitmaps import read_bitmap
from lightfr.model.deltas import apply_delta
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.server.coordinator.publishing import FolderError, Publisher, artifact_kinds
from lightfr_harness.server.rules import CatalogueRule

M, BITS, GATE = 300, 64, 3


class World:
    """A publisher and the rule that it publishes, version by version."""

    def __init__(self, folder, n_items=M):
        self.folder, self.publisher, self.manifests = folder, Publisher(folder), []
        self.rule = self.new_rule(np.where(np.arange(n_items) % 3, 9, 0))
        self.parts = [self.publisher.put_catalogue(range(n_items))]

    def new_rule(self, counts):
        kind = model_pb2.UPLOAD_KIND_TERNARY
        return CatalogueRule(counts, BITS, upload_kind=kind, gate=GATE, max_rows=64, seed=1)

    def publish(self):
        number = len(self.manifests) + 1
        made = self.publisher.publish(self.rule, number, 100.0, self.parts, self.manifests)
        self.manifests.insert(0, manifest_pb2.Manifest.FromString(made))
        return self.manifests[0]

    def change(self, old, removed=(), counts=None):
        """Another catalogue, of which the counts stay but for items that join."""
        counts = np.where(old >= 0, self.rule.device_counts[old], 0) if counts is None else counts
        self.rule.change_items(old, np.isin(np.arange(len(old)), removed), counts, 5)

    def path(self, artifact):
        return self.folder / "artifacts" / artifact.sha256.hex()

    def bits(self, artifact):
        n_items = self.rule.n_items
        packed = np.frombuffer(read_bitmap(self.path(artifact), n_items), np.uint8)
        return np.unpackbits(packed, count=n_items, bitorder="little").astype(bool).tolist()

    def updated(self, manifest, delta):
        """What a device makes of its codes with a delta."""
        target = self.folder / "updated"
        old = next(one for one in self.manifests if one.codes.sha256 == delta.from_sha256)
        with target.open("wb") as file:
            apply_delta(self.path(delta.artifact), self.path(old.codes), file, max_bytes=manifest.codes.size_bytes)
        return target.read_bytes()


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.publish()
    return made


def test_a_manifest_names_the_open_rows_and_those_that_left_and_every_file_is_kept(world):
    (first,) = world.manifests
    assert not first.HasField("removed_items")
    world.change(np.arange(M), removed=[1, 4])
    second = world.publish()
    assert world.bits(second.open_rows) == world.rule.open_rows.tolist()
    assert np.flatnonzero(world.bits(second.removed_items)).tolist() == [1, 4]
    assert second.codes.size_bytes == (2 * M // 3 - 2 + 1) * BITS // 8
    world.publisher.clean([one.SerializeToString() for one in world.manifests])
    names = {path.name for path in (world.folder / "artifacts").iterdir()}
    assert names == {digest for one in world.manifests for digest in artifact_kinds(one)}
    kinds = sorted(artifact_kinds(second).values())
    assert kinds == ["catalogue", "codes", "delta", "open_rows", "removed_items"]


def test_devices_of_every_older_version_get_the_new_rows_by_small_deltas(world):
    """Items close and open, leave and join, and the others keep most of their bits."""
    rng = np.random.default_rng(3)
    counts = world.rule.device_counts.copy()
    counts[[2, 7]], counts[[0, 150, 299]] = 0, 9
    world.rule.set_gate(counts, 1)
    world.rule.set_gate(counts, 1)
    world.publish()
    world.parts.append(world.publisher.put_catalogue(range(M, M + 5)))
    world.change(np.append(np.arange(M), [-1] * 5), removed=[10, 200])
    world.publish()
    world.rule.own_codes[rng.integers(0, 150, 4)] ^= 1
    newest = world.publish()
    assert len(newest.codes_deltas) == 3
    for delta in newest.codes_deltas:
        assert world.updated(newest, delta) == world.path(newest.codes).read_bytes() == world.rule.codes.tobytes()
        assert delta.artifact.size_bytes < newest.codes.size_bytes // 5


def test_going_back_to_other_items_names_their_parts_and_has_a_delta_from_what_has_the_same_numbers(world):
    world.rule.own_codes[3] ^= 1
    world.publish()
    world.parts = [world.publisher.put_catalogue(range(M - 1, -1, -1))]
    world.change(np.arange(M - 1, -1, -1))
    assert not world.publish().codes_deltas
    back = manifest_pb2.Manifest.FromString(world.publisher.republish(world.manifests, 1, 7, 200.0))
    world.manifests.insert(0, back)
    first = world.manifests[-1]
    assert (back.codes, back.open_rows, list(back.catalogue_parts)) == (
        first.codes, first.open_rows, list(first.catalogue_parts),
    )  # fmt: skip
    (delta,) = back.codes_deltas
    assert world.updated(back, delta) == world.path(first.codes).read_bytes()


def test_a_state_is_taken_up_with_its_items_and_one_of_other_items_is_refused(world):
    world.change(np.append(np.arange(M), -1), removed=[4])
    newest = world.publish()
    rule = world.new_rule(np.zeros(2, np.int64))
    world.publisher.restore(rule, newest)
    assert all(np.array_equal(value, rule.state()[name]) for name, value in world.rule.state().items())
    other = manifest_pb2.Manifest.FromString(newest.SerializeToString())
    other.ClearField("removed_items")
    with pytest.raises(FolderError, match="version 2 is not that of its items"):
        world.publisher.restore(rule, other)
    world.path(newest.open_rows).write_bytes(b"something else")
    with pytest.raises(FolderError, match="was changed"):
        world.publisher.restore(rule, newest)
