"""The files of versions in a database: whole or not at all, and as long as a version names them."""

import asyncio
import hashlib
import shutil
from contextlib import asynccontextmanager

import pytest

from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator.folder import FolderError
from lightfr_harness.server.coordinator.options import ItemList, make_rule
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.publishing import REMEMBERED_STATES, Publisher, artifact_kinds, kept_files
from lightfr_harness.server.coordinator.rounds import FINISHED, Round
from lightfr_harness.server.coordinator.shelf import PIECE_BYTES, Shelf
from lightfr_harness.server.coordinator.storage import REMEMBERED_VERSIONS, RoundEnd, Storage
from lightfr_harness.server.coordinator.stored import CatalogueChange
from tests.harness.server.coordinator.helpers import SETTINGS, feed, run, upload_request

CHANGE = CatalogueChange(1, "0" * 64, True, 5, 0, 0, is_renumbered=False, at=1.0)

# So many that a delta is smaller than the codes.
ITEMS = ItemList([f"item-{i}" for i in range(400)], [60] * 400, "0" * 64)


class Versions:
    """Makes versions of made-up uploads, with their files in a database."""

    def __init__(self, folder, storage):
        self.storage, self.publisher = storage, Publisher(folder / "maker")
        storage.files = Shelf(self.publisher, storage)
        self.rule, self.manifests = make_rule(SETTINGS, ITEMS), []
        self.round = self._round(1)

    def _round(self, number):
        return Round.new(number, number, bytes(32), Plan(goal=1), 100.0)

    def _publish(self):
        number, older = len(self.manifests) + 1, self.manifests[::-1]
        parts = older[0].catalogue_parts if older else [self.publisher.put_catalogue(ITEMS.ids)]
        made = self.publisher.publish(self.rule, number, 1.0, parts, older)
        self.manifests.append(manifest_pb2.Manifest.FromString(made))
        return made

    async def begin(self):
        assert await self.storage.begin({}, self._publish(), self.round, CHANGE)

    async def go_on(self):
        """Another round with other codes."""
        feed(self.rule, [upload_request(self.round, len(self.manifests))])
        ended, made = self.round, self._publish()
        ended.state, ended.ended_at, ended.next_model_version = FINISHED, 200.0, len(self.manifests)
        self.round = self._round(ended.number + 1)
        assert await self.storage.end_round(RoundEnd([ended], (len(self.manifests), made), self.round, [], frozenset()))

    @property
    def serialised(self):
        return [manifest.SerializeToString() for manifest in self.manifests[: -REMEMBERED_VERSIONS - 1 : -1]]

    @property
    def codes(self):
        return self.manifests[-1].codes.sha256.hex()


@pytest.fixture(params=["sqlite", "postgres"])
def versions(request, tmp_path):
    """Begun, as a context."""
    address = request.getfixturevalue("postgres").database() if request.param == "postgres" else None

    @asynccontextmanager
    async def make():
        storage = (
            Storage.in_postgres(address, lambda: None)
            if address
            else Storage.in_file(tmp_path / "it.sqlite", lambda _: None)
        )
        storage.start()
        try:
            made = Versions(tmp_path, storage)
            await made.begin()
            yield made
        finally:
            await storage.close()

    return make


async def execute(storage, statement, *values):
    await storage._submit(lambda connection: connection.execute(statement, values))


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_the_data_base_has_exactly_the_files_that_its_versions_name(versions):
    async def story():
        async with versions() as it:
            for _ in range(REMEMBERED_VERSIONS + 3):
                await it.go_on()
                kept, numbers = kept_files(it.manifests[: -REMEMBERED_VERSIONS - 1 : -1], [])
                names = await it.storage.read(lambda stored: stored.file_names())
                assert {name.removeprefix("artifacts/") for name in names if "states/" not in name} == kept
                states = await it.storage.read(lambda stored: stored.states())
                assert states.keys() == numbers
                assert {name for name in names if "states/" in name} == set(states.values())
            assert len(states) == REMEMBERED_STATES

    run(story())


def test_another_folder_gets_what_it_needs_and_the_rest_when_it_is_asked_for(tmp_path, versions):
    async def story():
        async with versions() as it:
            for _ in range(3):
                await it.go_on()
            publisher = Publisher(tmp_path / "other")
            shelf = Shelf(publisher, it.storage)
            state = await shelf.fetch_newest(it.serialised)
            rule = make_rule(SETTINGS, ITEMS)
            publisher.restore(rule, it.manifests[-1], state)
            assert (rule.codes == it.rule.codes).all()
            kinds = artifact_kinds(it.manifests[-1])
            deltas = {digest for digest, kind in kinds.items() if kind == "delta"}
            assert deltas
            assert not deltas & names_in(publisher.artifacts)
            for digest in deltas:
                assert await shelf.fetch_artifact(digest)
            assert kinds.keys() <= names_in(publisher.artifacts)
            for path in publisher.artifacts.iterdir():
                assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name

    run(story())


def test_a_file_of_many_pieces_is_the_same_again_and_so_is_an_empty_one(tmp_path, versions):
    async def story():
        async with versions() as it:
            for content in (bytes(range(256)) * (3 * PIECE_BYTES // 256) + b"x", b"x" * (2 * PIECE_BYTES), b""):
                it.manifests[-1].codes.CopyFrom(it.publisher.put(content))
                number, made = len(it.manifests) + 1, it.manifests[-1]
                made.model_version = number
                shutil.copy(it.publisher.states / f"{number - 1}.npz", it.publisher.states / f"{number}.npz")
                it.manifests.append(manifest_pb2.Manifest.FromString(made.SerializeToString()))
                assert await it.storage.roll_back(number, made.SerializeToString(), number - 1, 5.0)
                publisher = Publisher(tmp_path / "other")
                assert await Shelf(publisher, it.storage).fetch_artifact(it.codes)
                assert (publisher.artifacts / it.codes).read_bytes() == content

    run(story())


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE pieces SET content = ? WHERE name = ? AND number = 0",
        "INSERT INTO pieces (content, name, number) VALUES (?, ?, 1)",
    ],
)
def test_what_is_not_what_its_name_says_never_comes_into_the_folder(tmp_path, versions, spoil):
    async def story():
        async with versions() as it:
            publisher = Publisher(tmp_path / "other")
            shelf = Shelf(publisher, it.storage)
            await execute(it.storage, spoil, b"spoilt", f"artifacts/{it.codes}")
            assert not await shelf.fetch_artifact(it.codes)
            assert not names_in(publisher.artifacts)
            with pytest.raises(FolderError, match="does not have artifact"):
                await shelf.fetch_newest(it.serialised)

    run(story())


def test_states_cannot_be_had_as_artifacts(tmp_path, versions):
    async def story():
        async with versions() as it:
            name = (await it.storage.read(lambda stored: stored.states()))[1]
            shelf = Shelf(Publisher(tmp_path / "other"), it.storage)
            assert not await shelf.fetch_artifact(name.removeprefix("states/"))

    run(story())


def test_a_crowd_that_asks_at_once_fetches_a_file_once(tmp_path, versions):
    async def story():
        async with versions() as it:
            publisher, reads = Publisher(tmp_path / "other"), []
            read = it.storage.read

            def counted(ask):
                reads.append(ask)
                return read(ask)

            it.storage.read = counted
            shelf = Shelf(publisher, it.storage)
            assert all(await asyncio.gather(*(shelf.fetch_artifact(it.codes) for _ in range(20))))
            assert len(reads) == 2

    run(story())


def test_a_version_that_is_refused_leaves_nothing_in_the_data_base(versions):
    async def story():
        async with versions() as it:
            await it.go_on()
            before = await it.storage.read(lambda stored: stored.file_names())
            feed(it.rule, [upload_request(it.round, 99)])
            ended, made = it._round(1), it._publish()
            assert not await it.storage.end_round(RoundEnd([ended], (3, made), it._round(2), [], frozenset()))
            assert not await it.storage.roll_back(2, made, 1, 5.0)
            assert await it.storage.read(lambda stored: stored.file_names()) == before

    run(story())
