"""Lists of items for a coordinator: which are taken, by which way, and what is said of them."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.server.coordinator.catalogue_update import offer
from lightfr_harness.server.coordinator.folder import FolderError
from lightfr_harness.server.coordinator.options import ItemList, SettingsError
from tests.harness.server.coordinator.by_item import ids_of, tsv
from tests.harness.server.coordinator.helpers import BITS, ITEMS, SETTINGS, run, small
from tests.harness.server.coordinator.test_catalogue_update import FIRST, go_on, manifest_of, plain, started, train


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the catalogue is empty"),
        (b"\xff\t1\n", "not UTF-8"),
        (b"a\t1\nb\n", "line 2 of the catalogue: expected"),
        (b"a\nb\n", "the folder was begun with counts"),
        (b"a\t1\nb\t2\na\t3\n", "line 3 of the catalogue repeats the id of line 1"),
        (b"a\t1\n\t2\n", "line 2"),
        (b"a\t1\n" + b"x" * 256 + b"\t2\n", "line 2 of the catalogue: an id has 1 to 255 bytes"),
        (b"a\t1\nb\t-1\n", "line 2 of the catalogue: expected a count"),
    ],
)
def test_a_bad_list_is_refused_by_line_and_changes_nothing(tmp_path, content, says):
    async def story():
        async with started(tmp_path, ITEMS) as it:
            with pytest.raises(SettingsError, match=says):
                offer(tmp_path, content)
            assert not await it.coordinator.end_due_round()

    run(story())


def test_a_list_that_became_bad_in_the_folder_is_dropped_and_the_coordinator_goes_on(tmp_path):
    async def story():
        async with started(tmp_path, ITEMS) as it:
            (tmp_path / "catalogue.next.tsv").write_bytes(b"secret item\n")
            await go_on(it)
            assert "catalogue_refused" in it.log.getvalue()
            assert "secret" not in it.log.getvalue()
            await train(it, 1)

    run(story())


def test_kind_and_counts_of_the_list_are_those_of_the_folder(tmp_path):
    integers = ItemList([5, 7, -3], None, "1" * 64)
    the_settings = replace(SETTINGS, integer_ids=True)

    async def story():
        async with started(tmp_path, integers, the_settings=the_settings) as it:
            with pytest.raises(SettingsError, match="line 2 of the catalogue: expected an integer"):
                offer(tmp_path, b"5\nseven\n")
            with pytest.raises(SettingsError, match="begun without counts"):
                offer(tmp_path, b"5\t1\n7\t1\n")
            offer(tmp_path, plain([7, 8, 5, -3]))
            await go_on(it)
            assert ids_of(manifest_of(it), tmp_path / "artifacts") == [5, 7, -3, 8]
            # Without a gate every item has a row of its own.
            assert not manifest_of(it).HasField("open_rows")
            offer(tmp_path, plain([7, 8, 5, -3, 9]))
            await go_on(it)
            offer(tmp_path, plain([7, 8, 5, 9]))
            await go_on(it)
            assert manifest_of(it).HasField("removed_items")
            assert manifest_of(it).codes.size_bytes == (4 + 1) * BITS // 8

    run(story())


def test_a_later_start_needs_no_list_and_refuses_one_that_the_folder_does_not_know(tmp_path):
    async def begin():
        with pytest.raises(SettingsError, match="needs --catalogue"):
            async with started(tmp_path):
                pass
        async with started(tmp_path, ITEMS):
            pass

    async def start(items):
        async with started(tmp_path, items) as it:
            await go_on(it)
            return len(it.coordinator.catalogue_changes)

    run(begin())
    second = tsv({**FIRST, "new": 1})
    known, other = ItemList.parse(second, integer_ids=False), ItemList.parse(b"x\t1\n", integer_ids=False)
    with pytest.raises(SettingsError, match="catalogue update"):
        run(start(known))
    offer(tmp_path, second)
    for items, changes in ((known, 2), (ITEMS, 2), (None, 2)):
        assert run(start(items)) == changes
    with pytest.raises(SettingsError, match="catalogue update"):
        run(start(other))


def test_the_command_says_what_will_happen_and_the_call_does_the_same(tmp_path):
    async def begin():
        async with small(tmp_path / "folder"):
            pass

    run(begin())
    (tmp_path / "items.tsv").write_bytes(tsv({**{item: n for item, n in FIRST.items() if n > 21}, "x": 1, "y": 1}))
    done = CliRunner().invoke(app, ["catalogue", "update", str(tmp_path / "folder"), str(tmp_path / "items.tsv")])
    assert done.exit_code == 0
    assert "2 items join, 1 leave, 0 return; items that stay keep their numbers." in done.output
    bad = CliRunner().invoke(app, ["catalogue", "update", str(tmp_path / "nothing"), str(tmp_path / "items.tsv")])
    assert bad.exit_code == 2
    with pytest.raises(FolderError, match="not the folder of a coordinator"):
        offer(tmp_path / "nothing", b"a\t1\n")


def test_the_operations_port_takes_a_list_with_the_checks_of_a_report(live):
    kind = {"Content-Type": "text/tab-separated-values"}
    assert live.operations("POST", "/catalogue", b"a\t1\n", {"Content-Type": "text/plain"})[0] == 415
    status, _, says = live.operations("POST", "/catalogue", b"a\t1\na\t1\n", kind)
    assert (status, says) == (400, b"line 2 of the catalogue repeats the id of line 1\n")
    assert live.operations("POST", "/catalogue", b"a\t1\n", {**kind, "Host": "example.org"})[0] == 421
    content = tsv({**FIRST, **{f"new-{number}": 1 for number in range(200)}})
    status, _, says = live.operations("POST", "/catalogue", content, kind)
    assert status == 202
    assert says.startswith(b"200 items join, 0 leave, 0 return")
    while not live.coordinator.catalogue_changes[1:]:
        assert live.operations("GET", "/healthz")[0] == 200
    _, _, page = live.operations("GET", "/")
    assert "Changed for the 1. time at version 2" in page.decode()
