"""A catalogue that lives: items join, leave and come back between two rounds, and everything moves with them."""

import shutil
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.server.coordinator.catalogue_update import offer
from lightfr_harness.server.coordinator.database import StorageError
from lightfr_harness.server.coordinator.folder import no_crash
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.rollback import roll_back
from tests.harness.server.coordinator.by_item import ByItem, bits_of, ids_of, made_up, require_published, tsv
from tests.harness.server.coordinator.helpers import (
    BITS,
    ITEMS,
    N_ITEMS,
    SETTINGS,
    Clock,
    Crash,
    Small,
    run,
    upload_request,
)
from tests.harness.server.coordinator.secure import SECURE, UNCOUNTED, secure
from tests.harness.server.coordinator.test_crashes import CrashAt

FIRST = dict(zip(ITEMS.ids, ITEMS.device_counts, strict=True))


def plain(ids):
    return "".join(f"{item}\n" for item in ids).encode()


@asynccontextmanager
async def started(folder, items=None, crash_point=no_crash, the_settings=SETTINGS, **plan):
    it = Small(folder, Clock(), Plan(**{"goal": 1, "over_selection": 1, **plan}), the_settings, items, crash_point)
    try:
        await it.coordinator.start()
        yield it
    finally:
        await it.coordinator.close()


async def go_on(it):
    while await it.coordinator.end_due_round():
        pass


def manifest_of(it):
    return it.coordinator.version.manifest


async def train(it, seed, expected=None):
    """One round of one device; the oracle learns the same."""
    manifest, artifacts = manifest_of(it), it.coordinator.artifacts
    opened = np.flatnonzero(bits_of(manifest, artifacts, "open_rows", True))
    place, rng = await it.assignment("a"), np.random.default_rng(seed)
    body = upload_request(place, seed, row_update=made_up(rng, opened))
    await it.upload("a", body)
    await go_on(it)
    if expected is not None:
        expected.round([body], ids_of(manifest, artifacts))


def oracle():
    return ByItem(FIRST, SETTINGS.gate, BITS, SETTINGS.seed)


def seed_of(it):
    change = it.coordinator.catalogue_changes[-1]
    return int(change.sha256, 16) + change.model_version


async def update(it, folder, counts, expected):
    offer(folder, tsv(counts))
    await go_on(it)
    expected.change(counts, ids_of(manifest_of(it), it.coordinator.artifacts), seed_of(it))


def test_items_join_leave_and_return_and_rows_that_stay_keep_every_bit(tmp_path):
    async def story():
        expected = oracle()
        async with started(tmp_path, ITEMS) as it:
            await train(it, 1, expected)
            require_published(manifest_of(it), tmp_path / "artifacts", expected)
            # Two join, one of them opens by its count; one open and one closed item leave.
            joined = {**FIRST, "new-a": 26, "new-b": 3}
            del joined["item-4"], joined["item-28"]
            await update(it, tmp_path, joined, expected)
            require_published(manifest_of(it), tmp_path / "artifacts", expected)
            assert ids_of(manifest_of(it), tmp_path / "artifacts") == [*ITEMS.ids, "new-a", "new-b"]
            assert it.coordinator.removed_items == 2
            await train(it, 2, expected)
            require_published(manifest_of(it), tmp_path / "artifacts", expected)
            # One comes back at its index, with an empty memory.
            await update(it, tmp_path, {**joined, "item-4": 46}, expected)
            assert ids_of(manifest_of(it), tmp_path / "artifacts") == [*ITEMS.ids, "new-a", "new-b"]
            await train(it, 3, expected)
            require_published(manifest_of(it), tmp_path / "artifacts", expected)
            # Items that join make one part with those that joined last, also with one that has left since.
            del joined["new-b"]
            await update(it, tmp_path, {**joined, "new-c": 2, "new-d": 30}, expected)
            ids = [*ITEMS.ids, "new-a", "new-b", "new-c", "new-d"]
            assert ids_of(manifest_of(it), tmp_path / "artifacts") == ids
            assert len(manifest_of(it).catalogue_parts) == 2
            require_published(manifest_of(it), tmp_path / "artifacts", expected)
        async with started(tmp_path) as again:
            await train(again, 4, expected)
            require_published(manifest_of(again), tmp_path / "artifacts", expected)

    run(story())


def test_items_are_numbered_anew_by_their_counts_and_training_goes_on(tmp_path):
    async def story():
        expected = oracle()
        async with started(tmp_path, ITEMS) as it:
            await train(it, 1, expected)
            turned = {item: 100 - count for item, count in FIRST.items()}
            await update(it, tmp_path, turned, expected)
            assert it.coordinator.catalogue_changes[-1].is_renumbered
            assert ids_of(manifest_of(it), tmp_path / "artifacts") == list(reversed(ITEMS.ids))
            require_published(manifest_of(it), tmp_path / "artifacts", expected)
            await train(it, 2, expected)
            require_published(manifest_of(it), tmp_path / "artifacts", expected)

    run(story())


LISTS = st.lists(
    st.tuples(
        st.sets(st.integers(0, 40), min_size=1).map(sorted), st.sampled_from([1, 7, 39]), st.booleans(), st.booleans()
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(LISTS)
def test_any_sequence_of_lists_gives_what_the_oracle_by_item_says(tmp_path_factory, lists):
    """Counts are turned by a factor modulo 41, so that orders change. Some lists come while the coordinator is down."""
    folder = tmp_path_factory.mktemp("living")

    async def story():
        expected, seed = oracle(), 0
        async with started(folder, ITEMS) as it:
            await train(it, seed, expected)
        for numbers, factor, is_stopped, trains in lists:
            counts = {f"item-{number}": 10 + factor * number % 41 for number in numbers}
            if is_stopped:
                offer(folder, tsv(counts))
            async with started(folder) as it:
                if not is_stopped:
                    offer(folder, tsv(counts))
                await go_on(it)
                expected.change(counts, ids_of(manifest_of(it), it.coordinator.artifacts), seed_of(it))
                require_published(manifest_of(it), folder / "artifacts", expected)
                if trains and expected.opened:
                    seed += 1
                    await train(it, seed, expected)
                    require_published(manifest_of(it), folder / "artifacts", expected)

    run(story())


def test_a_round_with_devices_ends_first_and_no_other_begins_before_the_change(tmp_path):
    async def story():
        async with started(tmp_path, ITEMS, goal=2, over_selection=1) as it:
            place = await it.assignment("a")
            offer(tmp_path, tsv({**FIRST, "new": 1}))
            assert not await it.coordinator.end_due_round()
            other = await it.assignment("b")
            for device, assigned in (("a", place), ("b", other)):
                await it.upload(device, upload_request(assigned, 1))
            assert await it.coordinator.end_due_round()
            assert manifest_of(it).model.item_count == N_ITEMS
            answer = await it.check_in("c")
            assert answer.retry_window.reason == pb.RETRY_REASON_AGGREGATING
            number = it.coordinator.book.current.number
            assert await it.coordinator.end_due_round()
            assert manifest_of(it).model.item_count == N_ITEMS + 1
            assert (await it.assignment("c")).model_version == 3
            assert it.coordinator.book.current.number == number

    run(story())


def test_a_crash_at_each_step_leaves_the_change_undone_or_done_once(tmp_path):
    crash, versions = CrashAt(), []

    async def begin():
        async with started(tmp_path / "origin", ITEMS) as it:
            await train(it, 1, trained)

    async def change(folder):
        it = Small(folder, Clock(), Plan(goal=1), crash_point=crash)
        await it.coordinator.start()
        try:
            await go_on(it)
        except (Crash, StorageError):
            await it.crash()
        else:
            await it.coordinator.close()

    async def look(folder):
        expected = deepcopy(trained)
        async with started(folder) as it:
            versions.append(manifest_of(it).model_version)
            await go_on(it)
            assert manifest_of(it).model_version == 3
            assert len(it.coordinator.catalogue_changes) == 2
            expected.change(counts, ids_of(manifest_of(it), folder / "artifacts"), seed_of(it))
            require_published(manifest_of(it), folder / "artifacts", expected)
            assert not list(folder.glob("catalogue.*"))

    trained = oracle()
    run(begin())
    counts = {**FIRST, "new": 30}
    del counts["item-3"]
    offer(tmp_path / "origin", tsv(counts))
    for after in range(30):
        folder = tmp_path / str(after)
        shutil.copytree(tmp_path / "origin", folder)
        crash.arm(after)
        run(change(folder))
        was_struck, crash.left = bool(crash.struck), None
        run(look(folder))
        if not was_struck:
            break
    assert not was_struck
    assert set(versions) == {2, 3}
    assert versions == sorted(versions)


def test_going_back_across_a_change_brings_the_items_back(tmp_path):
    async def change():
        async with started(tmp_path, ITEMS) as it:
            await train(it, 1, expected)
            offer(tmp_path, tsv({item: 100 - count for item, count in FIRST.items() if count > 23}))
            await go_on(it)
            assert manifest_of(it).model_version == 3
            await train(it, 2)

    async def look():
        async with started(tmp_path) as it:
            assert manifest_of(it).model_version == 5
            require_published(manifest_of(it), tmp_path / "artifacts", expected)
            assert len(it.coordinator.catalogue_changes) == 1
            await train(it, 3, expected)
            await update(it, tmp_path, {**FIRST, "new": 40}, expected)
            require_published(manifest_of(it), tmp_path / "artifacts", expected)

    expected = oracle()
    run(change())
    assert roll_back(tmp_path, 2) == 5
    run(look())


def test_a_list_that_is_not_taken_up_yet_is_replaced_by_a_later_one(tmp_path):
    async def story():
        async with started(tmp_path, ITEMS) as it:
            offer(tmp_path, tsv({**FIRST, "one": 1}))
            offer(tmp_path, tsv({**FIRST, "other": 1}))
            await go_on(it)
            assert ids_of(manifest_of(it), tmp_path / "artifacts")[N_ITEMS:] == ["other"]
            assert manifest_of(it).model_version == 2

    run(story())


def test_counts_of_devices_move_with_their_items_and_number_them(tmp_path):
    """Eight devices count in each of two refreshes; the list changes between the two, and after them."""
    gated = {"items": UNCOUNTED, "settings": replace(SECURE, gate=5), "goal": 8}
    fewer = [item for item in ITEMS.ids if item != "item-1"]

    async def story():
        async with secure(tmp_path, **gated) as it:
            await it.run_steps(it.devices(8))
            before = it.coordinator._rule.first_counts.tolist()
            offer(tmp_path, plain([*fewer, "new"]))
            await it.go_on()
            rule = it.coordinator._rule
            assert rule.first_counts.tolist() == [before[0], 0, *before[2:], 0]
            assert it.coordinator.book.current.kind == pb.ROUND_KIND_GATE_REFRESH
            assert it.coordinator.standing.counted

    run(story())


def test_public_counts_stay_the_prior_and_open_nothing(tmp_path):
    public = replace(SECURE, public_counts=True)

    def popularities(it):
        prior = manifest_of(it).prior
        return dict(zip(prior.first_items, prior.popularities, strict=True))

    async def story():
        async with secure(tmp_path, settings=public) as it:
            offer(tmp_path, tsv({item: 10_000 - index for index, item in enumerate(ITEMS.ids) if index != 3}))
            await it.go_on()
            assert popularities(it) == {0: 147}  # 16 ln 10^4, also behind the item that left
            assert not it.coordinator._rule.open_rows.any()
        async with secure(tmp_path, settings=public, items=None) as again:
            assert again.coordinator._public_counts[3] == 0
            assert popularities(again) == {0: 147}

    run(story())
