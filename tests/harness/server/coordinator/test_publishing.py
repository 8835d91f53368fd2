"""What lies in the folder of artifacts, and for how long."""

import numpy as np
import pytest

from lightfr.v1 import manifest_pb2
from lightfr_harness.server.artifacts import make_delta
from lightfr_harness.server.coordinator.options import ItemList, Settings, make_rule
from lightfr_harness.server.coordinator.publishing import (
    DELTAS_FROM_VERSIONS,
    FolderError,
    Publisher,
    artifact_kinds,
)
from lightfr_harness.server.coordinator.rollback import roll_back
from tests.harness.server.coordinator.helpers import Clock, Plan, Small, run, small, upload_request

ITEMS = ItemList([f"item-{i}" for i in range(400)], None, "")


def drifting_server(publisher, versions):
    """Publish versions whose codes differ in one row each."""
    server = make_rule(Settings(64, 0, 1, False, "clear"), ITEMS)
    parts, manifests = [publisher.put_catalogue(ITEMS.ids)], []
    for version in range(1, versions + 1):
        server.own_codes[version] ^= 1
        manifests.insert(0, publisher.publish(server, version, 100.0, parts, parsed(manifests)))
    return server, manifests


def parsed(manifests):
    return [manifest_pb2.Manifest.FromString(manifest) for manifest in manifests]


def test_a_version_offers_deltas_from_the_last_eight_newest_first(tmp_path):
    publisher = Publisher(tmp_path)
    server, manifests = drifting_server(publisher, 12)
    newest, *older = parsed(manifests)
    assert [delta.from_sha256 for delta in newest.codes_deltas] == [
        manifest.codes.sha256 for manifest in older[:DELTAS_FROM_VERSIONS]
    ]
    before = np.frombuffer((tmp_path / "artifacts" / older[7].codes.sha256.hex()).read_bytes(), np.uint8)
    delta = (tmp_path / "artifacts" / newest.codes_deltas[7].artifact.sha256.hex()).read_bytes()
    assert delta == make_delta(before.reshape(-1, 8), server.codes)
    assert all(delta.artifact.size_bytes < newest.codes.size_bytes for delta in newest.codes_deltas)


def test_a_delta_that_saves_nothing_is_not_offered(tmp_path):
    publisher = Publisher(tmp_path)
    server, manifests = drifting_server(publisher, 1)
    server.own_codes[:] = np.random.default_rng(0).integers(0, 256, server.own_codes.shape)
    parts = parsed(manifests)[0].catalogue_parts
    newest = manifest_pb2.Manifest.FromString(publisher.publish(server, 2, 100.0, parts, parsed(manifests)))
    assert not newest.codes_deltas
    same = manifest_pb2.Manifest.FromString(publisher.publish(server, 3, 100.0, parts, [newest]))
    assert not same.codes_deltas


def test_what_no_remembered_manifest_names_is_removed(tmp_path):
    publisher = Publisher(tmp_path)
    _, manifests = drifting_server(publisher, 5)
    (tmp_path / "artifacts" / ".unfinished-x").write_bytes(b"left by a crash")
    (tmp_path / "artifacts" / ".catalogue-y").mkdir()
    publisher.clean(manifests[:2])
    kept = {path.name for path in (tmp_path / "artifacts").iterdir()}
    assert kept == {digest for manifest in parsed(manifests[:2]) for digest in artifact_kinds(manifest)}
    assert {path.name for path in (tmp_path / "states").iterdir()} == {"5.npz", "4.npz"}


def test_artifacts_of_sixteen_versions_are_kept_while_rounds_go_on(tmp_path):
    async def story():
        async with small(tmp_path, goal=1) as it:
            seen = []
            for n in range(19):
                seen.append(it.coordinator.version.manifest.codes.sha256.hex())
                await it.upload("a", upload_request(await it.assignment("a"), n))
                assert await it.coordinator.end_due_round()
            kept = {path.name for path in (tmp_path / "artifacts").iterdir()}
            assert set(seen[-15:]) <= kept
            assert not set(seen[:4]) & (kept - set(seen[4:]))

    run(story())


def test_versions_name_the_cache_that_the_start_before_them_named(tmp_path):
    """Also one that goes back to a model from before the cache moved. What was signed stays as it is."""
    old, new = "https://old.example:443", "https://new.example:8446"
    addresses = {}

    async def train(address):
        async with small(tmp_path, goal=1, artifacts_address=address) as it:
            for n in range(2):
                manifest = it.coordinator.version.manifest
                addresses[manifest.model_version] = manifest.artifacts_address
                if n == 0:
                    await it.upload("a", upload_request(await it.assignment("a"), manifest.model_version))
                    assert await it.coordinator.end_due_round()

    for address in ("", old, new):
        run(train(address))
    assert roll_back(tmp_path, 2) == 5
    run(train(""))
    assert addresses == {1: "", 2: "", 3: old, 4: new, 5: new, 6: ""}


@pytest.mark.parametrize("folder", ["artifacts", "states"])
def test_a_folder_that_was_changed_is_refused(tmp_path, folder):
    async def story():
        async with small(tmp_path) as it:
            codes = it.coordinator.version.manifest.codes.sha256.hex()
        name = codes if folder == "artifacts" else "1.npz"
        (tmp_path / folder / name).write_bytes(b"something else")
        second = Small(tmp_path, Clock(), Plan())
        with pytest.raises(FolderError):
            await second.coordinator.start()
        await second.coordinator.close()

    run(story())
